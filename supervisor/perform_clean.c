/*
 * perform_clean: what is left of a box is removed, and its slot mended. Runs in sbxd; if it dies
 * here the slot is closing, and its successor begins anew.
 */
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/fault.h"
#include "lib/log.h"
#include "shm/hist.h"
#include "shm/repair.h"
#include "shm/scope_lock.h"
#include "shm/slot.h"
#include "supervisor/janitor_link.h"
#include "supervisor/perform_int.h"
#include "supervisor/record.h"
#include "supervisor/sbxd.h"
#include "wire/rendezvous.h"

/* Takes the scope lock that its dead worker may have held, and mends the slot's page. */
bool perform_recover(struct sbxd *s, uint32_t slot, char *why, size_t size)
{
	struct shm_page *page = &s->seg.slots[slot].page;
	enum scope_lock_result got = scope_lock_try(page, repair_page, &slot);
	bool mended;

	if (got != SCOPE_RECOVERED && got != SCOPE_LOCKED) {
		(void)snprintf(why, size, "its scope lock cannot be recovered");
		return false;
	}
	FAULT_POINT("sbxd.recover.locked");
	mended = got == SCOPE_RECOVERED || repair_page(page, &slot) == 0;
	scope_unlock(page);
	if (got == SCOPE_RECOVERED)
		record_recovery(s, slot);
	if (!mended)
		(void)snprintf(why, size, "its page cannot be repaired");
	return mended;
}

/* Which box a cleanup was for travels in the pointer: slot in the low bits; the generation is
 * looked up anew. */
static void on_cleaned(
    struct sbxd *s, void *ctx, const struct ctl_done *done, struct janitor_more *more)
{
	uint32_t slot = (uint32_t)(uintptr_t)ctx;
	const struct pool_box *b = pool_box_at(s->pool, slot);
	char why[SHM_ERROR_LEN];
	bool ok = done->code == 0;

	(void)more;
	(void)strlcpy(why, done->text, sizeof(why));
	FAULT_POINT("sbxd.cleaned");
	if (ok)
		ok = perform_recover(s, slot, why, sizeof(why));
	if (ok)
		(void)rendezvous_remove(s->runtime_dir, slot); /* or its next worker replaces it */
	FAULT_POINT("sbxd.recovered");
	if (!ok)
		log_error("slot %u is quarantined: %s", slot, why);
	hist_add(&s->seg.header->hists[HIST_CLOSE], loop_now(s->loop) - b->state_since);
	pool_cleaned(s->pool, loop_now(s->loop), slot, b->generation, ok, why);
}

void perform_clean(struct sbxd *s, const struct pool_action *a)
{
	const struct shm_page *page = &s->seg.slots[a->slot].page;
	struct ctl_cleanup order = {0};
	struct slot_work work;

	sbxd_fill_site(s, &order.site);
	/* It may be one that the last supervisor made otherwise. */
	memcpy(order.site.driver, s->parts[a->slot].driver, sizeof(order.site.driver));
	(void)strlcpy(order.name, s->parts[a->slot].name, sizeof(order.name));
	/* Where the box was, in its worker's own words: a hint, which the driver proves before it
	 * acts on it; what bears the box's name is found without it. */
	if (slot_read_work(page, &work) == 0 && work.generation == a->generation) {
		order.box_pid = work.box_pid;
		order.box_start = work.box_start;
	}
	/* Never published: never started, so nothing of it is to be recovered. Nor may it be: a
	 * successor that finds the slot free does not look at the lock in which we died. */
	if (order.name[0] == '\0') {
		pool_cleaned(s->pool, loop_now(s->loop), a->slot, a->generation, true, "");
		return;
	}
	if (janitor_order(s, &(struct janitor_order){
				 .type = CTL_CLEANUP,
				 .body = &order,
				 .len = sizeof(order),
				 .fd = -1,
				 .fn = on_cleaned,
				 .ctx = (void *)(uintptr_t)a->slot,
			     }) < 0)
		on_cleaned(s, (void *)(uintptr_t)a->slot,
		    &(struct ctl_done){.code = ENOMEM, .text = "no memory to order its cleanup"},
		    NULL);
}
