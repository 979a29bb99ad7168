/*
 * box_park: a box that nobody uses stands still, where its driver can do that. sbx-worker. If we
 * die here the box dies with us.
 *
 * It is stopped when sbxd says that it is parked and nothing runs in it, and goes on as soon as
 * anything is to be sent to its guest, whatever that is: so nobody else has to know. What a client
 * left running in it stands still, too. An operation that still runs keeps it awake.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/log.h"
#include "worker/box.h"

static bool park_is_idle(const struct box *b)
{
	const struct agent_link *l = &b->link;

	return b->state == BOX_UP && !b->stop.running && !b->check.running && l->open == 0 &&
	       l->unanswered == 0 && l->out.len == 0 && l->pour.left == 0 && !l->broken &&
	       l->greeted;
}

void box_park_if_idle(struct box *b)
{
	int rc;

	if (!b->parked || b->link.asleep || !b->driver->pause || !park_is_idle(b))
		return;
	FAULT_POINT("worker.park");
	rc = b->driver->pause(b->handle);
	if (rc < 0)
		box_die(b, -rc, "the box cannot be paused");
	else
		b->link.asleep = true;
}

void box_park(struct box *b)
{
	b->parked = true;
	report_touch(&b->report);
	box_park_if_idle(b);
}

void box_unpark(struct box *b)
{
	b->parked = false;
	report_touch(&b->report);
	if (b->link.asleep)
		/* What is wrong with the link, the link will say. */
		(void)agent_link_rouse(&b->link);
}

int box_rouse(struct box *b)
{
	struct agent_wake wake = {.nonce = ++b->nonce};
	struct timespec ts;
	int rc = b->driver->resume(b->handle);

	if (rc < 0) {
		log_error("box %s: does not go on: %s", b->boot.name, strerror(-rc));
		return rc;
	}
	FAULT_POINT("worker.roused");
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	wake.realtime_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return agent_link_send(&b->link, AGENT_WAKE, &wake, sizeof(wake));
}
