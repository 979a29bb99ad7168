/*
 * reconcile: finds the table, the workers and the boxes of a dead supervisor. Runs in sbxd before
 * it serves; dying here leaves the same to the next one.
 */
#include "supervisor/reconcile.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/segment.h"
#include "supervisor/sbxd.h"
#include "wire/rendezvous.h"

/* ---- the table ---- */

/* A worker that was booting for one that is lost has no socket yet by which it could be found. */
static int make_table(struct sbxd *s, struct err *err)
{
	s->strays_until = loop_now(s->loop) + s->config.boot_timeout_ns;
	return segment_create(s->segment_name, s->instance, s->config.max_boxes,
	    s->config.max_concurrent_boots, &s->seg, err);
}

static int replace_table(struct sbxd *s, struct err *err)
{
	int rc = segment_unlink(s->segment_name);

	FAULT_POINT("sbxd.table.unlinked");
	if (rc < 0)
		return err_sys(err, -rc, "remove shared memory %s", s->segment_name);
	return make_table(s, err);
}

/*
 * A table of another size, or with slots that could not be used again, is replaced when there is
 * nothing in it to lose. Names of boxes go on: what is left of an old one may still be there.
 */
static int renew_table(struct sbxd *s, struct err *err)
{
	const struct shm_header *h = s->seg.header;
	uint64_t generation = atomic_load(&h->next_generation);
	uint32_t slots = s->seg.slot_count;
	uint32_t lost = atomic_load(&h->state_count[SLOT_QUARANTINED]);
	int rc;

	if (slots == s->config.max_boxes && lost == 0)
		return 0;
	if (atomic_load(&h->state_count[SLOT_FREE]) + lost == slots) {
		segment_close(&s->seg);
		rc = replace_table(s, err);
		if (rc == 0)
			atomic_store(&s->seg.header->next_generation, generation);
		return rc;
	}
	if (slots == s->config.max_boxes)
		return 0;
	log_warn("max_boxes %u: it stays %u as long as boxes of the last supervisor live",
	    s->config.max_boxes, slots);
	return 0;
}

static int take_over(struct sbxd *s, struct err *err)
{
	struct err why = {0};
	int rc = segment_attach(s->segment_name, true, &s->seg, &why);

	if (rc < 0 && rc != -EINVAL && rc != -EPERM && rc != -ENOTRECOVERABLE)
		return err_set(err, -rc, "%s", why.text); /* it may pass: boxes live in it */
	if (rc < 0) {
		log_warn("%s: it is made anew", why.text);
		return replace_table(s, err);
	}
	FAULT_POINT("sbxd.table.taken");
	rc = segment_reset_boots(&s->seg, s->config.max_concurrent_boots);
	return rc < 0 ? err_sys(err, -rc, "boot permits") : renew_table(s, err);
}

int reconcile_table(struct sbxd *s, struct err *err)
{
	struct err why = {0};

	switch (segment_probe(s->segment_name, &why)) {
	case SEGMENT_ABSENT:
		return make_table(s, err);
	case SEGMENT_LIVE:
		return err_set(
		    err, EBUSY, "instance %s has a supervisor already: %s", s->instance, why.text);
	case SEGMENT_ORPHANED:
		return take_over(s, err);
	case SEGMENT_FOREIGN:
		break;
	}
	log_warn("shared memory %s cannot be used and is made anew: %s", s->segment_name, why.text);
	return replace_table(s, err);
}

/* ---- workers that nobody knows ---- */

/*
 * The process that listens at the socket of a slot, held: it was the one before the pidfd was
 * opened and is the one after, so the pid was not given to another in between. -1: none.
 */
static int hold_listener(const struct sbxd *s, uint32_t slot, pid_t *pid)
{
	FD_SCOPED int first = rendezvous_connect(s->runtime_dir, slot, pid);
	FD_SCOPED int second = -1;
	uint64_t start;
	pid_t again = 0;
	int pidfd;

	if (first < 0 || proc_start_time(*pid, &start) < 0)
		return -1;
	pidfd = proc_open_exact(*pid, start);
	second = rendezvous_connect(s->runtime_dir, slot, &again);
	if (second < 0 || again != *pid)
		fd_close(&pidfd);
	return pidfd < 0 ? -1 : pidfd;
}

static void end_stray(const struct sbxd *s, uint32_t slot)
{
	pid_t pid = 0;
	FD_SCOPED int pidfd = hold_listener(s, slot, &pid);

	if (pidfd >= 0) {
		log_warn("worker %d of slot %u is in no table: killed", (int)pid, slot);
		(void)proc_signal(pidfd, SIGKILL); /* -ESRCH: gone meanwhile */
	}
	(void)rendezvous_remove(s->runtime_dir, slot); /* the next worker would replace it */
}

void reconcile_strays(struct sbxd *s)
{
	char path[CTL_PATH + sizeof(RENDEZVOUS_DIR)];
	const struct dirent *e;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/" RENDEZVOUS_DIR, s->runtime_dir);
	dir = opendir(path);
	if (!dir) {
		log_error("open %s: %s", path, strerror(errno));
		return;
	}
	while ((e = readdir(dir))) {
		char *end;
		unsigned long slot = strtoul(e->d_name, &end, 10);

		if (e->d_name[0] < '0' || e->d_name[0] > '9' || *end || slot >= SHM_MAX_SLOTS)
			continue;
		if (slot >= s->seg.slot_count || !s->workers[slot])
			end_stray(s, (uint32_t)slot);
	}
	(void)closedir(dir); /* it was only read */
}

/* ---- boxes ---- */

/* As restore_boxes() has found it: up when the last supervisor died, and its worker lives. */
static bool lives_on(const struct sbxd *s, uint32_t slot)
{
	uint32_t state = s->parts[slot].state;

	return s->workers[slot] && (state == SLOT_STOCK || state == SLOT_ACTIVE ||
				       state == SLOT_CHECKING || state == SLOT_WARM);
}

int reconcile_kept(const struct sbxd *s)
{
	int fd = memfd_create("sbxd-kept", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (uint32_t i = 0; i < s->seg.slot_count; i++) {
		const struct slot_sup *part = &s->parts[i];
		char entry[sizeof(part->name) + 1];
		int len = snprintf(entry, sizeof(entry), "%c%s",
			      lives_on(s, i) ? CTL_KEEP_LIVE : CTL_KEEP_ENDING, part->name) +
			  1;

		if (!part->name[0] || part->state == SLOT_FREE || part->state == SLOT_QUARANTINED)
			continue;
		if (write(fd, entry, (size_t)len) != len) {
			fd_close(&fd);
			return -ENOSPC;
		}
	}
	return fd;
}
