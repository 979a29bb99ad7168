/* Tests of supervisor/make_request.c: what POST /v1/boxes takes, and what it refuses, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/make_request.h"
#include "wire/control.h"
#include "wire/json.h"

struct taken {
	json_t *body;
	struct make_request r;
	enum api_error e;
	struct err err;
	int rc;
};

static void take(struct taken *t, const char *json)
{
	*t = (struct taken){.e = API_OK};
	t->body = json_parse_object((const uint8_t *)json, strlen(json), &t->err);
	if (!t->body)
		fail_msg("%s: %s", json, t->err.text);
	t->rc = make_request_take(t->body, &t->r, &t->e, &t->err);
}

static void test_nothing_is_needed(void **state)
{
	struct taken t;

	(void)state;
	take(&t, "{}");
	assert_int_equal(t.rc, 0);
	assert_null(t.r.name);
	assert_null(t.r.image);
	assert_null(t.r.env);
	assert_int_equal(t.r.cpus, 0);
	json_decref(t.body);
}

static void test_everything_that_can_be_had(void **state)
{
	struct taken t;

	(void)state;
	take(&t, "{\"name\":\"my-box\",\"image\":\"host\",\"cpus\":32,\"memory_mib\":128,"
		 "\"disk_size_gb\":1,\"working_dir\":\"/srv\",\"user\":\"1000:1000\","
		 "\"env\":{\"A\":\"1\",\"_b\":\"\"}}");
	assert_int_equal(t.rc, 0);
	assert_string_equal(t.r.name, "my-box");
	assert_string_equal(t.r.image, "host");
	assert_int_equal(t.r.cpus, 32);
	assert_int_equal(t.r.memory_mib, 128);
	assert_int_equal(t.r.disk_gb, 1);
	assert_string_equal(t.r.working_dir, "/srv");
	assert_string_equal(t.r.user, "1000:1000");
	assert_int_equal(json_object_size(t.r.env), 2);
	json_decref(t.body);
}

/* What means what is done anyway, or does no harm; the first three are what BoxLite's client sends.
 */
static const char *const harmless[] = {
    "{\"image\":\"alpine:latest\",\"network\":{\"outbound\":{\"mode\":\"enabled\"},"
    "\"inbound\":{\"mode\":\"enabled\"}},\"detach\":false}",
    "{\"network\":{\"outbound\":{\"mode\":\"disabled\",\"allow_net\":[]},"
    "\"inbound\":{\"mode\":\"enabled\"}}}",
    "{\"auto_stop\":60,\"auto_delete\":0,\"auto_resume\":true}",
    "{\"network\":{\"mode\":\"disabled\"},\"auto_pause\":900}",
    "{\"network\":{\"mode\":\"enabled\",\"allow_net\":null}}",
    "{\"network\":{\"outbound\":{\"mode\":\"disabled\"}}}",
    "{\"volumes\":[],\"secrets\":[],\"ports\":[],\"entrypoint\":[],\"cmd\":[]}",
    "{\"advanced\":{}}",
    "{\"advanced\":{\"capabilities\":{}}}",
    "{\"advanced\":{\"capabilities\":{\"add\":[],\"drop\":null}}}",
    "{\"security\":\"standard\"}",
    "{\"security\":\"maximum\"}",
    "{\"detach\":true}",
    "{\"volumes\":null,\"secrets\":null,\"rootfs_path\":null,\"network\":null,\"advanced\":null,"
    "\"security\":null,\"auto_delete\":null,\"auto_resume\":null,\"entrypoint\":null}",
};

static void test_harmless(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		struct taken t;

		take(&t, harmless[i]);
		if (t.rc != 0)
			fail_msg("%s: %s", harmless[i], t.err.text);
		json_decref(t.body);
	}
}

