/* bench_row: the result of a turn as a line of JSON. sbxbench; holds no state. */
#include <stdio.h>

#include "tools/bench_plan.h"
#include "wire/json.h"

void bench_row_fail(struct bench_row *r, const char *what, const struct err *err)
{
	if (!r->success)
		return;
	r->success = false;
	(void)snprintf(r->error, sizeof(r->error), "%s: %s", what, err->text);
}

static void put_known(struct json_out *j, const char *key, double value)
{
	if (value < 0)
		json_put_null(j, key);
	else
		json_put_double(j, key, value);
}

static void put_settings(const struct bench_plan *p, struct json_out *j)
{
	if (p->replicas < 0)
		json_put_null(j, "replicas");
	else
		json_put_uint(j, "replicas", (uint64_t)p->replicas);
	put_known(j, "idle_timeout", p->idle_timeout);
	put_known(j, "health_check_skip_seconds", p->skip_seconds);
	json_put_string(j, "image", p->image);
	json_put_bool(j, "no_warmpool", p->no_warmpool);
}

int bench_row_put(const struct bench_plan *p, const struct bench_row *r, struct buf *out)
{
	struct json_out j;

	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "provider", p->provider);
	json_put_string(&j, "scenario", p->scenario->name);
	json_put_string(&j, "workload", p->workload->name);
	json_put_uint(&j, "iteration", r->iteration);
	json_put_uint(&j, "concurrency", p->concurrency);
	json_put_string(&j, "thread_id", r->thread);
	json_put_string(&j, "user_id", BENCH_USER);
	json_put_double(&j, "acquire_ms", r->acquire_ms);
	json_put_double(&j, "run_ms", r->run_ms);
	json_put_double(&j, "release_ms", r->release_ms);
	json_put_double(&j, "total_ms", r->total_ms);
	if (r->warm_hit < 0)
		json_put_null(&j, "warm_hit");
	else
		json_put_bool(&j, "warm_hit", r->warm_hit);
	json_put_bool(&j, "success", r->success);
	json_put_string(&j, "error", r->success ? NULL : r->error);
	put_settings(p, &j);
	json_object_end(&j);
	return json_out_error(&j) ? json_out_error(&j) : buf_puts(out, "\n");
}
