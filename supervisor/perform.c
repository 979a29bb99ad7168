/*
 * perform: carries out what the pool decided: one function per action. Runs in sbxd.
 */
#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/log.h"
#include "supervisor/api_acquire.h"
#include "supervisor/api_box_order.h"
#include "supervisor/api_make.h"
#include "supervisor/client.h"
#include "supervisor/images.h"
#include "supervisor/making.h"
#include "supervisor/perform_int.h"
#include "supervisor/record.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_link.h"

/* The box an action is about, if it still is that box. */
static const struct pool_box *action_box(const struct sbxd *s, const struct pool_action *a)
{
	const struct pool_box *b = pool_box_at(s->pool, a->slot);

	return b && b->generation == a->generation ? b : NULL;
}

static void tell(struct sbxd *s, const struct pool_action *a, enum ctl_type type)
{
	if (s->workers[a->slot])
		worker_tell(s->workers[a->slot], (uint16_t)type, NULL, 0);
}

/* A box that is to be taken over can be by the driver that made it. */
static bool is_of_other_driver(const struct sbxd *s, const struct pool_box *b)
{
	return (b->flags & SLOT_FLAG_SAVED) && strcmp(s->parts[b->slot].driver, s->driver) != 0;
}

/* Which box an answer is for travels as its generation: its slot is found by that. */
static void on_image(struct sbxd *s, uint64_t generation, int prepared, const struct ctl_done *done,
    enum api_error error)
{
	const struct pool_box *b = pool_box_by_generation(s->pool, generation);
	uint64_t now = loop_now(s->loop);

	if (!b)
		return;
	if (b->state == SLOT_BOOTING && prepared >= 0 && is_of_other_driver(s, b)) {
		pool_boot_failed(s->pool, now, b->slot, generation, "another driver made it");
	} else if (b->state == SLOT_BOOTING && prepared >= 0) {
		publish_changed(s); /* the worker finds its slot as it shall be */
		FAULT_POINT("sbxd.spawn.published");
		pool_boot_begins(s->pool, now, b->slot, generation);
		worker_spawn(s, b, prepared);
		return;
	}
	if (b->state == SLOT_BOOTING && error == API_IMAGE_PULL_FAILED)
		pool_image_failed(s->pool, now, b->slot, generation, done->text);
	else if (b->state == SLOT_BOOTING)
		pool_boot_failed(s->pool, now, b->slot, generation, done->text);
	pool_worker_gone(s->pool, now, b->slot, generation, 0, "not started"); /* there was none */
}

/* What the worker before left of the slot is mended; what it left of the box is the next one's. */
static bool mend_saved(struct sbxd *s, const struct pool_box *b)
{
	char why[SHM_ERROR_LEN];

	if (!(b->flags & SLOT_FLAG_SAVED) || perform_recover(s, b->slot, why, sizeof(why)))
		return true;
	pool_boot_failed(s->pool, loop_now(s->loop), b->slot, b->generation, why);
	pool_worker_gone(s->pool, loop_now(s->loop), b->slot, b->generation, 0, why);
	return false;
}

static void do_spawn(struct sbxd *s, const struct pool_action *a)
{
	const struct pool_box *b = action_box(s, a);

	if (!b || !mend_saved(s, b))
		return;
	if (!image_is_ready(s, b->spec.image))
		pool_boot_waits(s->pool, loop_now(s->loop), a->slot, a->generation);
	image_need(s, b->spec.image, on_image, a->generation);
}

static void do_check(struct sbxd *s, const struct pool_action *a)
{
	publish_count(s, COUNTER_CHECKS);
	tell(s, a, CTL_CHECK);
	FAULT_POINT("sbxd.check");
}

static void do_park(struct sbxd *s, const struct pool_action *a)
{
	if (s->pauses)
		tell(s, a, CTL_PARK);
}

static void do_promote(struct sbxd *s, const struct pool_action *a)
{
	if (s->pauses)
		tell(s, a, CTL_PROMOTE);
}

/* Stock that becomes somebody's box: the worker takes requests under its id from now on. */
static void do_claim(struct sbxd *s, const struct pool_action *a)
{
	const struct pool_box *b = action_box(s, a);
	struct ctl_claim claim = {0};

	if (!b || !s->workers[a->slot])
		return;
	memcpy(claim.token, b->token, sizeof(claim.token));
	worker_tell(s->workers[a->slot], CTL_CLAIM, &claim, sizeof(claim));
	FAULT_POINT("sbxd.claim");
}

static void do_stop(struct sbxd *s, const struct pool_action *a)
{
	publish_changed(s); /* our successor goes on with a stop that was begun */
	FAULT_POINT("sbxd.stop.published");
	if (s->workers[a->slot])
		worker_stop(s->workers[a->slot], (uint32_t)(a->timeout / NS_PER_MS));
	FAULT_POINT("sbxd.stop.ordered");
}

/* Its worker was to be started once the image is ready: there is nobody to tell, or to wait for. */
static void not_started(struct sbxd *s, const struct pool_action *a)
{
	pool_worker_gone(
	    s->pool, loop_now(s->loop), a->slot, a->generation, 0, "its worker was not started");
}

