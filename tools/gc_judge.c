/* gc_judge: which instances are dead. sbxctl; only reads. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "shm/reader.h"
#include "tools/gc.h"
#include "tools/host_cgroup.h"
#include "tools/host_program.h"

#define LOOK_NS (10 * NS_PER_S)

static const char *const verdicts[GC_VERDICTS] = {
    [GC_LIVE] = "live",
    [GC_WAITING] = "waiting",
    [GC_DEAD] = "dead",
    [GC_UNKNOWN] = "unknown",
};

const char *gc_verdict_name(enum gc_verdict verdict)
{
	return verdicts[verdict];
}

static enum gc_verdict say(struct gc_instance *i, enum gc_verdict verdict, const char *why)
{
	i->verdict = verdict;
	(void)snprintf(i->why, sizeof(i->why), "%s", why);
	return verdict;
}

static bool listens(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	FD_SCOPED int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(addr.sun_path))
		return false;
	memcpy(addr.sun_path, path, strlen(path));
	return fd >= 0 &&
	       (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN);
}

/* A worker of the table that lives: its pid, by pid and start time. 0: none. */
static pid_t worker_in_table(const struct gc_instance *i)
{
	struct reader_box box;
	struct reader r;
	struct err err;
	pid_t pid = 0;

	if (reader_open(&r, i->paths.shm_name, &err) < 0)
		return 0;
	for (uint32_t n = 0; pid == 0 && n < r.seg.slot_count; n++) {
		int rc = reader_box(&r, n, &box);

		if (rc == 0 && box.sup.worker_pid > 0 &&
		    segment_supervisor_alive(box.sup.worker_pid, box.sup.worker_start))
			pid = box.sup.worker_pid;
	}
	reader_close(&r);
	return pid;
}

/* pid: of the table's, as far as it has one that lives. True when there are any, or may be. */
static bool judge_workers(struct gc_instance *i, enum segment_verdict table, pid_t pid)
{
	pid_t holder;
	char why[64];

	holder = pid == 0 ? gc_holder_of(i->uid, i->name) : pid;
	if (holder > 0) {
		(void)snprintf(why, sizeof(why), "worker %d lives", (int)holder);
		(void)say(i, GC_WAITING, why);
		return true;
	}
	/* Where the table is whole, it names every worker that there is. */
	if (holder < 0 && table != SEGMENT_ORPHANED) {
		(void)say(i, GC_UNKNOWN, "there are workers that do not tell whose they are");
		return true;
	}
	return false;
}

bool gc_has_workers(struct gc_instance *i, enum segment_verdict table)
{
	return judge_workers(i, table, table == SEGMENT_ORPHANED ? worker_in_table(i) : 0);
}

struct holding {
	const char *instance;
	pid_t holder;
};

static void look_for_holder(void *ctx, const char *path, const char *instance)
{
	struct holding *h = ctx;

	if (h->holder == 0 && !strcmp(instance, h->instance))
		h->holder = host_cgroup_holder(path);
}

/* Where a cgroup is all there is, a box in it may be somebody's who needs no sbxd, or has his table
 * in another container. */
static bool judge_cgroups(struct gc_instance *i)
{
	struct holding h = {.instance = i->name};
	char why[96];

	if (i->has_table || i->has_runtime || !i->has_cgroup)
		return false;
	host_cgroup_each(look_for_holder, &h);
	if (h.holder == 0)
		return false;
	(void)snprintf(why, sizeof(why), "what is in its cgroup is process %d's", (int)h.holder);
	(void)say(i, GC_UNKNOWN,
	    h.holder > 0 ? why : "what is in its cgroup is of another pid namespace");
	return true;
}

/* What is in hands of the instance's user. */
struct look {
	enum segment_verdict table;
	struct err why;
	pid_t worker; /* of the table's, one that lives; 0: none */
	bool served;
};

/*
 * The table is believed if it is its reader's own: root reads another user's as that one, and
 * connects as that one to what a link in that one's directory may lead to. In a process of its own,
 * as a table that is cut while it is read ends its reader.
 */
static int look(void *ctx, int fd)
{
	const struct gc_instance *i = ctx;
	struct look l = {.why = {.text = ""}};

	if (geteuid() != i->uid && seteuid(i->uid) < 0)
		return -errno;
	l.table = segment_probe(i->paths.shm_name, &l.why);
	if (l.table == SEGMENT_ORPHANED)
		l.worker = worker_in_table(i);
	l.served = i->has_runtime && listens(i->paths.socket);
	return write(fd, &l, sizeof(l)) == (ssize_t)sizeof(l) ? 0 : -EIO;
}

static struct look look_at(struct gc_instance *i)
{
	struct look l = {.table = SEGMENT_FOREIGN,
	    .why = {.code = EPERM, .text = "what is there cannot be read"}};
	struct buf told;

	buf_init(&told, sizeof(l));
	if (host_program_call(look, i, clock_now_ns() + LOOK_NS, &told) == 0 &&
	    told.len == sizeof(l))
		memcpy(&l, buf_head(&told), sizeof(l));
	buf_free(&told);
	return l;
}

void gc_judge(struct gc_instance *i)
{
	struct look l = look_at(i);

	i->has_table = l.table != SEGMENT_ABSENT;
	if (l.table == SEGMENT_LIVE)
		(void)say(i, GC_LIVE, l.why.text);
	else if (l.served)
		(void)say(i, GC_LIVE, "somebody listens at its socket");
	else if (l.table == SEGMENT_FOREIGN && l.why.code == EPERM)
		(void)say(i, GC_UNKNOWN, l.why.text);
	else if (!judge_workers(i, l.table, l.worker) && !judge_cgroups(i))
		(void)say(i, GC_DEAD,
		    l.table == SEGMENT_FOREIGN ? l.why.text
					       : "its sbxd is gone, and all its workers");
}
