/* routes: every row of the table is found under its methods and under no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/routes.h"

#define IN(method) (1U << (method))
#define ANY ((1U << HTTP_METHODS) - 1U)
#define TOKEN "0123456789abcdef"

/* Stands for what no driver can do. */
static void not_supported(struct sbxd *s, struct client *c, const struct route_call *call)
{
	(void)s;
	(void)c;
	(void)call;
}

/* What clients are promised: the other picture of the table in routes.c. */
static const struct promise {
	const char *path;
	const char *id;
	uint32_t methods;
	route_fn *fn;	   /* NULL: handed over */
	const char *allow; /* of the path */
} promises[] = {
    {"/v1/acquire", "", IN(HTTP_POST), api_acquire, "POST"},
    {"/v1/boxes", "", IN(HTTP_GET), api_list_boxes, "GET, POST"},
    {"/v1/boxes", "", IN(HTTP_POST), api_make_box, "GET, POST"},
    {"/v1/boxes/" TOKEN "/start", TOKEN, IN(HTTP_POST), api_start_box, "POST"},
    {"/v1/boxes/my-box/stop", "my-box", IN(HTTP_POST), api_stop_box, "POST"},
    {"/v1/boxes/" TOKEN, TOKEN, IN(HTTP_GET) | IN(HTTP_HEAD), api_get_box, "GET, HEAD, DELETE"},
    {"/v1/boxes/" TOKEN, TOKEN, IN(HTTP_DELETE), api_delete_box, "GET, HEAD, DELETE"},
    {"/v1/boxes/" TOKEN "/release", TOKEN, IN(HTTP_POST), api_release, "POST"},
    {"/v1/boxes/" TOKEN "/run", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/exec", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/executions", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/executions/exec-1", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/executions/exec-1/attach", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/fs", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/fs/read", TOKEN, ANY, NULL, NULL},
    {"/v1/boxes/" TOKEN "/fs/a/b/c/d/e/f/g", TOKEN, ANY, NULL, NULL},
    {"/v1/events", "", IN(HTTP_GET) | IN(HTTP_HEAD), api_events, "GET, HEAD"},
    {"/v1/pool", "", IN(HTTP_GET), api_get_pool, "GET"},
    {"/v1/pool/reset", "", IN(HTTP_POST), api_reset_pool, "POST"},
    {"/v1/shutdown", "", IN(HTTP_POST), api_shutdown, "POST"},
    {"/v1/config", "", IN(HTTP_GET), api_config, "GET"},
    {"/v1/me", "", IN(HTTP_GET), api_me, "GET"},
    {"/v1/metrics", "", IN(HTTP_GET), api_metrics, "GET"},
    {"/metrics", "", IN(HTTP_GET), api_openmetrics, "GET"},
    {"/v1/boxes/" TOKEN "/metrics", TOKEN, IN(HTTP_GET), api_box_metrics, "GET"},
    {"/v1/images", "", IN(HTTP_GET), api_list_images, "GET"},
    {"/v1/images/sha256:ab", "sha256:ab", IN(HTTP_GET) | IN(HTTP_HEAD), api_get_image,
	"GET, HEAD, DELETE"},
    {"/v1/images/sha256%3Aab", "sha256:ab", IN(HTTP_GET) | IN(HTTP_HEAD), api_get_image,
	"GET, HEAD, DELETE"},
    {"/v1/images/sha256:ab", "sha256:ab", IN(HTTP_DELETE), api_remove_image, "GET, HEAD, DELETE"},
    {"/v1/images/sha256%3Aab", "sha256:ab", IN(HTTP_DELETE), api_remove_image, "GET, HEAD, DELETE"},
    {"/v1/images/prune", "", IN(HTTP_POST), api_prune_images, "GET, HEAD, POST, DELETE"},
    {"/v1/images/prune", "prune", IN(HTTP_GET) | IN(HTTP_HEAD), api_get_image,
	"GET, HEAD, POST, DELETE"},
    {"/v1/images/prune", "prune", IN(HTTP_DELETE), api_remove_image, "GET, HEAD, POST, DELETE"},
    {"/v1/images/pull", "pull", IN(HTTP_DELETE), api_remove_image, "GET, HEAD, POST, DELETE"},
    {"/v1/images/pull", "", IN(HTTP_POST), api_pull_image, "GET, HEAD, POST, DELETE"},
    {"/v1/images/pull", "pull", IN(HTTP_GET) | IN(HTTP_HEAD), api_get_image,
	"GET, HEAD, POST, DELETE"},
    {"/v1/boxes/" TOKEN "/snapshots", TOKEN, IN(HTTP_GET) | IN(HTTP_POST), not_supported,
	"GET, POST"},
    {"/v1/boxes/" TOKEN "/snapshots/s", TOKEN, IN(HTTP_GET) | IN(HTTP_DELETE), not_supported,
	"GET, DELETE"},
    {"/v1/boxes/" TOKEN "/snapshots/s/restore", TOKEN, IN(HTTP_POST), not_supported, "POST"},
    {"/v1/boxes/" TOKEN "/clone", TOKEN, IN(HTTP_POST), not_supported, "POST"},
    {"/v1/boxes/" TOKEN "/export", TOKEN, IN(HTTP_POST), not_supported, "POST"},
    {"/v1/boxes/" TOKEN "/network/tunnel", TOKEN, IN(HTTP_POST), not_supported, "POST"},
    {"/v1/boxes/import", "", IN(HTTP_POST), not_supported, "GET, HEAD, POST, DELETE"},
    {"/v1/boxes/import", "import", IN(HTTP_GET) | IN(HTTP_HEAD), api_get_box,
	"GET, HEAD, POST, DELETE"},
    {"/v1/boxes/import", "import", IN(HTTP_DELETE), api_delete_box, "GET, HEAD, POST, DELETE"},
};

