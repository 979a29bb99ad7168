/*
 * box_check: health checks: a ping through the guest agent, under the scope lock. sbx-worker. If we
 * die here, whoever takes the lock next learns it from the lock.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/log.h"
#include "shm/scope_lock.h"
#include "worker/box.h"

#define CHECK_LOCK_RETRY_NS NS_PER_MS
#define PULSE_PATIENCE 6 /* times health_check_timeout */

int box_refuse_repair(struct shm_page *page, void *ctx)
{
	(void)page;
	(void)ctx;
	return -EOWNERDEAD;
}

bool box_try_lock(struct box *b)
{
	if (!b->locked)
		b->locked = scope_lock_try(b->page, box_refuse_repair, NULL) == SCOPE_LOCKED;
	return b->locked;
}

void box_unlock(struct box *b)
{
	if (b->locked)
		scope_unlock(b->page);
	b->locked = false;
}

static void check_answer(struct box *b, uint64_t seq, int code)
{
	struct ctl_failed answer = {.code = code};

	if (code) {
		(void)snprintf(answer.reason, sizeof(answer.reason), "%s", "box_died");
		(void)snprintf(answer.text, sizeof(answer.text),
		    code == ETIMEDOUT ? "the guest agent did not answer in time" : "%s",
		    strerror(code));
	}
	/* Without sbxd nobody asks. */
	(void)control_link_send(
	    &b->control, CTL_CHECKED, seq, &answer, sizeof(answer), NULL, 0, -1, CONTROL_NO_WORD);
}

/* The check is over; while the box closes, the lock stays for that. */
static void check_finish(struct box *b, int code)
{
	b->check.running = false;
	loop_timer_clear(b->loop, &b->check.timer);
	if (b->state == BOX_UP)
		box_unlock(b);
	check_answer(b, b->check.seq, code);
	FAULT_POINT("worker.check.answered");
}

static void check_go_on(struct box *b);

static void check_on_timer(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, check.timer);

	(void)loop; /* the box knows its loop */
	if (clock_now_ns() >= b->check.deadline_ns)
		check_finish(b, ETIMEDOUT);
	else
		check_go_on(b);
}

static void check_go_on(struct box *b)
{
	uint64_t at = b->check.deadline_ns;

	if (!b->check.pinged) {
		if (box_try_lock(b)) {
			FAULT_POINT("worker.check.locked");
			b->check.pinged = true;
			b->check.nonce = ++b->nonce;
			/* What is wrong with the link, the link will say. */
			(void)agent_link_send(&b->link, AGENT_PING, &b->check.nonce, BOX_NONCE);
			FAULT_POINT("worker.check.pinged");
		} else {
			at = clock_now_ns() + CHECK_LOCK_RETRY_NS;
		}
	}
	if (loop_timer_set(b->loop, &b->check.timer, at, check_on_timer) < 0)
		check_finish(b, ENOMEM);
}

void box_check_begin(struct box *b, uint64_t seq)
{
	if (b->state != BOX_UP || b->check.running) {
		check_answer(b, seq, b->state != BOX_UP ? EPIPE : EALREADY);
		return;
	}
	b->check.running = true;
	b->check.pinged = false;
	b->check.seq = seq;
	b->check.deadline_ns = clock_now_ns() + b->boot.check_timeout_ms * NS_PER_MS;
	check_go_on(b);
}

void box_check_pong(struct box *b, uint64_t nonce)
{
	if (b->check.running && b->check.pinged && nonce == b->check.nonce)
		check_finish(b, 0);
}

void box_check_abort(struct box *b, int code)
{
	if (b->check.running)
		check_finish(b, code);
}

void box_check_pulse(struct box *b)
{
	struct box_pulse *p = &b->pulse;
	uint64_t nonce;

	/* While the link is held nobody listens: a slow client has its own time limit. */
	if (b->state != BOX_UP || b->report.in_flight == 0 || b->link.held ||
	    b->link.heard != p->heard) {
		*p = (struct box_pulse){.heard = b->link.heard};
	} else if (p->quiet++ == 0) {
		nonce = ++b->nonce; /* no check waits for it */
		/* What is wrong with the link, the link will say. */
		(void)agent_link_send(&b->link, AGENT_PING, &nonce, BOX_NONCE);
	} else if ((p->quiet - 1) * REPORT_BEAT_NS >
		   PULSE_PATIENCE * b->boot.check_timeout_ms * NS_PER_MS) {
		box_die(b, ETIMEDOUT, "the guest agent gives no sign of life");
	}
}
