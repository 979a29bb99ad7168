/* selftest: helpers, and the groups one after the other. */
#include "tests/drivers/fake_boxlite/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"

#define WAIT_NS (60 * NS_PER_S)
#define URL "http://127.0.0.1:8100"

char self_home[64] = "/tmp/fake-boxlite-XXXXXX";

void self_knobs(const char *text)
{
	char all[512];

	(void)snprintf(all, sizeof(all), "%s%surl=%s,key=secret,prefix=team,remote_home=%s/remote",
	    text, *text ? "," : "", URL, self_home);
	assert_int_equal(setenv("FAKE_BOXLITE", all, 1), 0);
}

struct runtime *self_runtime(void)
{
	struct blx_error err = {0};
	struct runtime *rt = NULL;

	if (boxlite_runtime_new(self_home, NULL, 0, &rt, &err) != BLX_OK)
		fail_msg("%s", err.message);
	return rt;
}

struct runtime *self_remote(const char *url, const char *key, const char *prefix)
{
	struct rest_options *o = NULL;
	struct credential *c = NULL;
	struct runtime *rt = NULL;

	assert_int_equal(boxlite_rest_options_new(url ? url : URL, &o, NULL), BLX_OK);
	assert_int_equal(boxlite_api_key_credential_new(key, &c, NULL), BLX_OK);
	boxlite_rest_options_set_credential(o, c);
	boxlite_credential_free(c);
	boxlite_rest_options_set_path_prefix(o, prefix);
	assert_int_equal(boxlite_rest_runtime_new_with_options(o, &rt, NULL), BLX_OK);
	boxlite_rest_options_free(o);
	return rt;
}

static void drain_until(struct runtime *rt, const int *count)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	while (*(volatile const int *)count == 0) {
		assert_true(boxlite_runtime_drain(rt, 5, NULL) >= 0);
		assert_true(clock_now_ns() < end);
	}
}

void self_await(struct runtime *rt, const struct told *t)
{
	drain_until(rt, &t->count);
	assert_int_equal(t->count, 1);
}

static void told(struct told *t, const struct blx_error *err)
{
	t->code = err->code;
	(void)snprintf(t->message, sizeof(t->message), "%s", err->message ? err->message : "");
	(void)__atomic_fetch_add(&t->count, 1, __ATOMIC_RELEASE); /* a thread may wait for it */
}

void told_done(struct blx_error *err, void *user)
{
	told(user, err);
}

void told_box(struct box *box, struct blx_error *err, void *user)
{
	((struct told *)user)->box = box;
	told(user, err);
}

void told_made(struct box *box, bool made, struct blx_error *err, void *user)
{
	((struct told *)user)->box = box;
	((struct told *)user)->made = made;
	told(user, err);
}

void told_info(struct blx_info *info, struct blx_error *err, void *user)
{
	struct told *t = user;

	if (info) {
		t->info = *info;
		(void)snprintf(t->status, sizeof(t->status), "%s", info->status);
		(void)snprintf(t->name, sizeof(t->name), "%s", info->name ? info->name : "");
	}
	boxlite_free_box_info(info);
	told(t, err);
}

void told_list(struct blx_info_list *list, struct blx_error *err, void *user)
{
	((struct told *)user)->number = list ? list->count : -1;
	boxlite_free_box_info_list(list);
	told(user, err);
}

void told_pulled(struct blx_pulled *pulled, struct blx_error *err, void *user)
{
	((struct told *)user)->number = pulled ? pulled->layer_count : -1;
	boxlite_free_image_pull_result(pulled);
	told(user, err);
}

void told_exit_of_wait(int code, struct blx_error *err, void *user)
{
	((struct told *)user)->number = code;
	told(user, err);
}

struct options *self_options(const char *name, bool detach)
{
	struct options *o = NULL;

	assert_int_equal(boxlite_options_new("debian:12", &o, NULL), BLX_OK);
	boxlite_options_set_name(o, name);
	boxlite_options_set_auto_remove(o, 0);
	boxlite_options_set_detach(o, detach);
	return o;
}

