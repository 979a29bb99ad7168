/* gc_find: which instances are there, and which of them are dead. sbxctl; only reads. */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd.h"
#include "shm/reader.h"
#include "tools/gc.h"
#include "tools/host_cgroup.h"
#include "wire/rendezvous.h"

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

void gc_free(struct gc_list *list)
{
	free(list->items);
	*list = (struct gc_list){.items = NULL};
}

/* ---- judging ---- */

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

/* The table is believed if it is its reader's own: root reads another user's as that one. Where
 * that fails, it is not believed, and left alone. */
static void read_as(uid_t uid)
{
	if (geteuid() != uid && seteuid(uid) < 0)
		errno = 0;
}

void gc_judge(struct gc_instance *i)
{
	uid_t own = geteuid();
	struct err why = {.text = ""};
	enum segment_verdict table;
	pid_t worker = 0;

	read_as(i->uid);
	table = segment_probe(i->paths.shm_name, &why);
	if (table == SEGMENT_ORPHANED)
		worker = worker_in_table(i);
	read_as(own);

	i->has_table = table != SEGMENT_ABSENT;
	if (table == SEGMENT_LIVE)
		(void)say(i, GC_LIVE, why.text);
	else if (i->has_runtime && listens(i->paths.socket))
		(void)say(i, GC_LIVE, "somebody listens at its socket");
	else if (table == SEGMENT_FOREIGN && why.code == EPERM)
		(void)say(i, GC_UNKNOWN, why.text);
	else if (!judge_workers(i, table, worker) && !judge_cgroups(i))
		(void)say(i, GC_DEAD,
		    table == SEGMENT_FOREIGN ? why.text : "its sbxd is gone, and all its workers");
}

/* ---- finding ---- */

struct finder {
	const struct gc_query *q;
	struct gc_list *list;
	bool no_memory;
};

static bool is_folder_of(const char *path, uid_t uid)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

/* Where an instance of another user is: where that one's session would have it, else in /tmp. */
static int find_paths(const struct gc_query *q, struct gc_instance *i)
{
	const struct passwd *pw = i->uid ? getpwuid(i->uid) : NULL;
	char session[64];
	char *const theirs[] = {session, NULL};
	char *const none[] = {NULL};
	struct paths_query p = {.uid = i->uid,
	    .instance = i->name,
	    .runtime_dir = q->runtime_dir,
	    .state_dir = q->state_dir,
	    .env = q->env,
	    .home = pw ? pw->pw_dir : "/"};
	struct err err;
	int rc;

	if (i->uid == geteuid())
		return paths_resolve(&p, &i->paths, &err);
	(void)snprintf(
	    session, sizeof(session), "XDG_RUNTIME_DIR=/run/user/%u", (unsigned int)i->uid);
	p.env = theirs;
	rc = paths_resolve(&p, &i->paths, &err);
	if (rc == 0 && is_folder_of(i->paths.runtime_dir, i->uid))
		return 0;
	p.env = none;
	return paths_resolve(&p, &i->paths, &err);
}

static struct gc_instance *add(struct finder *f, uid_t uid, const char *name)
{
	struct gc_instance *more;
	struct gc_instance *i;

	if ((f->q->uid != 0 && uid != f->q->uid) ||
	    (f->q->instance && strcmp(name, f->q->instance) != 0))
		return NULL;
	for (size_t n = 0; n < f->list->count; n++) {
		if (f->list->items[n].uid == uid && !strcmp(f->list->items[n].name, name))
			return &f->list->items[n];
	}
	more = realloc(f->list->items, (f->list->count + 1) * sizeof(*more));
	if (!more) {
		f->no_memory = true;
		return NULL;
	}
	f->list->items = more;
	i = &more[f->list->count];
	*i = (struct gc_instance){.uid = uid};
	(void)snprintf(i->name, sizeof(i->name), "%s", name);
	if (find_paths(f->q, i) < 0)
		return NULL;
	i->has_runtime = is_folder_of(i->paths.runtime_dir, uid);
	f->list->count++;
	return i;
}

static void each_name(
    const char *path, void (*fn)(struct finder *f, const char *name), struct finder *f)
{
	DIR *dir = opendir(path);

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		fn(f, e->d_name);
	if (dir)
		(void)closedir(dir); /* it was only read */
}

/* "sbxd-UID-INSTANCE", or in /tmp "sbxd-UID" for the default one. */
static void take_table(struct finder *f, const char *name)
{
	unsigned int uid;
	int used = 0;

	if (sscanf(name, "sbxd-%u-%n", &uid, &used) == 1 && used > 0 &&
	    paths_instance_valid(name + used))
		(void)add(f, uid, name + used);
}

/* A directory that sbxd has made has one in it that nothing else makes. */
static bool was_made_by_sbxd(const char *parent, const char *name)
{
	char path[PATHS_LEN + 64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s/" RENDEZVOUS_DIR, parent, name);
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void take_runtime(struct finder *f, const char *parent, uid_t uid, const char *name)
{
	if (strncmp(name, "sbxd", 4) != 0 || !was_made_by_sbxd(parent, name))
		return;
	if (name[4] == '\0')
		(void)add(f, uid, PATHS_INSTANCE_DEFAULT);
	else if (name[4] == '-' && paths_instance_valid(name + 5))
		(void)add(f, uid, name + 5);
}

static void take_run(struct finder *f, const char *name)
{
	take_runtime(f, "/run", 0, name);
}

static void take_own_session(struct finder *f, const char *name)
{
	take_runtime(f, getenv("XDG_RUNTIME_DIR"), geteuid(), name);
}

static void take_tmp(struct finder *f, const char *name)
{
	unsigned int uid;
	int used = 0;

	if (sscanf(name, "sbxd-%u%n", &uid, &used) != 1 || !was_made_by_sbxd("/tmp", name))
		return;
	if (name[used] == '\0')
		(void)add(f, uid, PATHS_INSTANCE_DEFAULT);
	else
		take_table(f, name);
}

/* Of which user a cgroup is, its owner tells: as root, sbxd's are root's. */
static void take_cgroup(void *ctx, const char *path, const char *instance)
{
	struct finder *f = ctx;
	struct gc_instance *i;
	struct stat st;

	if (lstat(path, &st) < 0)
		return;
	i = add(f, st.st_uid, instance);
	if (i)
		i->has_cgroup = true;
}

int gc_find(const struct gc_query *q, struct gc_list *out)
{
	const char *session = getenv("XDG_RUNTIME_DIR");
	struct gc_list list = {.items = NULL};
	struct finder f = {.q = q, .list = &list};

	if (q->instance && q->runtime_dir)
		(void)add(&f, geteuid(), q->instance);
	each_name("/dev/shm", take_table, &f);
	if (geteuid() == 0)
		each_name("/run", take_run, &f);
	else if (session)
		each_name(session, take_own_session, &f);
	each_name("/tmp", take_tmp, &f);
	host_cgroup_each(take_cgroup, &f);
	if (f.no_memory) {
		gc_free(&list);
		return -ENOMEM;
	}
	for (size_t n = 0; n < list.count; n++)
		gc_judge(&list.items[n]);
	*out = list;
	return 0;
}
