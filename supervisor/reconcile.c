/*
 * reconcile: what a new supervisor does about what a dead one left behind. Runs in sbxd before it
 * serves; dying here leaves the same remains for the next one.
 */
#include "supervisor/reconcile.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/segment.h"
#include "shm/slot.h"
#include "supervisor/sbxd.h"

#define RECONCILE_WAIT_MS 10000

/* SIGKILL to exactly that process; its pidfd, or -1 when there is none any more. */
static int kill_exact(int32_t pid, uint64_t start)
{
	int pidfd = pid > 0 ? proc_open_exact(pid, start) : -1;

	if (pidfd >= 0)
		(void)proc_signal(pidfd, SIGKILL); /* -ESRCH: gone meanwhile */
	return pidfd < 0 ? -1 : pidfd;
}

/* Ends every worker and box that the segment names, all at once, then waits for them. */
static uint32_t end_workers(const struct segment *seg)
{
	uint32_t slots = seg->header->slot_count;
	int *pidfds = calloc(2UL * slots, sizeof(int));
	uint32_t count = 0;

	if (!pidfds)
		return 0; /* the sweep by name comes after this */
	for (uint32_t i = 0; i < slots; i++) {
		struct slot_sup sup;
		struct slot_work work;

		pidfds[2 * i] = pidfds[2 * i + 1] = -1;
		if (slot_read_sup(&seg->slots[i], &sup) == 0 && sup.state != SLOT_FREE)
			pidfds[2 * i] = kill_exact(sup.worker_pid, sup.worker_start);
		if (slot_read_work(&seg->slots[i], &work) == 0)
			pidfds[2 * i + 1] = kill_exact(work.box_pid, work.box_start);
	}
	for (uint32_t i = 0; i < 2 * slots; i++) {
		if (pidfds[i] < 0)
			continue;
		count++;
		if (proc_wait_gone(pidfds[i], RECONCILE_WAIT_MS) < 0)
			log_error("a process of the dead supervisor's slot %u does not end", i / 2);
		fd_close(&pidfds[i]);
	}
	free(pidfds);
	return count;
}

static int take_apart(struct sbxd *s, struct err *err)
{
	struct segment seg;
	uint32_t ended;
	int rc = segment_attach(s->segment_name, true, &seg, err);

	if (rc < 0)
		return rc;
	ended = end_workers(&seg);
	log_warn("the last supervisor died: %u of its processes were ended", ended);
	segment_close(&seg);
	return 0;
}

int reconcile_segment(struct sbxd *s, struct err *err)
{
	struct err why = {0};
	int rc = 0;

	switch (segment_probe(s->segment_name, &why)) {
	case SEGMENT_ABSENT:
		return 0;
	case SEGMENT_LIVE:
		return err_set(
		    err, EBUSY, "instance %s has a supervisor already: %s", s->instance, why.text);
	case SEGMENT_ORPHANED:
		rc = take_apart(s, err);
		break;
	case SEGMENT_FOREIGN:
		log_warn("shared memory %s cannot be used and is made anew: %s", s->segment_name,
		    why.text);
		break;
	}
	if (rc == 0)
		rc = segment_unlink(s->segment_name);
	return rc < 0 ? err_sys(err, -rc, "remove shared memory %s", s->segment_name) : 0;
}