static void do_close(struct sbxd *s, const struct pool_action *a)
{
	const struct ctl_close order = {
	    .grace_ms = (uint32_t)(pool_rules(s->pool)->close_grace / NS_PER_MS)};

	publish_count(s, COUNTER_CLOSES);
	FAULT_POINT("sbxd.close");
	if (!action_box(s, a))
		return; /* its worker ended meanwhile, and the slot is another's */
	if (s->workers[a->slot])
		worker_tell(s->workers[a->slot], CTL_CLOSE, &order, sizeof(order));
	else
		not_started(s, a);
}

static void do_kill(struct sbxd *s, const struct pool_action *a)
{
	FAULT_POINT("sbxd.kill");
	if (!action_box(s, a))
		return; /* likewise */
	if (s->workers[a->slot])
		worker_kill(s->workers[a->slot]);
	else
		not_started(s, a);
}

/* ---- answers ---- */

static void grant_made(
    struct sbxd *s, const struct pool_action *a, struct making *m, const struct pool_box *b)
{
	publish_changed(s); /* the table shows the box before its creator knows of it */
	FAULT_POINT("sbxd.make.published");
	record_lease(s, a, b, making_client(s, a->req));
	api_made(s, m, b);
	FAULT_POINT("sbxd.make.answered");
}

static void do_grant(struct sbxd *s, const struct pool_action *a)
{
	struct client *c = client_by_req(s->clients, a->req);
	struct making *m = making_by_req(s, a->req);
	const struct pool_box *b = action_box(s, a);

	if (m && b) {
		grant_made(s, a, m, b);
	} else if (b && (b->flags & SLOT_FLAG_MADE)) { /* who asked for it left just now */
		(void)pool_remove(s->pool, loop_now(s->loop), b->uid, b->token, true, 0);
	} else if (c && b) {
		publish_changed(s); /* the table shows the lease before the client knows of it */
		FAULT_POINT("sbxd.grant.published");
		record_lease(s, a, b, c);
		api_acquire_granted(s, c, a);
		FAULT_POINT("sbxd.grant.answered");
	} else if (b) {
		(void)pool_release(s->pool, loop_now(s->loop), b->uid, b->token, a->lease_id);
	}
}

static void do_refuse(struct sbxd *s, const struct pool_action *a)
{
	struct client *c = client_by_req(s->clients, a->req);
	struct making *m = making_by_req(s, a->req);

	if (m)
		api_not_made(s, m, a);
	else if (c)
		api_refused(s, c, a);
}

static void do_removed(struct sbxd *s, const struct pool_action *a)
{
	struct client *c = client_by_req(s->clients, a->req);

	publish_changed(s); /* as with a grant */
	if (c)
		client_reply_empty(c, 204, NULL);
}

static void do_obeyed(struct sbxd *s, const struct pool_action *a)
{
	publish_changed(s); /* as with a grant */
	FAULT_POINT("sbxd.order.published");
	api_obeyed(s, a);
}

static void do_record(struct sbxd *s, const struct pool_action *a)
{
	record_action(s, a);
}

static void do_drained(struct sbxd *s, const struct pool_action *a)
{
	(void)a;
	s->drained = true;
	sbxd_finish(s);
}

typedef void action_fn(struct sbxd *s, const struct pool_action *a);

static action_fn *const perform[] = {
    [POOL_SPAWN] = do_spawn,
    [POOL_CHECK] = do_check,
    [POOL_PARK] = do_park,
    [POOL_CLAIM] = do_claim,
    [POOL_PROMOTE] = do_promote,
    [POOL_CLOSE] = do_close,
    [POOL_KILL] = do_kill,
    [POOL_STOP] = do_stop,
    [POOL_CLEAN] = perform_clean,
    [POOL_GRANT] = do_grant,
    [POOL_REFUSE] = do_refuse,
    [POOL_REMOVED] = do_removed,
    [POOL_OBEYED] = do_obeyed,
    [POOL_RECORD] = do_record,
    [POOL_DRAINED] = do_drained,
};

static void on_pool_timer(struct loop *l, struct loop_timer *t)
{
	struct sbxd *s = LOOP_OWNER(t, struct sbxd, pool_timer);

	pool_tick(s->pool, loop_now(l));
	sbxd_settle(s);
}

static void set_pool_timer(struct sbxd *s)
{
	uint64_t at = pool_deadline(s->pool);

	if (at == CLOCK_NEVER)
		loop_timer_clear(s->loop, &s->pool_timer);
	else if (s->pool_timer.pos == 0 || s->pool_timer.at != at)
		INVARIANT(loop_timer_set(s->loop, &s->pool_timer, at, on_pool_timer) == 0);
}

void sbxd_settle(struct sbxd *s)
{
	struct pool_action a;

	if (s->settling)
		return; /* an action led here; the loop below goes on */
	s->settling = true;
	while (pool_next_action(s->pool, &a))
		perform[a.kind](s, &a);
	FAULT_POINT("sbxd.settle.performed");
	publish_changed(s);
	s->settling = false;
	events_pump(s);
	set_pool_timer(s);
}
