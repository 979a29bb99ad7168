/*
 * pool_due: when time alone will have something to bring about: a heap of moments. Runs in sbxd.
 *
 * The moment of a box is never later than its earliest deadline, and may be earlier when a deadline
 * was dropped: then a tick finds nothing to do for it and works its moment out anew.
 */
#include <stdlib.h>

#include "lib/log.h"
#include "supervisor/pool_int.h"

#define HEAP_MIN 64U
/* Flat, because each step up or down writes to another box, far away in memory. */
#define WAYS 8U
#define PARENT(pos) (((pos)-2) / WAYS + 1)
#define CHILD(pos) (WAYS * ((pos)-1) + 2) /* the first of WAYS */

/* Positions count from 1, so that 0 says: not in the heap. */
static void put(struct pool *p, uint32_t pos, struct pool_moment m)
{
	p->heap[pos] = m;
	m.due->pos = pos;
}

/* A hole at pos is moved up to where `at` belongs. */
static uint32_t rise(struct pool *p, uint32_t pos, uint64_t at)
{
	while (pos > 1 && p->heap[PARENT(pos)].at > at) {
		put(p, pos, p->heap[PARENT(pos)]);
		pos = PARENT(pos);
	}
	return pos;
}

/* The earliest below pos; 0 when nothing is there. */
static uint32_t first_child(const struct pool *p, uint32_t pos)
{
	uint32_t end = CHILD(pos) + WAYS - 1;
	uint32_t first = CHILD(pos);

	if (first > p->heap_count)
		return 0;
	if (end > p->heap_count)
		end = p->heap_count;
	for (uint32_t i = first + 1; i <= end; i++) {
		if (p->heap[i].at < p->heap[first].at)
			first = i;
	}
	return first;
}

/* And down. */
static uint32_t sink(struct pool *p, uint32_t pos, uint64_t at)
{
	uint32_t child;

	while ((child = first_child(p, pos)) && p->heap[child].at < at) {
		put(p, pos, p->heap[child]);
		pos = child;
	}
	return pos;
}

static void grow(struct pool *p)
{
	uint32_t size = p->heap_size ? 2 * p->heap_size : HEAP_MIN;
	struct pool_moment *heap = reallocarray(p->heap, size, sizeof(struct pool_moment));

	INVARIANT(heap != NULL);
	p->heap = heap;
	p->heap_size = size;
}

void pool_expect(struct pool *p, struct pool_due *d, uint64_t at)
{
	uint32_t pos = d->pos;

	if (at == CLOCK_NEVER || (pos && d->at <= at))
		return;
	if (!pos) {
		if (p->heap_count + 1 >= p->heap_size)
			grow(p);
		pos = ++p->heap_count;
	}
	d->at = at;
	put(p, rise(p, pos, at), (struct pool_moment){at, d});
}

void pool_unexpect(struct pool *p, struct pool_due *d)
{
	uint32_t pos = d->pos;
	struct pool_moment last;

	if (!pos)
		return;
	d->pos = 0;
	last = p->heap[p->heap_count--];
	if (last.due == d)
		return;
	pos = rise(p, pos, last.at);
	put(p, sink(p, pos, last.at), last);
}

struct pool_due *pool_due_take(struct pool *p, uint64_t now)
{
	struct pool_due *d = p->heap_count ? p->heap[1].due : NULL;

	if (!d || d->at > now)
		return NULL;
	pool_unexpect(p, d);
	return d;
}

uint64_t pool_deadline(const struct pool *p)
{
	return p->heap_count ? p->heap[1].at : CLOCK_NEVER;
}

void pool_limit(struct pool *p, struct pool_box *b, uint64_t deadline)
{
	b->deadline = deadline;
	pool_expect(p, &b->due, deadline);
}
