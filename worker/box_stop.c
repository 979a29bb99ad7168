/*
 * box_stop: a stop: every process of the box is ended, through the guest, and the box stays.
 * sbx-worker. If we die here the box dies with us. If sbxd dies, the stop goes on, and the next
 * sbxd asks for it again.
 */
#include <errno.h>
#include <stdio.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/log.h"
#include "worker/box.h"

#define STOP_KILL_NS (10 * NS_PER_S) /* for what is killed to be seen gone */

static void stop_answer(struct box *b, int code)
{
	struct ctl_failed answer = {.code = code};

	if (code) {
		(void)snprintf(answer.reason, sizeof(answer.reason), "%s", "timeout");
		(void)snprintf(answer.text, sizeof(answer.text), "%s",
		    "not every process in the box could be ended in time");
	}
	/* Without sbxd nobody waits; the next one will ask, and be answered then. */
	(void)control_link_send(&b->control, CTL_STOPPED, b->stop.number, &answer, sizeof(answer),
	    NULL, 0, -1, CONTROL_NO_WORD);
}

static void stop_finish(struct box *b, int code)
{
	box_stop_abort(b);
	report_touch(&b->report);
	if (b->stop.number)
		stop_answer(b, code);
	FAULT_POINT("worker.stop.told");
}

static void stop_on_timer(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, stop.timer);
	const struct agent_stop cancel = {.nonce = ++b->nonce, .flags = AGENT_STOP_CANCEL};

	(void)loop; /* the box knows its loop */
	log_warn("box %s: does not stop", b->boot.name);
	/* What is wrong with the link, the link will say. */
	(void)agent_link_send(&b->link, AGENT_STOP, &cancel, sizeof(cancel));
	stop_finish(b, ETIMEDOUT);
}

void box_stop(struct box *b, const struct ctl_stop *order)
{
	const struct agent_stop ask = {.nonce = b->nonce + 1, .timeout_ms = order->timeout_ms};
	uint64_t deadline = clock_now_ns() + order->timeout_ms * NS_PER_MS + STOP_KILL_NS;

	b->stop.number = order->number;
	/* One that runs will be answered; of a box that ends, its end is told. */
	if (b->state != BOX_UP || b->stop.running)
		return;
	b->stop.running = true;
	b->stop.nonce = ++b->nonce;
	service_rest(&b->service);
	FAULT_POINT("worker.stop.begun");
	(void)agent_link_send(&b->link, AGENT_STOP, &ask, sizeof(ask)); /* as above */
	INVARIANT(loop_timer_set(b->loop, &b->stop.timer, deadline, stop_on_timer) == 0);
}

void box_stop_pong(struct box *b, uint64_t nonce)
{
	if (!b->stop.running || nonce != b->stop.nonce)
		return;
	FAULT_POINT("worker.stop.gone");
	stop_finish(b, 0);
}

void box_stop_abort(struct box *b)
{
	b->stop.running = false;
	loop_timer_clear(b->loop, &b->stop.timer);
}
