/* bench_turn: acquire, run, release, each timed. sbxbench; holds no state. */
#include "tools/bench_turn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

#define HELD_THREAD "pressure-held"

static double to_ms(uint64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

static int take_text(const json_t *o, const char *key, char out[64], struct err *err)
{
	const char *text = json_string_value(json_object_get(o, key));

	if (!text || strlen(text) >= 64)
		return err_set(err, EIO, "the answer has no %s", key);
	(void)snprintf(out, 64, "%s", text);
	return 0;
}

/* A box that was there when it was asked for, parked or in use, is a hit. */
static int take_box(json_t *answer, struct bench_box *box, int *warm_hit, struct err *err)
{
	const char *source = json_string_value(json_object_get(answer, "source"));
	int rc = take_text(answer, "box_id", box->id, err);

	if (rc == 0)
		rc = take_text(answer, "lease_id", box->lease, err);
	if (rc == 0 && !source)
		rc = err_set(err, EIO, "the answer has no source");
	if (rc == 0 && source) {
		box->generation = json_integer_value(json_object_get(answer, "generation"));
		*warm_hit = strcmp(source, "warm") == 0 || strcmp(source, "active") == 0;
	}
	json_decref(answer);
	return rc;
}

static int acquire(struct bench_client *cl, const struct bench_plan *p, struct bench_row *r,
    struct bench_box *box, struct err *err)
{
	uint64_t ns = 0;
	json_t *answer = NULL;
	int rc = bench_client_acquire(cl, BENCH_USER, r->thread, p->image, &ns, &answer, err);

	r->acquire_ms = to_ms(ns);
	return rc < 0 ? rc : take_box(answer, box, &r->warm_hit, err);
}

/* ---- the command ---- */

/* Of what the command wrote to stderr, the last line says most. */
static int fail_command(const json_t *answer, const char *what, struct err *err)
{
	const char *text = json_string_value(json_object_get(answer, "stderr"));
	const char *line = text;
	size_t n;

	for (const char *at = text; at && at[0] && at[1]; at++) {
		if (*at == '\n')
			line = at + 1;
	}
	n = line ? strcspn(line, "\n") : 0;
	return err_set(
	    err, EIO, "%s%s%.*s", what, n ? ": " : "", (int)(n > 120 ? 120 : n), line ? line : "");
}

static int judge(
    const json_t *answer, const struct bench_step *step, uint32_t pair, struct err *err)
{
	const json_t *code = json_object_get(answer, "exit_code");
	const char *out = json_string_value(json_object_get(answer, "stdout"));
	char expected[64];
	char what[64];

	if (json_is_true(json_object_get(answer, "timed_out")))
		return fail_command(answer, "the command took too long", err);
	if (!json_is_integer(code))
		return fail_command(answer, "the command was ended by a signal", err);
	(void)snprintf(
	    what, sizeof(what), "the command ended with %d", (int)json_integer_value(code));
	if (json_integer_value(code) != 0)
		return fail_command(answer, what, err);
	if (step->pair)
		(void)snprintf(expected, sizeof(expected), "%s%u\n", step->prints, pair);
	else
		(void)snprintf(
		    expected, sizeof(expected), "%s%s", step->prints, *step->prints ? "\n" : "");
	if (out && strcmp(out, expected) == 0)
		return 0;
	return err_set(err, EIO, "the command did not print '%.*s' but '%.*s'",
	    (int)strcspn(expected, "\n"), expected, out ? (int)strcspn(out, "\n") : 0,
	    out ? out : "");
}

static int run(struct bench_client *cl, const struct bench_plan *p, uint32_t i, struct bench_row *r,
    const struct bench_box *box, struct err *err)
{
	const struct bench_step *step = &p->workload->steps[i % 2];
	json_t *answer = NULL;
	char pair[16];
	uint64_t ns = 0;
	int rc;

	(void)snprintf(pair, sizeof(pair), "%u", i / 2);
	bench_client_begin(cl, "/v1/boxes/", box->id, "/run");
	bench_client_begin_body(cl);
	json_put_string(&cl->j, "command", step->command);
	json_object_begin(&cl->j, "env");
	json_put_string(&cl->j, "PAIR", pair);
	json_object_end(&cl->j);
	json_put_double(&cl->j, "timeout_seconds", p->timeout);
	rc = bench_client_call(cl, "POST", &ns, &answer, err);
	r->run_ms = to_ms(ns);
	if (rc < 0)
		return rc;
	rc = judge(answer, step, i / 2, err);
	json_decref(answer);
	return rc;
}

/* ---- the turn ---- */

static int release(
    struct bench_client *cl, struct bench_row *r, const struct bench_box *box, struct err *err)
{
	uint64_t ns = 0;
	int rc = bench_client_release(cl, box->id, box->lease, &ns, err);

	r->release_ms = to_ms(ns);
	return rc;
}

/* Keeps the first failure. */
static int note(struct bench_row *r, int before, const char *what, int rc, const struct err *err)
{
	if (rc == 0)
		return before;
	bench_row_fail(r, what, err);
	return before ? before : rc;
}

static void row_init(const struct bench_plan *p, uint32_t i, struct bench_row *r)
{
	*r = (struct bench_row){.iteration = i, .warm_hit = -1, .success = true};
	p->scenario->thread(p, i, r->thread);
}

void bench_turn_refuse(const struct bench_plan *p, uint32_t i, const char *why, struct bench_row *r)
{
	struct err err;

	row_init(p, i, r);
	(void)err_set(&err, ECONNREFUSED, "%s", why);
	bench_row_fail(r, "not tried", &err);
}

int bench_turn(struct bench_client *cl, const struct bench_plan *p, uint32_t i, struct bench_row *r,
    struct bench_box *box)
{
	struct bench_box own;
	struct err err;
	uint64_t begin;
	int rc;

	box = box ? box : &own;
	*box = (struct bench_box){.generation = 0};
	row_init(p, i, r);
	rc = note(r, 0, "connect", bench_client_connect(cl, &err), &err);
	if (rc < 0)
		return rc;
	begin = clock_now_ns();
	rc = note(r, 0, "acquire", acquire(cl, p, r, box, &err), &err);
	if (rc == 0) {
		rc = note(r, 0, "run", run(cl, p, i, r, box, &err), &err);
		/* A connection that is gone has taken the lease with it. */
		if (cl->c)
			rc = note(r, rc, "release", release(cl, r, box, &err), &err);
	}
	r->total_ms = to_ms(clock_now_ns() - begin);
	/* Somebody else may have the box by now. */
	if (p->no_warmpool && *box->id && cl->c)
		(void)bench_client_remove(cl, box->id, &err);
	return rc;
}

/* ---- a box that is in use all the time ---- */

int bench_hold(
    struct bench_client *cl, const struct bench_plan *p, struct bench_box *box, struct err *err)
{
	json_t *answer = NULL;
	int warm_hit = 0;
	int rc = bench_client_acquire(cl, BENCH_USER, HELD_THREAD, p->image, NULL, &answer, err);

	return rc < 0 ? rc : take_box(answer, box, &warm_hit, err);
}

int bench_hold_check(struct bench_client *cl, const struct bench_box *box, struct err *err)
{
	json_t *answer = NULL;
	const char *state;
	int rc = bench_client_inspect(cl, box->id, &answer, err);

	if (rc < 0)
		return rc;
	state = json_string_value(json_object_get(answer, "state"));
	if (!state || strcmp(state, "active") != 0 ||
	    json_integer_value(json_object_get(answer, "generation")) != box->generation)
		rc = err_set(err, EIO, "the box that is in use was taken away");
	json_decref(answer);
	return rc;
}
