/*
 * box_end: every way a box ends: closed by sbxd, left alone, or died. sbx-worker. If we die here,
 * sbxd has the box's processes proven gone, as after any worker's death.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/log.h"
#include "worker/box.h"

#define END_KILL_NS (5 * NS_PER_S)  /* for the driver to see all processes gone */
#define END_LEAVE_NS (1 * NS_PER_S) /* for clients to take their last answers */
#define END_LOCK_RETRY_NS (1 * NS_PER_MS)
#define END_AFTER_ANSWERS 1U /* a time that is past, but later than conn_wake()'s */

static void end_set_timer(struct box *b, uint64_t at, loop_timer_fn *fn)
{
	INVARIANT(loop_timer_set(b->loop, &b->end.timer, at, fn) == 0);
}

static void end_tell(struct box *b)
{
	/* Without sbxd nobody waits for it. */
	(void)control_link_send(&b->control, b->end.type, b->end.seq, &b->end.why,
	    sizeof(b->end.why), NULL, 0, -1, CONTROL_NO_WORD);
}

static void end_tell_left(struct box *b)
{
	/* Without sbxd nobody hears it: the next one sees no worker, or asks. */
	(void)control_link_send(&b->control, CTL_LEFT, 0, NULL, 0, NULL, 0, -1, CONTROL_NO_WORD);
}

void box_end_tell_again(struct box *b)
{
	b->end.seq = 0; /* whose order it answered is gone */
	if (b->state == BOX_ENDING && (b->end.type == CTL_BOX_DIED || !b->handle))
		end_tell(b);
	if (b->end.left)
		end_tell_left(b);
}

static void end_leave(struct loop *loop, struct loop_timer *t)
{
	(void)t; /* time is up for whoever did not take his answer */
	loop_quit(loop);
}

void box_leave_if_done(struct box *b)
{
	if (b->state == BOX_ENDING && !b->handle && b->service.conn_count == 0 &&
	    control_link_idle(&b->control))
		loop_quit(b->loop);
}

int box_end_all(struct box *b)
{
	int rc = b->driver->kill(b->handle, clock_now_ns() + END_KILL_NS);

	if (rc < 0)
		log_error("box %s: kill: %s", b->boot.name, strerror(-rc));
	else
		report_set_box(&b->report, 0, 0);
	if (b->loop)
		loop_del(b->loop, &b->watch);
	b->driver->free(b->handle);
	b->handle = NULL;
	return rc;
}

static void end_kill(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, end.timer);
	int rc = box_end_all(b);

	(void)loop; /* the box knows its loop */
	if (rc < 0) {
		b->end.why.code = -rc;
		(void)snprintf(b->end.why.text, sizeof(b->end.why.text),
		    "the box's processes could not be ended: %s", strerror(-rc));
	}
	FAULT_POINT("worker.close.killed");
	box_unlock(b);
	b->end.left = rc == -EOWNERDEAD && b->end.type != CTL_CLOSED;
	if (b->end.type == CTL_CLOSED)
		end_tell(b);
	if (b->end.left)
		end_tell_left(b);
	FAULT_POINT("worker.close.told");
	end_set_timer(b, clock_now_ns() + END_LEAVE_NS, end_leave);
	box_leave_if_done(b);
}

/* From here on there is no way back. */
static void end_begin(struct box *b, const char *message)
{
	box_check_abort(b, EPIPE);
	box_stop_abort(b);
	b->state = BOX_ENDING;
	loop_timer_clear(b->loop, &b->orphan);
	service_set_state(&b->service, SERVICE_DEAD, API_BOX_DIED, message);
	end_set_timer(b, END_AFTER_ANSWERS, end_kill);
}

static void end_on_sync_timeout(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, end.timer);

	(void)loop; /* the box knows its loop */
	log_warn("box %s: did not sync within its grace", b->boot.name);
	end_begin(b, "the box was stopped");
}

static void end_lock_and_sync(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, end.timer);
	uint64_t now = clock_now_ns();

	(void)loop; /* the box knows its loop */
	if (!box_try_lock(b) && now < b->end.deadline_ns) {
		end_set_timer(b, now + END_LOCK_RETRY_NS, end_lock_and_sync);
		return;
	}
	FAULT_POINT("worker.close.locked");
	b->end.nonce = ++b->nonce;
	/* What is wrong with the link, the link will say. */
	(void)agent_link_send(&b->link, AGENT_SYNC, &b->end.nonce, BOX_NONCE);
	end_set_timer(b, b->end.deadline_ns, end_on_sync_timeout);
}

void box_close(struct box *b, uint32_t grace_ms, uint64_t seq)
{
	if (b->state != BOX_UP) {
		if (b->state == BOX_CLOSING)
			b->end.seq = seq;
		return;
	}
	b->state = BOX_CLOSING;
	b->end.type = CTL_CLOSED;
	b->end.seq = seq;
	b->end.deadline_ns = clock_now_ns() + grace_ms * NS_PER_MS;
	box_check_abort(b, ECANCELED);
	box_stop_abort(b);
	loop_timer_clear(b->loop, &b->orphan);
	service_set_state(&b->service, SERVICE_CLOSING, API_BOX_DIED, "the box is being stopped");
	end_lock_and_sync(b->loop, &b->end.timer);
}

void box_close_pong(struct box *b, uint64_t nonce)
{
	if (b->state != BOX_CLOSING || !b->end.nonce || nonce != b->end.nonce)
		return;
	FAULT_POINT("worker.close.synced");
	end_begin(b, "the box was stopped");
}

const char *box_known_why(const struct box *b)
{
	return b->handle && b->driver->why ? b->driver->why(b->handle) : NULL;
}

void box_die(struct box *b, int code, const char *why)
{
	const char *known;

	if (b->state == BOX_ENDING)
		return;
	known = box_known_why(b);
	if (known)
		why = known;
	log_error("box %s: died: %s", b->boot.name, why);
	report_set_error(&b->report, why);
	b->end.why.code = code;
	(void)snprintf(b->end.why.reason, sizeof(b->end.why.reason), "%s", "box_died");
	(void)snprintf(b->end.why.text, sizeof(b->end.why.text), "%s", why);
	if (b->state == BOX_CLOSING) {
		/* It was to end anyway. */
		b->end.why.code = 0;
	} else {
		b->end.type = CTL_BOX_DIED;
		end_tell(b);
		FAULT_POINT("worker.die.told");
	}
	end_begin(b, "the box died");
}
