/* loop: one thread around epoll, with timers in a binary heap. Any process; dies with it. */
#include "lib/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"

#define LOOP_BATCH 64

struct loop {
	int epfd;
	bool quit;
	uint64_t now;
	struct loop_timer **heap; /* heap[0] is unused, heap[1] is the earliest */
	size_t timers;
	size_t heap_cap;
	struct epoll_event batch[LOOP_BATCH];
	int batch_len;
	int batch_pos;
};

struct loop *loop_create(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0) {
		free(l);
		return NULL;
	}
	l->now = clock_now_ns();
	return l;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	fd_close(&l->epfd);
	free(l->heap);
	free(l);
}

int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events, loop_watch_fn *fn)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	w->events = events;
	w->fn = fn;
	return 0;
}

int loop_mod(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (w->events == events)
		return 0;
	if (epoll_ctl(l->epfd, EPOLL_CTL_MOD, w->fd, &ev) < 0)
		return -errno;
	w->events = events;
	return 0;
}

void loop_del(struct loop *l, struct loop_watch *w)
{
	if (w->fd < 0)
		return;
	(void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, w->fd, NULL); /* fails only when it is not there */
	w->fd = -1;
	/* An event of this round may still name it: its owner may be freed before we get there. */
	for (int i = l->batch_pos; i < l->batch_len; i++) {
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
	}
}

static void heap_put(struct loop *l, size_t pos, struct loop_timer *t)
{
	l->heap[pos] = t;
	t->pos = pos;
}

static void heap_up(struct loop *l, size_t pos)
{
	struct loop_timer *t = l->heap[pos];

	while (pos > 1 && l->heap[pos / 2]->at > t->at) {
		heap_put(l, pos, l->heap[pos / 2]);
		pos /= 2;
	}
	heap_put(l, pos, t);
}

static void heap_down(struct loop *l, size_t pos)
{
	struct loop_timer *t = l->heap[pos];
	size_t child;

	while ((child = pos * 2) <= l->timers) {
		if (child < l->timers && l->heap[child + 1]->at < l->heap[child]->at)
			child++;
		if (l->heap[child]->at >= t->at)
			break;
		heap_put(l, pos, l->heap[child]);
		pos = child;
	}
	heap_put(l, pos, t);
}

static int heap_grow(struct loop *l)
{
	size_t cap = l->heap_cap ? l->heap_cap * 2 : 64;
	struct loop_timer **heap;

	if (l->timers + 2 <= l->heap_cap)
		return 0;
	heap = realloc(l->heap, cap * sizeof(struct loop_timer *));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	l->heap_cap = cap;
	return 0;
}

int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at, loop_timer_fn *fn)
{
	int rc;

	if (t->pos == 0) {
		rc = heap_grow(l);
		if (rc < 0)
			return rc;
		t->at = at;
		l->timers++;
		heap_put(l, l->timers, t);
		heap_up(l, l->timers);
	} else if (at < t->at) {
		t->at = at;
		heap_up(l, t->pos);
	} else {
		t->at = at;
		heap_down(l, t->pos);
	}
	t->fn = fn;
	return 0;
}

void loop_timer_clear(struct loop *l, struct loop_timer *t)
{
	size_t pos = t->pos;
	struct loop_timer *last;

	if (pos == 0)
		return;
	t->pos = 0;
	last = l->heap[l->timers--];
	if (last == t)
		return;
	heap_put(l, pos, last);
	heap_up(l, pos);
	heap_down(l, last->pos);
}

uint64_t loop_now(const struct loop *l)
{
	return l->now;
}

/* Milliseconds until the next timer, rounded up so that it is due when we wake. */
static int loop_wait_ms(const struct loop *l, uint64_t max_wait_ns)
{
	uint64_t wait = max_wait_ns;
	uint64_t ms;

	if (l->timers) {
		uint64_t at = l->heap[1]->at;
		uint64_t now = clock_now_ns();
		uint64_t until = at > now ? at - now : 0;

		if (until < wait)
			wait = until;
	}
	if (wait == CLOCK_NEVER)
		return -1;
	ms = wait / NS_PER_MS + (wait % NS_PER_MS != 0);
	return ms > 60000 ? 60000 : (int)ms;
}

static void loop_run_timers(struct loop *l)
{
	while (l->timers && l->heap[1]->at <= l->now) {
		struct loop_timer *t = l->heap[1];

		loop_timer_clear(l, t);
		t->fn(l, t);
	}
}

int loop_step(struct loop *l, uint64_t max_wait_ns)
{
	int n = epoll_wait(l->epfd, l->batch, LOOP_BATCH, loop_wait_ms(l, max_wait_ns));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	l->now = clock_now_ns();
	l->batch_len = n;
	for (l->batch_pos = 0; l->batch_pos < l->batch_len;) {
		struct epoll_event ev = l->batch[l->batch_pos++];
		struct loop_watch *w = ev.data.ptr;

		if (w)
			w->fn(l, w, ev.events);
	}
	l->batch_len = 0;
	loop_run_timers(l);
	return 0;
}

int loop_run(struct loop *l)
{
	int rc;

	l->quit = false;
	while (!l->quit) {
		rc = loop_step(l, CLOCK_NEVER);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void loop_quit(struct loop *l)
{
	l->quit = true;
}
