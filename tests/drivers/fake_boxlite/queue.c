/*
 * queue: callbacks on their way to the thread that drains. Only events of one stream keep their
 * order: whatever else is on its way may be overtaken, as by the threads of the real library.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/drivers/fake_boxlite/fake.h"

#define QUEUE_MAX 4096

struct event *event_new(void (*call)(struct event *e), void *cb, void *user)
{
	struct event *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	e->call = call;
	e->cb = cb;
	e->user = user;
	return e;
}

void event_free(struct event *e)
{
	if (!e)
		return;
	if (e->free_fn)
		e->free_fn(e);
	boxlite_error_free(&e->err);
	free(e->data);
	free(e);
}

/* May `e` be delivered before what `other` tells? */
static bool may_overtake(const struct event *e, const struct event *other)
{
	return !e->stream || e->stream != other->stream;
}

/* Where it goes: last, or before some of those it may overtake. */
static struct event **queue_place(struct runtime *rt, const struct event *e)
{
	struct event **place = rt->tail;
	struct event **p = &rt->head;
	unsigned int jump = rt->random % 4 ? 0 : rt->random / 4 % 3 + 1;
	char order[16];

	rt->random = rt->random * 1103515245U + 12345U;
	if (!jump || !strcmp(knob_text("order", "awkward", order, sizeof(order)), "plain"))
		return place;
	/* The last place after which nothing of its stream stands, at most `jump` from the end. */
	for (size_t left = rt->queued; *p; p = &(*p)->next, left--) {
		if (!may_overtake(e, *p))
			place = rt->tail;
		else if (left <= jump && place == rt->tail)
			place = p;
	}
	return place;
}

void queue_push(struct runtime *rt, struct event *e)
{
	struct event **place;

	(void)pthread_mutex_lock(&rt->lock);
	while (!rt->closed && rt->queued >= QUEUE_MAX)
		(void)pthread_cond_wait(&rt->change, &rt->lock);
	if (rt->closed) {
		(void)pthread_mutex_unlock(&rt->lock);
		event_free(e);
		return;
	}
	place = queue_place(rt, e);
	e->next = *place;
	*place = e;
	if (place == rt->tail)
		rt->tail = &e->next;
	rt->queued++;
	(void)pthread_cond_broadcast(&rt->change);
	(void)pthread_mutex_unlock(&rt->lock);
}

static struct event *queue_take(struct runtime *rt)
{
	struct event *e = rt->head;

	rt->head = e->next;
	if (!rt->head)
		rt->tail = &rt->head;
	rt->queued--;
	(void)pthread_cond_broadcast(&rt->change);
	return e;
}

static struct timespec after_ms(int ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (ms % 1000) * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000L;
	}
	return t;
}

/* With the lock held: true when there is an event. */
static bool queue_wait(struct runtime *rt, int timeout_ms, const struct timespec *until)
{
	while (!rt->head && !rt->closed) {
		if (timeout_ms == 0)
			return false;
		if (timeout_ms < 0)
			(void)pthread_cond_wait(&rt->change, &rt->lock);
		else if (pthread_cond_timedwait(&rt->change, &rt->lock, until) == ETIMEDOUT)
			return rt->head && !rt->closed;
	}
	return !rt->closed;
}

/*
 * The documentation has it return after it has called something. The library stays until its time
 * is over, without a bound until the runtime is freed: that is the default here.
 */
int boxlite_runtime_drain(struct runtime *rt, int timeout_ms, struct blx_error *err)
{
	struct timespec until = after_ms(timeout_ms > 0 ? timeout_ms : 0);
	struct event *e;
	char way[16];
	bool first;
	int count = 0;

	if (!rt) {
		(void)error_set(err, BLX_INVALID_ARGUMENT, "runtime is null");
		return -1;
	}
	first = !strcmp(knob_text("drain", "whole", way, sizeof(way)), "first");
	if (call_begin(KNOB_DRAIN, err) != BLX_OK)
		return -1;
	(void)pthread_mutex_lock(&rt->lock);
	rt->refs++;
	while (!(first && count && !rt->head) && queue_wait(rt, timeout_ms, &until)) {
		e = queue_take(rt);
		(void)pthread_mutex_unlock(&rt->lock);
		e->call(e);
		event_free(e);
		count++;
		(void)pthread_mutex_lock(&rt->lock);
	}
	(void)pthread_mutex_unlock(&rt->lock);
	runtime_unref(rt);
	return count;
}
