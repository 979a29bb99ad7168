/*
 * reconcile: what a new supervisor does about what a dead one left behind. Runs in sbxd before it
 * serves; dying here leaves the same remains for the next one.
 */
#include "supervisor/reconcile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/driver.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/segment.h"
#include "shm/slot.h"
#include "supervisor/sbxd.h"

#define RECONCILE_WAIT_MS 10000

/*
 * Is it a worker of that slot? The page with its pid was the worker's to write, and what it says
 * must not make us kill a stranger: the program and the uid are the kernel's word.
 */
static bool is_worker(const struct sbxd *s, pid_t pid, uint32_t slot)
{
	uid_t uid = s->uid == 0
			? s->config.namespace_uid_base + slot * DRIVER_UIDS + DRIVER_WORKER_UID
			: s->uid;
	char path[32];
	char exe[CTL_PATH];
	char status[1024];
	const char *name;
	const char *field;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = '\0';
	name = strrchr(exe, '/');
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!name || strncmp(name, "/sbx-worker", 11) != 0 ||
	    fd_read_file_at(AT_FDCWD, path, status, sizeof(status)) < 0)
		return false;
	field = strstr(status, "\nUid:\t");
	/* Before it has dropped its privileges a worker still has ours. */
	return field &&
	       (strtoul(field + 6, NULL, 10) == uid || strtoul(field + 6, NULL, 10) == s->uid);
}

/* SIGKILL to the worker of a slot; its pidfd, or -1 when there is none any more. */
static int kill_worker(const struct sbxd *s, const struct shm_slot *page, uint32_t slot)
{
	struct slot_sup sup;
	int pidfd;

	if (slot_read_sup(page, &sup) < 0 || sup.state == SLOT_FREE || sup.worker_pid <= 0)
		return -1;
	pidfd = proc_open_exact(sup.worker_pid, sup.worker_start);
	if (pidfd < 0)
		return -1;
	if (is_worker(s, sup.worker_pid, slot))
		(void)proc_signal(pidfd, SIGKILL); /* -ESRCH: gone meanwhile */
	else
		fd_close(&pidfd);
	return pidfd;
}

/* Ends every worker that the segment names, all at once, then waits; their boxes die with them. */
static uint32_t end_workers(const struct sbxd *s, const struct segment *seg)
{
	uint32_t slots = seg->slot_count;
	int *pidfds = calloc(slots, sizeof(int));
	uint32_t count = 0;

	if (!pidfds)
		return 0; /* they end by themselves, after orphan_grace */
	for (uint32_t i = 0; i < slots; i++)
		pidfds[i] = kill_worker(s, &seg->slots[i], i);
	for (uint32_t i = 0; i < slots; i++) {
		if (pidfds[i] < 0)
			continue;
		count++;
		if (proc_wait_gone(pidfds[i], RECONCILE_WAIT_MS) < 0)
			log_error("the worker of the dead supervisor's slot %u does not end", i);
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
	ended = end_workers(s, &seg);
	log_warn("the last supervisor died: %u of its workers were ended", ended);
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
