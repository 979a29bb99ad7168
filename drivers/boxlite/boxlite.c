/*
 * boxlite: a box after its start. Worker, without privileges: of its sbx-boxlite it has the control
 * socket, the stream and the pidfd. If the worker dies, sbx-boxlite ends and removes the box, or
 * leaves it (boxlite.detach) to the janitor.
 */
#include "drivers/boxlite/boxlite.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define STATS_MS 2000
#define STOP_MARGIN_MS 200U /* of kill()'s time: for sbx-boxlite to answer and to end */

static int boxlite_watch_fd(const struct driver_box *box)
{
	return box->link.pidfd;
}

/* A box that could not be given sbx-guest is served by its own shell. */
static const char *boxlite_isolation(const struct driver_box *box)
{
	static const char *const served[] = {"microvm-kvm/sh", "remote/sh"};

	return box->shell ? served[box->remote] : NULL;
}

static bool boxlite_outlives(const struct driver_box *box)
{
	return box->outlives;
}

/* What has been answered since. Never waits. */
static void take_answers(struct driver_box *box)
{
	struct eng_msg msg;

	while (box->link.control >= 0 && eng_recv(box->link.control, box->link.packet, &msg) == 1) {
		const struct eng_done *done = &msg.body.done;

		fd_close(&msg.fd);
		if (link_take_died(&box->link, &msg) || msg.head.type != ENG_DONE ||
		    msg.head.seq != box->link.seq)
			continue;
		if (box->stopping) {
			box->stop_code = done->code;
			box->removed = done->code == 0;
		} else if (box->asked && done->code == 0) {
			box->stats.cpu_ns = done->cpu_ns;
			box->stats.memory_bytes = done->memory_bytes;
		}
		box->asked = false;
	}
}

/* It is said before the stream ends. */
static const char *boxlite_why(struct driver_box *box)
{
	take_answers(box);
	return box->link.why[0] ? box->link.why : NULL;
}

static int send_order(struct driver_box *box, enum eng_type type, uint32_t time_ms)
{
	const struct eng_name body = {.time_ms = time_ms};

	return eng_send(box->link.control, type, ++box->link.seq, &body, NULL, 0, -1);
}

static uint32_t ms_until(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t left = deadline_ns > now ? (deadline_ns - now) / NS_PER_MS + 1 : 0;

	return left > 1000000 ? 1000000 : (uint32_t)left;
}

/* The box is gone when sbx-boxlite has said so, and has ended. */
static int boxlite_kill(struct driver_box *box, uint64_t deadline_ns)
{
	uint32_t ms = ms_until(deadline_ns);
	bool killed = false;
	int rc;

	if (box->reaped)
		return box->stop_code ? -box->stop_code : 0;
	FAULT_POINT("driver.boxlite.kill");
	if (!box->stopping) {
		take_answers(box);
		box->stopping = true;
		rc = send_order(box, ENG_STOP, ms > STOP_MARGIN_MS ? ms - STOP_MARGIN_MS : ms);
		if (rc < 0) /* it has ended, or cannot be told: the end of the socket says it too */
			fd_close(&box->link.control);
	}
	rc = proc_wait_gone(box->link.pidfd, (int)ms);
	if (rc == -ETIMEDOUT)
		(void)proc_signal(box->link.pidfd, SIGKILL); /* where we may: not from root's */
	if (rc < 0)
		return rc;
	take_answers(box);
	rc = link_reap(&box->link, &killed);
	if (rc < 0)
		return rc;
	box->reaped = true;
	if (killed && box->outlives && !box->removed)
		box->stop_code = EOWNERDEAD; /* it had no time to remove the box */
	return box->stop_code ? -box->stop_code : 0;
}

/* What was told to the last ask: to wait for the next answer would stop the worker. */
static int boxlite_stats(const struct driver_box *box, struct driver_stats *out)
{
	struct driver_box *b = (struct driver_box *)(uintptr_t)box; /* what is not its state */

	take_answers(b);
	if (!b->asked && !b->stopping && b->link.control >= 0)
		b->asked = send_order(b, ENG_STATS, STATS_MS) == 0;
	*out = b->stats;
	return 0;
}

static void boxlite_free(struct driver_box *box)
{
	if (!box)
		return;
	fd_close(&box->link.control);
	fd_close(&box->link.pidfd);
	free(box);
}

const struct driver driver_boxlite = {
    .name = "boxlite",
    .takes = boxlite_takes,
    .probe = boxlite_probe,
    .prepare = boxlite_prepare,
    .list = boxlite_list,
    .adopt = boxlite_adopt,
    .cleanup = boxlite_cleanup,
    .finish = boxlite_finish,
    .start = boxlite_start,
    .watch_fd = boxlite_watch_fd,
    .isolation = boxlite_isolation,
    .why = boxlite_why,
    .outlives = boxlite_outlives,
    .kill = boxlite_kill,
    .stats = boxlite_stats,
    .free = boxlite_free,
};
