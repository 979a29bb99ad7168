/* bench_turns: clients, each a thread with a connection of its own. Threads that wait are the
 * simplest that measures right: a client does nothing but wait for its answer, as an agent does.
 * sbxbench; when it dies the rows so far are written. */
#include "tools/bench_turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/bench.h"
#include "tools/bench_turn.h"

#define ROW_MAX 8192U

struct run {
	const struct bench_plan *plan;
	const char *socket;
	int cancel_fd;
	_Atomic uint32_t next; /* iteration */
	atomic_bool gone;      /* the service: turns are no longer tried */
	atomic_bool stopped;   /* no more turns */
	struct bench_client holder;
	struct bench_box held;

	pthread_mutex_t lock; /* for the rest */
	int out_fd;
	int error; /* -errno of writing rows */
	struct bench_counts counts;
	struct samples acquire;
	struct samples total;
};

/* ---- rows ---- */

static int write_row(struct run *r, const struct bench_row *row)
{
	struct buf line;
	int rc;

	buf_init(&line, ROW_MAX);
	rc = bench_row_put(r->plan, row, &line);
	while (rc == 0 && line.len > 0) {
		ssize_t n = buf_write_fd(&line, r->out_fd);

		if (n < 0 && n != -EINTR)
			rc = (int)n;
	}
	buf_free(&line);
	return rc;
}

static void count(struct run *r, const struct bench_row *row)
{
	if (!row->success) {
		r->counts.failed++;
		return;
	}
	r->counts.ok++;
	r->counts.warm += row->warm_hit == 1;
	samples_add(&r->acquire, (uint64_t)(row->acquire_ms * 1e6));
	samples_add(&r->total, (uint64_t)(row->total_ms * 1e6));
}

static void emit(struct run *r, const struct bench_row *row)
{
	(void)pthread_mutex_lock(&r->lock); /* our own, and sound */
	count(r, row);
	if (r->error == 0)
		r->error = write_row(r, row);
	if (r->error)
		r->stopped = true;
	(void)pthread_mutex_unlock(&r->lock);
}

/* ---- turns ---- */

/* After a failure: is there still somebody to ask? */
static void look_for_service(struct run *r, int rc)
{
	if (rc == -ECANCELED) {
		r->stopped = true;
		return;
	}
	if (rc != 0 && rc != -EIO && !bench_serves(r->socket))
		r->gone = true;
}

static void check_held(struct run *r, struct bench_row *row)
{
	struct err err;

	(void)pthread_mutex_lock(&r->lock);
	if (bench_hold_check(&r->holder, &r->held, &err) < 0)
		bench_row_fail(row, "replica_pressure", &err);
	(void)pthread_mutex_unlock(&r->lock);
}

static void turn(struct run *r, struct bench_client *cl, uint32_t i, struct bench_box *box,
    const struct err *before)
{
	struct bench_row row;
	int rc = 0;

	if (r->gone) {
		bench_turn_refuse(r->plan, i, "the service is gone", &row);
	} else {
		rc = bench_turn(cl, r->plan, i, &row, box);
		if (before)
			bench_row_fail(&row, r->plan->scenario->name, before);
		if (r->plan->scenario->holds && rc == 0)
			check_held(r, &row);
	}
	look_for_service(r, rc);
	emit(r, &row);
	if (r->plan->has_fault && r->plan->fault_after == i)
		bench_inject_fault(cl, box);
}

/* Two turns of one thread, whose box has to be gone in between. */
static void pair_of_turns(struct run *r, struct bench_client *cl, uint32_t i)
{
	struct bench_box box = {.generation = 0};
	struct err err;
	int rc = 0;

	turn(r, cl, 2 * i, &box, NULL);
	if (*box.id && !r->gone && !r->stopped)
		rc = bench_await_idle_close(cl, r->plan, &box, &err);
	look_for_service(r, rc == -ETIMEDOUT ? 0 : rc);
	turn(r, cl, 2 * i + 1, &box, rc < 0 ? &err : NULL);
}

static void *client_main(void *arg)
{
	struct run *r = arg;
	struct bench_client cl;
	uint32_t i;

	bench_client_init(&cl, r->socket, r->cancel_fd, r->plan->timeout);
	while (!r->stopped && (i = r->next++) < r->plan->iterations) {
		struct bench_box box = {.generation = 0};

		if (r->plan->scenario->pairs)
			pair_of_turns(r, &cl, i);
		else
			turn(r, &cl, i, &box, NULL);
	}
	bench_client_close(&cl);
	return NULL;
}

/* ---- the run ---- */

/* Turns that are not measured. They are of another thread, and make what is made once. */
static void warm_up(const struct run *r)
{
	struct bench_plan plan = *r->plan;
	struct bench_client cl;
	struct bench_row row;

	plan.scenario = &bench_scenario_warmup;
	plan.workload = bench_workload_find("noop");
	bench_client_init(&cl, r->socket, r->cancel_fd, plan.timeout);
	for (uint32_t i = 0; i < plan.warmup; i++) {
		if (bench_turn(&cl, &plan, i, &row, NULL) < 0)
			(void)fprintf(stderr, "sbxbench: warm-up: %s\n", row.error);
	}
	bench_client_close(&cl);
}

static int run_clients(struct run *r, struct err *err)
{
	uint32_t n = r->plan->concurrency;
	pthread_t *threads = calloc(n, sizeof(*threads));
	uint32_t started = 0;
	int rc = 0;

	if (!threads)
		return err_sys(err, ENOMEM, "clients");
	while (rc == 0 && started < n) {
		rc = pthread_create(&threads[started], NULL, client_main, r);
		started += rc == 0;
	}
	if (rc)
		r->stopped = true;
	for (uint32_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL); /* each of its waits is bounded */
	free(threads);
	return rc ? err_sys(err, rc, "a thread for each of %u clients", n) : 0;
}

static void print_summary(struct run *r)
{
	static const double q[] = {0.5, 0.95, 0.99};
	const struct bench_counts *c = &r->counts;
	struct samples *const of[] = {&r->acquire, &r->total};
	static const char *const names[] = {"acquire", "total"};

	(void)fprintf(stderr, "%u turns: %u ok, %u failed; warm hits: %u\n", c->ok + c->failed,
	    c->ok, c->failed, c->warm);
	for (size_t i = 0; c->ok && i < 2; i++)
		(void)fprintf(stderr, "%-8s p50 %.3f ms, p95 %.3f ms, p99 %.3f ms\n", names[i],
		    samples_ms(of[i], q[0]), samples_ms(of[i], q[1]), samples_ms(of[i], q[2]));
}

int bench_turns(const struct bench_plan *p, const char *socket, int cancel_fd, int out_fd,
    struct bench_counts *counts, struct err *err)
{
	struct run r = {.plan = p, .socket = socket, .cancel_fd = cancel_fd, .out_fd = out_fd};
	int rc = 0;

	(void)pthread_mutex_init(&r.lock, NULL); /* cannot fail with these attributes */
	warm_up(&r);
	bench_client_init(&r.holder, socket, cancel_fd, p->timeout);
	if (p->scenario->holds)
		rc = bench_hold(&r.holder, p, &r.held, err);
	if (rc == 0)
		rc = run_clients(&r, err);
	bench_client_close(&r.holder);
	if (rc == 0 && r.error)
		rc = err_sys(err, -r.error, "writing rows");
	print_summary(&r);
	r.counts.stopped = r.stopped;
	*counts = r.counts;
	samples_free(&r.acquire);
	samples_free(&r.total);
	(void)pthread_mutex_destroy(&r.lock);
	return rc < 0 ? rc : 0;
}
