/*
 * sweep: finding and removing boxes by name, without their worker. Janitor. All of it can be done
 * again after it died half-way.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "drivers/boxlite/boxlite.h"
#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define SWEEP_OPEN_MS 10000 /* as at a start: what cannot be removed costs the slot */
#define SWEEP_LIST_MS 5000
#define SWEEP_REMOVE_MS 10000
#define SWEEP_GONE_MS 2000
#define SWEEP_CLOSE_MS 500
#define SWEEP_REMOVE_TRIES 2
#define SWEEP_LOCK_NS (5 * NS_PER_S)
#define SWEEP_LOCK_TRY_MS 5

static int sweep_place(const struct driver_site *site, struct place *place, struct err *err)
{
	return place_fill(site, &site->options, place, err);
}

/* ---- list ---- */

struct listing {
	const struct driver_site *site;
	struct record_names names;
};

static int list_name(void *ctx, const char *name)
{
	struct listing *l = ctx;

	return driver_owns_name(l->site, name) ? record_names_add(&l->names, name) : 0;
}

/* Those of a server that no record speaks of: it outlives this host's runtime directory. */
static int list_server(struct listing *l, struct err *err)
{
	struct eng_name body = {.time_ms = SWEEP_LIST_MS};
	struct eng_done done = {0};
	struct link link;
	int rc = link_open(&link, err);

	if (rc < 0)
		return rc;
	link.busy = l->site->busy;
	link.busy_ctx = l->site->busy_ctx;
	(void)snprintf(body.name, sizeof(body.name), "sbxd-%s-", l->site->instance);
	rc = link_open_library(&link, &l->site->options, "", SWEEP_OPEN_MS, &done, err);
	if (rc == 0)
		rc = link_order(&link,
		    &(struct link_order){
			.type = ENG_LIST,
			.body = &body,
			.time_ms = SWEEP_LIST_MS,
			.fd = -1,
			.name = list_name,
			.ctx = l,
		    },
		    &done, err);
	link_close(&link, SWEEP_CLOSE_MS);
	return rc;
}

int boxlite_list(const struct driver_site *site, driver_list_fn *fn, void *ctx)
{
	struct listing l = {.site = site};
	char path[PLACE_LEN + 16];
	struct place place;
	struct err err = {0};
	int rc = sweep_place(site, &place, &err);

	if (rc < 0 || !place_in_use(&place))
		return rc;
	FAULT_POINT("driver.boxlite.list");
	(void)snprintf(path, sizeof(path), "%s/boxes", place.records);
	rc = record_names_add_dir(&l.names, site, AT_FDCWD, path);
	if (rc == 0) {
		(void)snprintf(path, sizeof(path), "%s/homes", place.root);
		rc = record_names_add_dir(&l.names, site, AT_FDCWD, path);
	}
	if (rc == 0 && place.remote)
		rc = list_server(&l, &err);
	for (size_t i = 0; rc == 0 && i < l.names.count; i++)
		rc = fn(ctx, l.names.names[i]);
	record_names_free(&l.names);
	return rc;
}

/* ---- adopt ---- */

/* sbx-boxlite ends with its box: while it lives, it has it. */
int boxlite_adopt(const struct driver_site *site, const char *name, struct err *err)
{
	char home[PLACE_LEN];
	struct place place;
	struct stat st;
	FD_SCOPED int pidfd = -1;
	pid_t pid = 0;
	uint64_t start = 0;
	int rc;

	if (!driver_owns_name(site, name))
		return err_set(
		    err, EINVAL, "%s is no box name of instance %s", name, site->instance);
	if (sweep_place(site, &place, err) < 0)
		return -err->code;
	FAULT_POINT("driver.boxlite.adopt");
	rc = place_in_use(&place) ? record_read(place.records, name, &pid, &start) : -ENOENT;
	if (rc == 0) {
		pidfd = proc_open_exact(pid, start);
		if (pidfd >= 0 && proc_wait_gone(pidfd, 0) == -ETIMEDOUT)
			return 0;
		return err_sys(err, EUCLEAN, "box %s: its sbx-boxlite is gone", name);
	}
	if (rc != -ENOENT)
		return err_sys(err, -rc, "look for box %s", name);
	if (place_home(&place, name, home) == 0 && lstat(home, &st) == 0)
		return err_sys(err, EUCLEAN, "box %s: nobody has it", name);
	return err_sys(err, ESRCH, "box %s: nothing of it is there", name);
}

/* ---- cleanup ---- */

