/*
 * gc_remove: removes what a dead instance left. sbxctl; if it dies, what it has not removed is
 * found again, its lock on the instance with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"
#include "shm/segment.h"
#include "tools/gc.h"
#include "tools/host_cgroup.h"
#include "tools/host_program.h"
#include "wire/rendezvous.h"

#define SWEEP_NS (120 * NS_PER_S) /* many boxes */
#define OUTPUT_MAX (1U << 20)
#define MOUNTS_MAX (4U << 20)
#define KILL_MS 5000

struct removal {
	struct gc_instance *i;
	bool dry;
	gc_report_fn *fn;
	void *ctx;
};

static void report(const struct removal *r, const char *kind, const char *what, int rc)
{
	r->fn(r->ctx, kind, what, rc < 0 ? strerror(-rc) : NULL);
}

/* ---- the instance's supervisor ---- */

/* From now on a starting sbxd finds the instance taken. The table is then ours; *was: what it was.
 */
static int take_over(
    struct gc_instance *i, struct segment *out, enum segment_verdict *was, struct err *err)
{
	const char *name = i->paths.shm_name;
	int rc;

	*was = segment_probe(name, err);
	switch (*was) {
	case SEGMENT_LIVE:
		return -EBUSY;
	case SEGMENT_ORPHANED:
		return segment_attach(name, true, out, err);
	case SEGMENT_FOREIGN:
		rc = segment_unlink(name);
		if (rc < 0)
			return err_sys(err, -rc, "remove the table %s", name);
		break;
	case SEGMENT_ABSENT:
		break;
	}
	rc = segment_create(name, i->name, 1, 1, out, err);
	return rc == -EEXIST ? -EBUSY : rc;
}

/* ---- what drivers know of ---- */

static void report_lines(const struct removal *r, const char *kind, struct buf *text)
{
	char *save = NULL;

	if (buf_terminate(text) < 0)
		return;
	for (char *line = strtok_r((char *)text->data + text->off, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		r->fn(r->ctx, kind, line, NULL);
}

static void sweep_boxes(const struct removal *r)
{
	char worker[4096];
	char verb[] = "sweep";
	char look[] = "list";
	char no_uids[] = "0"; /* only start() and what it is told of pids need them */
	char *argv[] = {worker, r->dry ? look : verb, r->i->name, r->i->paths.runtime_dir,
	    r->i->paths.state_dir, no_uids, NULL};
	struct buf out;
	struct buf errors;
	struct err err;
	int rc = host_program_find("sbx-worker", worker, sizeof(worker), &err);

	if (rc < 0) {
		r->fn(r->ctx, "boxes", r->i->name, err.text);
		return;
	}
	buf_init(&out, OUTPUT_MAX);
	buf_init(&errors, OUTPUT_MAX);
	rc = host_program_run(argv, clock_now_ns() + SWEEP_NS, &out, &errors);
	report_lines(r, "box", &out);
	if (rc != 0 && buf_terminate(&errors) == 0)
		r->fn(r->ctx, "boxes", r->i->name,
		    errors.len ? (const char *)buf_head(&errors) : "sbx-worker failed");
	buf_free(&out);
	buf_free(&errors);
}

/* ---- processes, cgroups, mounts ---- */

static void end_process(void *ctx, pid_t pid, uint64_t start, const char *name)
{
	const struct removal *r = ctx;
	FD_SCOPED int pidfd = -1;
	char what[128];
	int rc = 0;

	(void)snprintf(what, sizeof(what), "%d (%.80s)", (int)pid, name);
	if (!r->dry) {
		pidfd = proc_open_exact(pid, start);
		rc = pidfd < 0 ? pidfd : proc_signal(pidfd, SIGKILL);
		if (rc == 0)
			rc = proc_wait_gone(pidfd, KILL_MS);
	}
	report(r, "process", what, rc == -ESRCH ? 0 : rc);
}

static void remove_cgroup(void *ctx, const char *path, const char *instance)
{
	const struct removal *r = ctx;
	struct stat st;

	if (!strcmp(instance, r->i->name) && lstat(path, &st) == 0 && st.st_uid == r->i->uid)
		report(r, "cgroup", path, r->dry ? 0 : host_cgroup_destroy(path));
}

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* The newest first: what is mounted on another one goes before it. */
static void remove_mounts(const struct removal *r)
{
	char *text = malloc(MOUNTS_MAX);
	char place[4096];

	if (!text || fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, MOUNTS_MAX) < 0) {
		free(text);
		return;
	}
	for (char *end = text + strlen(text); end > text; *end = '\0') {
		const char *line;

		end--;
		while (end > text && *end != '\n')
			end--;
		line = *end == '\n' ? end + 1 : end;
		if (sscanf(line, "%*s %*s %*s %*s %4095s", place) != 1 ||
		    (!is_below(place, r->i->paths.runtime_dir) &&
			!is_below(place, r->i->paths.state_dir)))
			continue;
		report(r, "mount", place,
		    r->dry || umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) == 0 ? 0 : -errno);
	}
	free(text);
}

/* ---- files ---- */

/* Sockets of workers, in the directory for them. */
static int remove_sockets(int runtime)
{
	int fd = openat(runtime, RENDEZVOUS_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		int rc = errno == ENOENT ? 0 : -errno;

		fd_close(&fd);
		return rc;
	}
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		struct stat st;

		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISSOCK(st.st_mode))
			(void)unlinkat(dirfd(dir), e->d_name, 0); /* rmdir tells */
	}
	(void)closedir(dir); /* it was only read */
	return unlinkat(runtime, RENDEZVOUS_DIR, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Only what sbxd makes there: anything else is somebody's, and keeps the directory. */
static int remove_runtime(const struct gc_instance *i)
{
	FD_SCOPED int fd =
	    open(i->paths.runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *name = strrchr(i->paths.socket, '/') + 1;
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != i->uid)
		return -EPERM;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
	    unlinkat(fd, name, 0) < 0)
		return -errno;
	rc = remove_sockets(fd);
	if (rc < 0)
		return rc;
	return rmdir(i->paths.runtime_dir) < 0 ? -errno : 0;
}

static void remove_all(struct removal *r)
{
	if (r->i->has_runtime)
		sweep_boxes(r);
	gc_named_processes(r->i, end_process, r);
	host_cgroup_each(remove_cgroup, r);
	remove_mounts(r);
	if (r->i->has_runtime)
		report(r, "directory", r->i->paths.runtime_dir, r->dry ? 0 : remove_runtime(r->i));
}

int gc_remove(struct gc_instance *i, bool dry, gc_report_fn *fn, void *ctx, struct err *err)
{
	struct removal r = {i, dry, fn, ctx};
	enum segment_verdict was;
	struct segment table;
	int rc;

	if (dry) {
		remove_all(&r);
		if (i->has_table)
			report(&r, "table", i->paths.shm_name, 0);
		return 0;
	}
	rc = take_over(i, &table, &was, err);
	if (rc < 0)
		return rc == -EBUSY ? err_set(err, EBUSY, "it is not dead any more") : rc;
	/* An sbxd may have come and died since it was judged: its workers wait for the next one. */
	if (gc_has_workers(i, was)) {
		if (was != SEGMENT_ORPHANED)
			(void)segment_unlink(i->paths.shm_name); /* ours, and empty */
		segment_close(&table);
		return err_set(err, EBUSY, "it is not dead any more: %s", i->why);
	}
	remove_all(&r);
	rc = segment_unlink(i->paths.shm_name);
	if (i->has_table)
		report(&r, "table", i->paths.shm_name, rc);
	segment_close(&table);
	return 0;
}