#define PROMISES (sizeof(promises) / sizeof(promises[0]))

static int find(
    enum http_method method, const char *path, struct route_match *m, struct route_error *error)
{
	*m = (struct route_match){0};
	*error = (struct route_error){0};
	return route_find(&(struct http_head){.method = method, .path = path}, m, error);
}

static uint32_t methods_of(const char *path)
{
	uint32_t methods = 0;

	for (size_t i = 0; i < PROMISES; i++)
		methods |= !strcmp(promises[i].path, path) ? promises[i].methods : 0;
	return methods;
}

static void test_every_row_is_found(void **state)
{
	struct route_error error;
	struct route_match m;

	(void)state;
	for (size_t i = 0; i < PROMISES; i++) {
		const struct promise *p = &promises[i];

		for (unsigned int method = 0; method < HTTP_METHODS; method++) {
			if (!(p->methods & IN(method)))
				continue;
			if (find((enum http_method)method, p->path, &m, &error) < 0)
				fail_msg("%u %s: %s", method, p->path, error.text);
			assert_string_equal(m.id, p->id);
			assert_int_equal(m.route->handed_over, p->fn == NULL);
			assert_int_equal(m.route->unsupported != NULL, p->fn == not_supported);
			assert_int_equal(m.route->open, !strcmp(p->path, "/v1/config"));
			assert_ptr_equal(m.route->fn, p->fn == not_supported ? NULL : p->fn);
		}
	}
}

static void test_other_methods_are_405_and_say_which(void **state)
{
	struct route_error error;
	struct route_match m;

	(void)state;
	for (size_t i = 0; i < PROMISES; i++) {
		const struct promise *p = &promises[i];

		for (unsigned int method = 0; method < HTTP_METHODS; method++) {
			if (methods_of(p->path) & IN(method))
				continue;
			assert_int_equal(find((enum http_method)method, p->path, &m, &error), -1);
			assert_int_equal(error.error, API_METHOD);
			assert_non_null(error.allow);
			assert_string_equal(error.allow, p->allow);
			assert_non_null(strstr(error.text, "not allowed"));
			assert_null(m.route);
		}
	}
	assert_int_equal(find(HTTP_PUT, "/v1/pool", &m, &error), -1);
	assert_string_equal(error.text, "the method PUT is not allowed here");
	assert_int_equal(find(HTTP_OTHER, "/v1/pool", &m, &error), -1);
	assert_string_equal(error.text, "the method of this request is not allowed here");
}

static void assert_refused(const char *path, enum api_error expected)
{
	struct route_error error;
	struct route_match m;

	for (unsigned int method = 0; method < HTTP_METHODS; method++) {
		if (find((enum http_method)method, path, &m, &error) == 0)
			fail_msg("%s was found", path);
		assert_int_equal(error.error, expected);
		assert_null(error.allow);
		assert_true(error.text[0] != '\0');
	}
}