/* The record is ours, and not a worker's word. */
int boxlite_kill_recorded(const struct place *place, const char *name)
{
	FD_SCOPED int pidfd = -1;
	pid_t pid = 0;
	uint64_t start = 0;
	int rc = record_read(place->records, name, &pid, &start);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	pidfd = proc_open_exact(pid, start);
	if (pidfd < 0)
		return pidfd == -ESRCH ? 0 : pidfd;
	rc = proc_signal(pidfd, SIGKILL);
	if (rc == 0)
		rc = proc_wait_gone(pidfd, SWEEP_GONE_MS);
	return rc == -ESRCH ? 0 : rc;
}

/* Two of us in one home would keep each other out of the library. *lock: of the home, the caller's.
 * 1: it is ours; 0: there is no home, or no more; -errno. */
static int lock_home(const char *home, int *lock)
{
	uint64_t until = clock_now_ns() + SWEEP_LOCK_NS;
	struct stat there;
	struct stat locked;

	*lock = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*lock < 0)
		return errno == ENOENT ? 0 : -errno;
	while (flock(*lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_now_ns() >= until)
			return -EBUSY;
		(void)poll(NULL, 0, SWEEP_LOCK_TRY_MS);
	}
	if (fstat(*lock, &locked) < 0 || stat(home, &there) < 0)
		return errno == ENOENT ? 0 : -errno;
	return locked.st_ino == there.st_ino;
}

static int remove_once(const struct driver_site *site, const struct driver_options *options,
    const char *home, const char *name, struct err *err)
{
	struct eng_done done = {0};
	struct link l;
	int rc = link_open(&l, err);

	if (rc < 0)
		return rc;
	l.busy = site->busy;
	l.busy_ctx = site->busy_ctx;
	rc = link_open_library(&l, options, home, SWEEP_OPEN_MS, &done, err);
	if (rc == 0)
		rc = link_order_name(&l, ENG_REMOVE, name, SWEEP_REMOVE_MS, &done, err);
	link_close(&l, SWEEP_CLOSE_MS);
	FAULT_POINT("driver.boxlite.removed");
	return rc;
}

/* A library that crashes in one process may do it in the next. */
static int remove_box(const struct driver_site *site, const struct driver_options *options,
    const char *home, const char *name, struct err *err)
{
	int rc = -EPIPE;

	for (int i = 0; rc == -EPIPE && i < SWEEP_REMOVE_TRIES; i++) {
		*err = (struct err){0};
		rc = remove_once(site, options, home, name, err);
	}
	return rc;
}

int boxlite_remove_box(const struct driver_site *site, const struct place *place,
    const struct driver_options *options, const char *name, struct err *err)
{
	FD_SCOPED int lock = -1;
	char home[PLACE_LEN];
	int rc;

	if (place->remote)
		return remove_box(site, options, "", name, err);
	rc = place_home(place, name, home);
	if (rc == 0)
		rc = lock_home(home, &lock);
	if (rc <= 0)
		return rc < 0 ? err_sys(err, -rc, "have the home of box %s alone", name) : 0;
	rc = remove_box(site, options, home, name, err);
	if (rc < 0)
		return rc;
	rc = record_remove_tree(AT_FDCWD, home);
	return rc < 0 ? err_sys(err, -rc, "remove %s", home) : 0;
}

int boxlite_cleanup(
    const struct driver_site *site, const char *name, pid_t pid, uint64_t start, struct err *err)
{
	struct place place;
	struct err why = {0};
	int rc;

	(void)pid;
	(void)start;
	if (!driver_owns_name(site, name))
		return err_set(
		    err, EINVAL, "%s is no box name of instance %s", name, site->instance);
	if (sweep_place(site, &place, err) < 0)
		return -err->code;
	if (!place_in_use(&place))
		return 0;
	FAULT_POINT("driver.boxlite.cleanup");
	rc = boxlite_kill_recorded(&place, name);
	if (rc < 0)
		return err_sys(err, -rc, "end the sbx-boxlite of box %s", name);
	FAULT_POINT("driver.boxlite.cleanup.killed");
	if (site->busy)
		site->busy(site->busy_ctx); /* a server may take its time */
	if (boxlite_remove_box(site, &place, &site->options, name, &why) < 0)
		return err_set(err, why.code, "clean up after box %s: %s", name, why.text);
	rc = record_remove(place.records, name);
	FAULT_POINT("driver.boxlite.cleanup.removed");
	return rc < 0 ? err_sys(err, -rc, "clean up after box %s", name) : 0;
}
