/* gc_find: which instances are there. sbxctl; only reads. */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gc.h"
#include "tools/host_cgroup.h"
#include "wire/rendezvous.h"

void gc_free(struct gc_list *list)
{
	free(list->items);
	*list = (struct gc_list){.items = NULL};
}

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
