/*
 * top_table: the shared table that is looked at. sbxtop; the mapping is read-only, so that dying
 * here disturbs nobody.
 */
#include "tools/top_table.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/paths.h"
#include "lib/proc.h"

void top_table_init(struct top_table *t, const char *instance)
{
	const char *name = instance ? instance : PATHS_INSTANCE_DEFAULT;
	uid_t uids[TOP_TABLE_NAMES] = {geteuid(), 0};

	*t = (struct top_table){.pidfd = -1};
	for (size_t i = 0; i < TOP_TABLE_NAMES && (i == 0 || uids[0] != 0); i++) {
		if (segment_name(t->name[t->names], sizeof(t->name[0]), uids[i], name) == 0)
			t->names++;
	}
}

static void forget_supervisor(struct top_table *t)
{
	fd_close(&t->pidfd);
	t->pid = 0;
	t->start = 0;
}

static void detach(struct top_table *t)
{
	if (t->attached)
		reader_close(&t->reader);
	t->attached = false;
	t->named = false;
	forget_supervisor(t);
}

void top_table_close(struct top_table *t)
{
	detach(t);
}

/* ---- reading what somebody may cut off ---- */

/*
 * A page of a file that was made shorter is no more: reading it is a SIGBUS, in this thread. There
 * is no other way to learn of it, and a signal handler finds what to do about it here.
 */
static sigjmp_buf cut_off;

static void on_bus_error(int sig)
{
	siglongjmp(cut_off, sig);
}

/* A look at the table, and what it finds. */
struct look {
	const struct reader *reader;
	uint64_t now;
	struct top_model *model; /* for the whole of it */
	struct top_glance glance;
};

typedef void look_fn(struct look *l);

/* False when the table was cut off under it. */
static bool look_guarded(look_fn *fn, struct look *l)
{
	struct sigaction on_bus = {.sa_handler = on_bus_error};
	struct sigaction before;
	volatile bool whole = false;

	if (sigaction(SIGBUS, &on_bus, &before) < 0)
		return false;
	if (sigsetjmp(cut_off, 1) == 0) {
		fn(l);
		whole = true;
	}
	(void)sigaction(SIGBUS, &before, NULL); /* as it was: it cannot fail */
	return whole;
}

static void look_at_all(struct look *l)
{
	top_model_refresh(l->model, l->reader, l->now);
}

static void look_at_supervisor(struct look *l)
{
	top_model_glance(l->reader, l->now, &l->glance);
}

/* ---- the supervisor ---- */

static void watch_supervisor(struct top_table *t, const struct reader_summary *sum)
{
	if (sum->pid == t->pid && sum->start == t->start)
		return;
	forget_supervisor(t);
	t->pid = sum->pid;
	t->start = sum->start;
	t->pidfd = sum->pid > 0 ? proc_open_exact(sum->pid, sum->start) : -1;
	if (t->pidfd < 0)
		t->pidfd = -1;
}

/* ---- the name ---- */

static int stat_name(const char *name, struct stat *st)
{
	FD_SCOPED int fd = shm_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);

	return fd < 0 || fstat(fd, st) < 0 ? -errno : 0;
}

static bool is_same(const struct top_table *t, const struct stat *st)
{
	return t->attached && st->st_dev == t->device && st->st_ino == t->inode;
}

/* The first name under which anything stands; *rc as stat_name(). */
static const char *find_name(const struct top_table *t, struct stat *st, int *rc)
{
	*rc = -ENOENT;
	memset(st, 0, sizeof(*st));
	for (size_t i = 0; i < t->names; i++) {
		*rc = stat_name(t->name[i], st);
		if (*rc != -ENOENT)
			return t->name[i];
	}
	return t->name[0];
}

/* Attaches anew; what was attached before stays until that has worked. */
static int attach_new(struct top_table *t, struct top_model *m, const char *name,
    const struct stat *st, struct err *err)
{
	struct reader r;
	struct stat after = {0};
	int rc = reader_open(&r, name, err);

	if (rc < 0)
		return rc;
	if (stat_name(name, &after) < 0 || after.st_ino != st->st_ino)
		rc = err_set(err, EAGAIN, "table %s: it is being replaced", name);
	else if (top_model_reset(m, r.seg.slot_count) < 0)
		rc = err_sys(err, ENOMEM, "table %s", name);
	if (rc < 0) {
		reader_close(&r);
		return rc;
	}
	detach(t);
	t->reader = r;
	t->attached = true;
	t->named = true;
	t->device = st->st_dev;
	t->inode = st->st_ino;
	t->trouble[0] = '\0';
	return 0;
}

