/* job: one thread for each call that ends in a callback. They finish in any order, some late. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/drivers/fake_boxlite/fake.h"

#define JOB_STACK (1024 * 1024)
#define JOB_LATE_US 1500 /* at most, when nothing else was asked for */

struct job *job_new(struct runtime *rt, enum knob_op op, void (*call)(struct event *e), void *cb,
    void *user, enum blx_code (*work)(struct job *j))
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	j->rt = runtime_ref(rt);
	j->op = op;
	j->work = work;
	j->event = event_new(call, cb, user);
	return j;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	event_free(j->event);
	if (j->execution)
		exec_unref(j->execution);
	boxlite_box_free(j->box);
	boxlite_options_free(j->options);
	runtime_unref(j->rt);
	free(j->a);
	free(j->b);
	free(j);
}

static void sleep_us(unsigned int us)
{
	struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

	(void)nanosleep(&t, NULL);
}

static void job_fail(struct job *j, enum blx_code code, const char *message)
{
	boxlite_error_free(&j->event->err);
	j->event->err.code = code;
	j->event->err.message = message ? strdup(message) : NULL;
}

struct posted {
	struct job *job;
	struct knob knob;
};

static void *job_run(void *arg)
{
	struct posted *p = arg;
	struct job *j = p->job;
	struct runtime *rt = j->rt; /* the thread's, too */
	struct event *e;

	sleep_us(p->knob.action == KNOB_LATE ? (unsigned int)p->knob.number * 1000
					     : runtime_random(rt, JOB_LATE_US));
	if (p->knob.action == KNOB_FAIL)
		job_fail(j, (enum blx_code)p->knob.number, "told to fail");
	else if (p->knob.action == KNOB_MUTE)
		job_fail(j, (enum blx_code)p->knob.number, NULL);
	else if (rt->refused)
		job_fail(j, rt->refused, rt->refusal);
	else
		(void)j->work(j);
	free(p);
	e = j->event;
	j->event = NULL;
	job_free(j);
	queue_push(rt, e);
	thread_end(rt);
	return NULL;
}

enum blx_code job_post(struct job *j, struct blx_error *err)
{
	struct knob k = knob_turn(j->op);
	struct posted *p;
	enum blx_code code = BLX_OK;

	if (k.action == KNOB_REFUSE)
		code = error_set(err, (enum blx_code)k.number, "told to refuse");
	else if (j->rt->shut)
		code = error_set(err, BLX_STOPPED, "the runtime was shut down");
	if (code != BLX_OK || k.action == KNOB_STALL) {
		job_free(j);
		return code;
	}
	p = malloc(sizeof(*p));
	if (!p)
		abort();
	*p = (struct posted){j, k};
	j->lie = k.action == KNOB_LIE;
	if (thread_start(j->rt, job_run, p) < 0) {
		free(p);
		job_free(j);
		return error_set(err, BLX_RESOURCE_EXHAUSTED, "no thread");
	}
	return BLX_OK;
}

enum blx_code call_check(
    const void *handle, const char *handle_name, const void *cb, bool has_cb, struct blx_error *err)
{
	if (!handle)
		return error_set(err, BLX_INVALID_ARGUMENT, "%s is null", handle_name);
	if (has_cb && !cb)
		return error_set(err, BLX_INVALID_ARGUMENT, "cb is null");
	return BLX_OK;
}

enum blx_code call_begin_knob(enum knob_op op, struct knob *k, struct blx_error *err)
{
	*k = knob_turn(op);
	if (k->action == KNOB_STALL) {
		for (;;)
			(void)pause();
	}
	if (k->action == KNOB_LATE)
		sleep_us((unsigned int)k->number * 1000);
	if (k->action == KNOB_MUTE && err)
		*err = (struct blx_error){(enum blx_code)k->number, NULL};
	if (k->action == KNOB_FAIL || k->action == KNOB_REFUSE)
		return error_set(err, (enum blx_code)k->number, "told to fail");
	return k->action == KNOB_MUTE ? (enum blx_code)k->number : BLX_OK;
}

enum blx_code call_begin(enum knob_op op, struct blx_error *err)
{
	struct knob k;

	return call_begin_knob(op, &k, err);
}

void call_done(struct event *e)
{
	((blx_done_fn *)e->cb)(&e->err, e->user);
}

int thread_start(struct runtime *rt, void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	(void)pthread_mutex_lock(&rt->lock);
	rt->jobs++;
	rt->refs++;
	(void)pthread_mutex_unlock(&rt->lock);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, JOB_STACK);
	rc = pthread_create(&thread, &attr, fn, arg);
	(void)pthread_attr_destroy(&attr);
	if (rc)
		thread_end(rt);
	return -rc;
}

/* Both at once: whoever has seen that there are no jobs has the last reference, and with it the
 * lock on the home, if it is the owner. */
void thread_end(struct runtime *rt)
{
	(void)pthread_mutex_lock(&rt->lock);
	rt->jobs--;
	(void)pthread_cond_broadcast(&rt->change);
	runtime_unref_locked(rt);
}