enum blx_code self_start(struct runtime *rt, struct box *box)
{
	struct told t = {0};

	assert_int_equal(boxlite_start_box(box, told_done, &t, NULL), BLX_OK);
	self_await(rt, &t);
	return t.code;
}

enum blx_code self_stop(struct runtime *rt, struct box *box)
{
	struct told t = {0};

	assert_int_equal(boxlite_stop_box(box, told_done, &t, NULL), BLX_OK);
	self_await(rt, &t);
	return t.code;
}

enum blx_code self_remove(struct runtime *rt, const char *name, bool force)
{
	struct told t = {0};

	assert_int_equal(boxlite_remove(rt, name, force, told_done, &t, NULL), BLX_OK);
	self_await(rt, &t);
	return t.code;
}

enum blx_code self_info(struct runtime *rt, const char *name, struct told *t)
{
	*t = (struct told){0};
	assert_int_equal(boxlite_get_info(rt, name, told_info, t, NULL), BLX_OK);
	self_await(rt, t);
	return t->code;
}

struct box *self_box(struct runtime *rt, const char *name, bool detach)
{
	struct told t = {0};

	assert_int_equal(
	    boxlite_create_box(rt, self_options(name, detach), told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_OK);
	assert_int_equal(self_start(rt, t.box), BLX_OK);
	return t.box;
}

/* ---- commands ---- */

static void on_stdout(const uint8_t *data, size_t len, void *user)
{
	struct output *o = user;

	o->late = o->late || o->exits;
	o->chunks++;
	assert_true(o->len + len < OUT_MAX);
	memcpy(o->out + o->len, data, len);
	o->len += len;
	o->out[o->len] = '\0';
}

static void on_stderr(const uint8_t *data, size_t len, void *user)
{
	struct output *o = user;

	(void)data;
	o->late = o->late || o->exits;
	o->err_len += len;
}

static void on_exit_code(int code, void *user)
{
	struct output *o = user;

	o->exits++;
	o->exit_code = code;
}

struct execution *self_exec(struct box *box, const struct blx_command *cmd, struct output *o)
{
	struct execution *x = NULL;
	struct blx_error err = {0};

	o->len = o->err_len = 0;
	o->chunks = o->exits = 0;
	o->late = false;
	if (boxlite_box_exec(box, cmd, &x, &err) != BLX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(boxlite_execution_on_stdout(x, on_stdout, o, NULL), BLX_OK);
	assert_int_equal(boxlite_execution_on_stderr(x, on_stderr, o, NULL), BLX_OK);
	assert_int_equal(boxlite_execution_on_exit(x, on_exit_code, o, NULL), BLX_OK);
	return x;
}

void self_await_exit(struct runtime *rt, const struct output *o)
{
	drain_until(rt, &o->exits);
	assert_int_equal(o->exits, 1);
	assert_false(o->late);
}

int self_shell(
    struct runtime *rt, struct box *box, const char *line, const char *input, struct output *o)
{
	const char *args[] = {"-c", line};
	struct blx_command cmd = {.command = "sh", .args = args, .argc = 2};
	struct execution *x = self_exec(box, &cmd, o);

	assert_int_equal(
	    boxlite_execution_stdin_write(x, (const uint8_t *)input, strlen(input), NULL), BLX_OK);
	assert_int_equal(boxlite_execution_stdin_close(x, NULL), BLX_OK);
	self_await_exit(rt, o);
	boxlite_execution_free(x);
	return o->exit_code;
}

int main(void)
{
	char line[128];
	int failed;

	if (!mkdtemp(self_home))
		return 1;
	self_knobs("");
	failed = selftest_life() + selftest_exec() + selftest_knobs();
	(void)snprintf(line, sizeof(line), "rm -r %s", self_home);
	return system(line) != 0 || failed != 0;
}
