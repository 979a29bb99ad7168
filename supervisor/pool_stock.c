/*
 * pool_stock: boxes that are booted before anybody asks for them. Runs in sbxd; a successor finds
 * them in the table, without a token.
 *
 * Stock is what is left over for it: it boots while permits and slots lie idle, outside of
 * replicas, and goes first when slots run out. It is looked after by pool_tick() alone, when all
 * that an event brought about is done.
 */
#include <string.h>

#include "supervisor/pool_int.h"

#define PAUSE_MIN NS_PER_S
#define PAUSE_MAX (60 * NS_PER_S)

uint32_t pool_stock_count(const struct pool *p)
{
	return p->state_count[SLOT_STOCK] + p->stock_boots;
}

bool pool_is_stock(const struct pool_box *b)
{
	return b->state == SLOT_STOCK || (b->state == SLOT_BOOTING && !b->token[0]);
}

static struct pool_box *of_other_rules(const struct pool *p)
{
	const struct pool_spec *spec = &p->rules.stock;
	struct pool_box *b;

	TAILQ_FOREACH (b, &p->stock, queue) {
		if (memcmp(b->spec.digest, spec->digest, sizeof(spec->digest)) != 0)
			break;
	}
	return b;
}

/* One permit stays free for whoever comes next, if there is more than one. */
static bool has_permit(const struct pool *p)
{
	uint32_t most = p->rules.max_boots > 1 ? p->rules.max_boots - 1 : 1;

	return p->booting < p->rules.max_boots && p->stock_boots < most;
}

static bool may_boot(const struct pool *p)
{
	return !p->shutting_down && !p->leaving && pool_stock_count(p) < p->rules.prewarm &&
	       has_permit(p) && p->free_count > 0;
}

void pool_stock_want(struct pool *p, uint64_t now)
{
	if (may_boot(p))
		pool_expect(p, &p->stock_due, now > p->stock_after ? now : p->stock_after);
}

void pool_stock_fill(struct pool *p, uint64_t now)
{
	if (now < p->stock_after) {
		pool_stock_want(p, now);
		return;
	}
	while (may_boot(p)) {
		struct pool_box *b = pool_slot_take(p);

		b->spec = p->rules.stock;
		b->created = now;
		pool_move(p, now, b, SLOT_RESERVED, "stock");
		pool_boot(p, now, b);
	}
}

void pool_stock_booted(struct pool *p, uint64_t now, struct pool_box *b)
{
	p->stock_pause = 0;
	p->stock_after = 0;
	b->skip_right = true;
	pool_move(p, now, b, SLOT_STOCK, "booted for the stock");
	pool_stock_want(p, now);
	pool_room_freed(p, now); /* who waits for a slot may claim it and need none */
}

/* Those that boot at the same time fail at the same time, and count once. */
void pool_stock_lost(struct pool *p, uint64_t now)
{
	if (now >= p->stock_after) {
		p->stock_pause = p->stock_pause ? 2 * p->stock_pause : PAUSE_MIN;
		if (p->stock_pause > PAUSE_MAX)
			p->stock_pause = PAUSE_MAX;
		p->stock_after = now + p->stock_pause;
	}
	pool_stock_want(p, now);
}

struct pool_box *pool_stock_first(const struct pool *p, const struct pool_waiter *w)
{
	struct pool_box *b;

	if (w->r.want == POOL_WANT_MADE)
		return NULL; /* it may have an environment of its own, from its boot on */
	TAILQ_FOREACH (b, &p->stock, queue) {
		if (b->state == SLOT_STOCK && !b->adopting && pool_waiter_fits(w, b))
			break;
	}
	return b;
}

/* What would be missed least: one that still boots, else the newest. */
struct pool_box *pool_stock_spare(const struct pool *p)
{
	struct pool_box *b;

	TAILQ_FOREACH_REVERSE(b, &p->stock, pool_boxes, queue)
	{
		if (b->state == SLOT_BOOTING)
			return b;
	}
	return TAILQ_LAST(&p->stock, pool_boxes);
}

void pool_stock_trim(struct pool *p, uint64_t now)
{
	struct pool_box *b;

	while ((b = of_other_rules(p)))
		pool_close_box(p, now, b, "stock of another spec");
	while (pool_stock_count(p) > p->rules.prewarm)
		pool_close_box(p, now, pool_stock_spare(p), "more stock than prewarm");
	pool_stock_want(p, now);
}