static void say_trouble(struct top_table *t, const struct err *err)
{
	if (t->attached)
		(void)snprintf(
		    t->trouble, sizeof(t->trouble), "the table is gone; waiting for the next sbxd");
	else if (err->code == ENOENT)
		(void)snprintf(
		    t->trouble, sizeof(t->trouble), "sbxd has made no table yet; waiting for it");
	else
		(void)snprintf(t->trouble, sizeof(t->trouble), "%.150s", err->text);
}

int top_table_attach(struct top_table *t, struct top_model *m, struct err *err)
{
	struct err why = {0};
	struct stat st;
	int rc;
	const char *name = find_name(t, &st, &rc);

	if (rc == 0 && is_same(t, &st)) {
		t->named = true;
		return 0;
	}
	if (rc < 0)
		(void)err_sys(&why, -rc, "table %s", name);
	else
		rc = attach_new(t, m, name, &st, &why);
	if (rc == 0)
		return 0;
	t->named = false;
	say_trouble(t, &why);
	if (t->attached)
		return 0;
	*err = why;
	return rc;
}

int top_table_look(struct top_table *t, struct top_model *m, uint64_t now)
{
	struct look look = {.reader = &t->reader, .now = now, .model = m};

	if (!t->attached)
		return -ENOTCONN;
	if (!look_guarded(look_at_all, &look)) {
		detach(t);
		(void)snprintf(
		    t->trouble, sizeof(t->trouble), "the table was cut off; waiting for another");
		return -EBUSY;
	}
	watch_supervisor(t, &m->sum);
	return 0;
}

/* When its last sign of life was. */
static uint64_t last_moment(const struct top_model *m, uint64_t *wall_ms)
{
	const struct shm_event *ev = top_events_back(&m->events, 0);
	uint64_t last = m->heartbeat_ns > m->started_ns ? m->heartbeat_ns : m->started_ns;

	*wall_ms = 0;
	if (!ev)
		return last;
	if (ev->time_ns > last)
		last = ev->time_ns;
	*wall_ms = ev->wall_ms + (last - ev->time_ns) / NS_PER_MS;
	return last;
}

int top_table_load(
    const struct top_table *t, const char *path, struct top_model *m, struct err *err)
{
	struct look look = {.model = m, .now = clock_now_ns()};
	struct reader r;
	struct stat st;
	bool whole;
	int rc = 0;

	rc = path ? reader_open_file(&r, path, err) : reader_open(&r, find_name(t, &st, &rc), err);
	if (rc < 0)
		return rc;
	rc = top_model_reset(m, r.seg.slot_count);
	if (rc == 0) {
		m->frozen = true;
		look.reader = &r;
		whole = look_guarded(look_at_all, &look);
		rc = whole ? 0 : -EBUSY;
	}
	reader_close(&r);
	if (rc < 0)
		return err_set(err, -rc, "table: %s",
		    rc == -EBUSY ? "it was cut off while it was read" : strerror(-rc));
	m->sum.alive = false; /* whoever has its pid here and now */
	top_model_derive(m, last_moment(m, &m->wall_ms));
	return 0;
}

bool top_table_replaced(const struct top_table *t)
{
	struct stat st;
	int rc;

	(void)find_name(t, &st, &rc);
	if (!t->attached)
		return rc == 0;
	return t->named ? rc < 0 || !is_same(t, &st) : rc == 0;
}

bool top_table_stirs(const struct top_table *t, const struct top_model *m, uint64_t now)
{
	struct look look = {.reader = &t->reader, .now = now};

	if (top_table_replaced(t))
		return true;
	if (!t->attached)
		return false;
	return !look_guarded(look_at_supervisor, &look) || look.glance.health != m->health ||
	       look.glance.pid != m->sum.pid;
}
