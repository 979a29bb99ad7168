/*
 * pool_lease: leases: given, found by the connection they are tied to, ended. Runs in sbxd; a
 * successor finds them in the table, each at its place.
 */
#include <stdlib.h>

#include "lib/log.h"
#include "supervisor/pool_int.h"

#define PLACE_BITS 64U

static struct pool_tied *tied_bucket(const struct pool *p, uint64_t cookie)
{
	return &p->tied[(uint32_t)(cookie ^ cookie >> 32) & p->hash_mask];
}

/* The lowest place that is free; the box has one. */
static uint16_t lowest_place(const struct pool_box *b)
{
	uint32_t word = 0;

	while (b->places[word] == UINT64_MAX)
		word++;
	return (uint16_t)(word * PLACE_BITS + (uint32_t)__builtin_ctzll(~b->places[word]));
}

static uint64_t *place_word(struct pool_box *b, uint32_t place)
{
	return &b->places[place / PLACE_BITS];
}

static uint64_t place_bit(uint32_t place)
{
	return UINT64_C(1) << place % PLACE_BITS;
}

struct pool_lease *pool_lease_give(
    struct pool *p, struct pool_box *b, uint64_t id, uint64_t cookie, uint64_t expires)
{
	struct pool_lease *l = calloc(1, sizeof(*l));

	INVARIANT(l != NULL && b->lease_count < POOL_LEASES);
	l->id = id;
	l->cookie = cookie;
	l->expires = expires;
	l->box = b;
	l->place = lowest_place(b);
	*place_word(b, l->place) |= place_bit(l->place);
	TAILQ_INSERT_TAIL(&b->leases, l, link);
	if (cookie)
		LIST_INSERT_HEAD(tied_bucket(p, cookie), l, tied_link);
	b->lease_count++;
	pool_expect(p, &b->due, expires);
	pool_touch(p, b);
	return l;
}

void pool_lease_put(struct pool_lease *l, uint16_t place)
{
	struct pool_box *b = l->box;

	if (place >= POOL_LEASES || (*place_word(b, place) & place_bit(place)))
		return;
	*place_word(b, l->place) &= ~place_bit(l->place);
	*place_word(b, place) |= place_bit(place);
	l->place = place;
}

void pool_lease_free(struct pool_lease *l)
{
	struct pool_box *b = l->box;

	*place_word(b, l->place) &= ~place_bit(l->place);
	TAILQ_REMOVE(&b->leases, l, link);
	if (l->cookie)
		LIST_REMOVE(l, tied_link);
	b->lease_count--;
	free(l);
}

void pool_lease_end(struct pool *p, struct pool_lease *l, const char *why)
{
	struct pool_box *b = l->box;

	pool_lease_free(l);
	pool_record(p, EVENT_RELEASE, b, 0, why);
	pool_touch(p, b);
}

void pool_drop_leases(struct pool *p, struct pool_box *b, const char *why)
{
	struct pool_lease *l;

	while ((l = TAILQ_FIRST(&b->leases)))
		pool_lease_end(p, l, why);
}

/* The next lease in a bucket that is tied to that connection, or NULL. */
static struct pool_lease *tied_lease(const struct pool *p, uint64_t cookie)
{
	struct pool_lease *l;

	LIST_FOREACH (l, tied_bucket(p, cookie), tied_link) {
		if (l->cookie == cookie)
			break;
	}
	return l;
}

void pool_conn_gone(struct pool *p, uint64_t now, uint64_t cookie)
{
	struct pool_lease *l;

	if (cookie == 0)
		return; /* the mark of leases that are tied to none */
	/* From the start each time: a box that is parked may make way for another, with a new
	 * lease. */
	while ((l = tied_lease(p, cookie))) {
		struct pool_box *b = l->box;

		pool_lease_end(p, l, "its connection is gone");
		pool_settle(p, now, b, true, "its client is gone");
	}
}

void pool_drop_tied(
    struct pool *p, uint64_t now, bool (*lives)(void *ctx, uint64_t cookie), void *ctx)
{
	for (uint32_t i = 0; i < p->rules.slots; i++) {
		struct pool_lease *l;
		struct pool_lease *next;

		TAILQ_FOREACH_SAFE (l, &p->boxes[i].leases, link, next) {
			if (l->cookie && !lives(ctx, l->cookie))
				pool_lease_end(p, l, "its connection is gone");
		}
	}
	(void)pool_settle_all(p, now, true, "its client is gone");
}
