/* pool_stocking: pools that keep a stock, for tests with the rig of pool_testing.h. */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_STOCKING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_STOCKING_H

#include "tests/unit/supervisor/pool_testing.h"

/* Rules that keep n boxes in stock, of the spec that rig_request() asks for. */
static inline struct pool_rules stock_rules(uint32_t n)
{
	struct pool_rules rules = rig_rules;

	rules.prewarm = n;
	(void)snprintf(rules.stock.image, sizeof(rules.stock.image), "host");
	return rules;
}

/* Begins anew with n boxes in stock that are up. */
static inline void stock_up(struct rig *r, uint32_t n)
{
	struct pool_rules rules = stock_rules(n);

	rig_use(r, &rules);
	rig_pass(r, 0);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), n);
	rig_forget(r);
}

static inline uint32_t stock_slot(const struct rig *r)
{
	return TAILQ_FIRST(&r->pool->stock)->slot;
}

#endif