static const struct {
	const char *json;
	enum api_error e;
	const char *text; /* that the message has */
} refused[] = {
    {"{\"name\":\"\"}", API_INVALID_ARGUMENT, "name"},
    {"{\"name\":\"-a\"}", API_INVALID_ARGUMENT, "name"},
    {"{\"name\":\"a b\"}", API_INVALID_ARGUMENT, "name"},
    {"{\"name\":\"a/b\"}", API_INVALID_ARGUMENT, "name"},
    {"{\"name\":\"1000:a\"}", API_INVALID_ARGUMENT, "name"},
    {"{\"name\":7}", API_INVALID_ARGUMENT, "name"},
    {"{\"name\":\"0123456789abcdef\"}", API_INVALID_ARGUMENT, "id"},
    {"{\"cpus\":0}", API_INVALID_ARGUMENT, "cpus"},
    {"{\"cpus\":33}", API_INVALID_ARGUMENT, "cpus"},
    {"{\"cpus\":1.5}", API_INVALID_ARGUMENT, "cpus"},
    {"{\"memory_mib\":127}", API_INVALID_ARGUMENT, "memory_mib"},
    {"{\"memory_mib\":9999999999}", API_INVALID_ARGUMENT, "memory_mib"},
    {"{\"disk_size_gb\":0}", API_INVALID_ARGUMENT, "disk_size_gb"},
    {"{\"disk_size_gb\":16385}", API_INVALID_ARGUMENT, "disk_size_gb"},
    {"{\"working_dir\":\"srv\"}", API_INVALID_PATH, "working_dir"},
    {"{\"working_dir\":\"\"}", API_INVALID_PATH, "working_dir"},
    {"{\"user\":1000}", API_INVALID_ARGUMENT, "user"},
    {"{\"env\":[]}", API_INVALID_ARGUMENT, "env"},
    {"{\"env\":{\"1A\":\"\"}}", API_INVALID_ARGUMENT, "1A"},
    {"{\"env\":{\"A=B\":\"\"}}", API_INVALID_ARGUMENT, "A=B"},
    {"{\"env\":{\"\":\"\"}}", API_INVALID_ARGUMENT, "env"},
    {"{\"env\":{\"A\":1}}", API_INVALID_ARGUMENT, "\"A\""},
    {"{\"something\":{\"newer\":1}}", API_INVALID_ARGUMENT, "\"something\" is not known"},
    {"{\"memory\":512}", API_INVALID_ARGUMENT, "\"memory\" is not known"},
    {"{\"advanced\":{\"kernel\":\"x\"}}", API_INVALID_ARGUMENT, "advanced"},
    {"{\"network\":{\"mode\":\"enabled\",\"dns\":1}}", API_INVALID_ARGUMENT, "network"},
    {"{\"network\":{\"outbound\":{\"mode\":\"enabled\",\"dns\":1}}}", API_INVALID_ARGUMENT,
	"network"},
    {"{\"rootfs_path\":\"/x\"}", API_UNSUPPORTED, "rootfs_path"},
    {"{\"rootfs_path\":1}", API_INVALID_ARGUMENT, "rootfs_path"},
    {"{\"volumes\":[{\"host_path\":\"/\",\"guest_path\":\"/x\"}]}", API_UNSUPPORTED, "volumes"},
    {"{\"volumes\":{}}", API_INVALID_ARGUMENT, "volumes"},
    {"{\"secrets\":[{\"name\":\"s\",\"value\":\"v\"}]}", API_UNSUPPORTED, "secrets"},
    {"{\"ports\":[{\"guest_port\":80}]}", API_UNSUPPORTED, "ports"},
    {"{\"entrypoint\":[\"/bin/sh\"]}", API_UNSUPPORTED, "entrypoint"},
    {"{\"cmd\":[\"x\"]}", API_UNSUPPORTED, "cmd"},
    {"{\"security\":\"development\"}", API_UNSUPPORTED, "security"},
    {"{\"security\":\"none\"}", API_INVALID_ARGUMENT, "security"},
    {"{\"security\":{}}", API_INVALID_ARGUMENT, "security"},
    {"{\"advanced\":{\"capabilities\":{\"add\":[\"NET_ADMIN\"]}}}", API_UNSUPPORTED, "advanced"},
    {"{\"advanced\":{\"capabilities\":{\"drop\":[\"ALL\"]}}}", API_UNSUPPORTED, "advanced"},
    {"{\"advanced\":{\"capabilities\":{\"add\":{}}}}", API_INVALID_ARGUMENT, "advanced"},
    {"{\"advanced\":{\"capabilities\":[]}}", API_INVALID_ARGUMENT, "advanced"},
    {"{\"advanced\":[]}", API_INVALID_ARGUMENT, "advanced"},
    {"{\"network\":{}}", API_INVALID_ARGUMENT, "network"},
    {"{\"network\":\"enabled\"}", API_INVALID_ARGUMENT, "network"},
    {"{\"network\":{\"mode\":\"on\"}}", API_INVALID_ARGUMENT, "network"},
    {"{\"network\":{\"outbound\":{}}}", API_INVALID_ARGUMENT, "network"},
    {"{\"network\":{\"mode\":\"enabled\",\"allow_net\":[\"a.b\"]}}", API_UNSUPPORTED, "network"},
    {"{\"network\":{\"outbound\":{\"mode\":\"enabled\",\"allow_net\":[\"a.b\"]}}}", API_UNSUPPORTED,
	"network"},
    {"{\"auto_delete\":60}", API_UNSUPPORTED, "auto_delete"},
    {"{\"auto_delete\":-1}", API_INVALID_ARGUMENT, "auto_delete"},
    {"{\"auto_pause\":\"900\"}", API_INVALID_ARGUMENT, "auto_pause"},
    {"{\"auto_resume\":false}", API_UNSUPPORTED, "auto_resume"},
    {"{\"auto_resume\":1}", API_INVALID_ARGUMENT, "auto_resume"},
    {"{\"detach\":0}", API_INVALID_ARGUMENT, "detach"},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct taken t;

		take(&t, refused[i].json);
		if (t.rc == 0 || t.e != refused[i].e || !strstr(t.err.text, refused[i].text))
			fail_msg("%s: %d, error %d, \"%s\"", refused[i].json, t.rc, (int)t.e,
			    t.err.text);
		json_decref(t.body);
	}
}

/* "KEY":"xxx..." of that length. */
static int take_long(const char *key, char first, size_t len)
{
	char *json = malloc(len + 64);
	struct taken t;
	int n;
	int rc;

	assert_non_null(json);
	n = sprintf(json, "{\"%s\":\"", key);
	memset(json + n, 'x', len);
	json[n] = first;
	(void)strcpy(json + n + len, "\"}");
	take(&t, json);
	rc = t.rc;
	json_decref(t.body);
	free(json);
	return rc;
}

static void test_lengths(void **state)
{
	(void)state;
	assert_int_equal(take_long("name", 'x', 128), 0);
	assert_int_not_equal(take_long("name", 'x', 129), 0);
	assert_int_equal(take_long("user", 'x', CTL_USER - 1), 0);
	assert_int_not_equal(take_long("user", 'x', CTL_USER), 0);
	assert_int_equal(take_long("working_dir", '/', CTL_WORKING_DIR - 1), 0);
	assert_int_not_equal(take_long("working_dir", '/', CTL_WORKING_DIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_is_needed),
	    cmocka_unit_test(test_everything_that_can_be_had),
	    cmocka_unit_test(test_harmless),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