static void test_nothing_is_there(void **state)
{
	static const char *const paths[] = {
	    "/", "/v1", "/v2/pool", "/V1/pool", "/pool", "/acquire", "/v1/Pool", "/v1/poo",
	    "/v1/pools", "/v1/pool/reset/now", "/v1/pool/start", "/v1/acquire/x", "/v1/box",
	    "/v1/boxes/x/runs", "/v1/boxes/x/run/now", "/v1/boxes/x/exec/now",
	    "/v1/boxes/x/start/now", "/v1/boxes/x/stopp", "/v1/boxes/x/release/now",
	    "/v1/boxes/x/y/fs", "/v1/boxes/x/FS/read", "/v1/shutdown/x", "/v1/:", "/v1/*",
	    "/v1%2Fpool", /* one segment, with a slash in it */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_refused(paths[i], API_NOT_FOUND);
}

/* Nobody has an empty name. And what else there is not. */
static void test_nothing_is_there_either(void **state)
{
	static const char *const paths[] = {"/v1/pool/", "/v1/boxes/", "/v1/", "/metrics/",
	    "/metrics/x", "/config", "/v1/v1/config", "/v1/boxes/x/snapshots/s/restore/now",
	    "/v1/boxes/x/snapshot", "/v1/boxes/x/network", "/v1/images/x/y"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_refused(paths[i], API_NOT_FOUND);
}

static void test_no_path(void **state)
{
	static const char *const paths[] = {
	    "", "v1/pool", "*", "//v1/pool", "/v1//pool", "/v1/pool//", "/v1/boxes//run",
	    "/v1/boxes/./run", "/v1/boxes/../pool", "/v1/boxes/%2e%2e/pool", "/v1/boxes/%/run",
	    "/v1/boxes/%g0/run", "/v1/boxes/a%00b/run",
	    "/v1/boxes/x/fs/3/4/5/6/7/8/9/10/11/12/13", /* deeper than anything served */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_refused(paths[i], API_INVALID_ARGUMENT);
}

/* Which box an id names, if any, is not looked at here: it comes out as it was meant. */
static void test_ids_of_all_forms(void **state)
{
	static const char *const ids[][2] = {
	    {TOKEN, TOKEN},
	    {"1000:" TOKEN, "1000:" TOKEN},
	    {"1000%3A" TOKEN, "1000:" TOKEN},
	    {"1000%3a" TOKEN, "1000:" TOKEN},
	    {"%30%31", "01"},
	    {"a%2Fb", "a/b"},
	    {"a+b", "a+b"},
	    {"a%20b", "a b"},
	    {"release", "release"},
	    {":", ":"},
	    {"*", "*"},
	    {"...", "..."},
	    {"%C3%A4", "\xc3\xa4"},
	    {"%ff", "\xff"},
	};
	static const char *const after[] = {"", "/release", "/run", "/fs/read"};
	struct route_error error;
	struct route_match m;
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		for (size_t j = 0; j < sizeof(after) / sizeof(after[0]); j++) {
			(void)snprintf(path, sizeof(path), "/v1/boxes/%s%s", ids[i][0], after[j]);
			assert_int_equal(find(j == 0 ? HTTP_GET : HTTP_POST, path, &m, &error), 0);
			assert_string_equal(m.id, ids[i][1]);
		}
	}
}

static void test_words_may_be_escaped_too(void **state)
{
	struct route_error error;
	struct route_match m;

	(void)state;
	assert_int_equal(find(HTTP_POST, "/%761/p%6fol/rese%74", &m, &error), 0);
	assert_ptr_equal(m.route->fn, api_reset_pool);
}

static void test_ids_that_are_too_long(void **state)
{
	struct route_error error;
	struct route_match m;
	char path[700];

	(void)state;
	for (size_t len = 1; len < 600; len++) {
		int begin = snprintf(path, sizeof(path), "/v1/boxes/");

		memset(path + begin, 'a', len);
		(void)snprintf(path + begin + len, sizeof(path) - (size_t)begin - len, "/run");
		if (find(HTTP_POST, path, &m, &error) == 0) {
			assert_true(len < sizeof(m.id));
			assert_int_equal(strlen(m.id), len);
			continue;
		}
		assert_true(len >= sizeof(m.id));
		assert_null(m.route);
		/* A box with such a name there cannot be; past a length it is no path at all. */
		if (len < 400)
			assert_int_equal(error.error, API_NOT_FOUND);
		else if (len > ROUTE_TEXT)
			assert_int_equal(error.error, API_INVALID_ARGUMENT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_row_is_found),
	    cmocka_unit_test(test_other_methods_are_405_and_say_which),
	    cmocka_unit_test(test_nothing_is_there),
	    cmocka_unit_test(test_nothing_is_there_either),
	    cmocka_unit_test(test_no_path),
	    cmocka_unit_test(test_ids_of_all_forms),
	    cmocka_unit_test(test_words_may_be_escaped_too),
	    cmocka_unit_test(test_ids_that_are_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
