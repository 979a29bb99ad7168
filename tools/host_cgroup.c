/* host_cgroup: cgroups of this host. sbxctl; what it has not removed is there for the next. */
#include "tools/host_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/paths.h"
#include "lib/proc.h"

#define TEXT_MAX (1U << 20)
#define DEPTH_MAX 6
#define VISITS_MAX 20000
#define DESTROY_NS (5 * NS_PER_S)
#define PAUSE_MS 5
#define PIDS_MAX 65536

/* ---- hierarchies ---- */

/* " a b c " out of words that commas, blanks or newlines part. */
static void put_words(char *out, size_t size, char *words)
{
	char *save = NULL;
	size_t len = 1;

	(void)snprintf(out, size, " ");
	for (char *w = strtok_r(words, ", \n", &save); w && len < size;
	     w = strtok_r(NULL, ", \n", &save))
		len += (size_t)snprintf(out + len, size - len, "%s ", w);
}

/* One line of mountinfo: ... 4: mount point ... " - " type source options. */
static bool parse_mount(char *line, struct host_cgroup *h)
{
	char *tail = strstr(line, " - ");
	char dir[sizeof(h->dir)];
	char type[32];
	char options[256];
	char path[300];
	char text[256];

	if (!tail || sscanf(line, "%*s %*s %*s %*s %255s", dir) != 1 ||
	    sscanf(tail + 3, "%31s %*s %255s", type, options) != 2)
		return false;
	if (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0)
		return false;
	h->v2 = strcmp(type, "cgroup2") == 0;
	(void)snprintf(h->dir, sizeof(h->dir), "%s", dir);
	if (h->v2) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", dir);
		if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
			text[0] = '\0';
		put_words(h->controllers, sizeof(h->controllers), text);
	} else {
		put_words(h->controllers, sizeof(h->controllers), options);
	}
	return true;
}

/* One hierarchy of v1 may be mounted once for each of its controllers. */
static bool seen_before(const struct host_cgroup *all, size_t i)
{
	struct stat own;
	struct stat st;

	if (stat(all[i].dir, &own) < 0)
		return true;
	for (size_t j = 0; j < i; j++) {
		if (stat(all[j].dir, &st) == 0 && st.st_dev == own.st_dev)
			return true;
	}
	return false;
}

size_t host_cgroup_find(struct host_cgroup out[HOST_CGROUP_MOUNTS])
{
	char *text = malloc(TEXT_MAX);
	char *save = NULL;
	size_t n = 0;

	if (!text || fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, TEXT_MAX) < 0) {
		free(text);
		return 0;
	}
	for (char *line = strtok_r(text, "\n", &save); line && n < HOST_CGROUP_MOUNTS;
	     line = strtok_r(NULL, "\n", &save))
		n += parse_mount(line, &out[n]);
	free(text);
	for (size_t i = 0; i < n; i++)
		out[i].again = seen_before(out, i);
	return n;
}

const struct host_cgroup *host_cgroup_with(
    const char *controller, const struct host_cgroup *all, size_t count)
{
	char word[32];

	(void)snprintf(word, sizeof(word), " %s ", controller);
	for (size_t i = 0; i < count; i++) {
		if (strstr(all[i].controllers, word))
			return &all[i];
	}
	return NULL;
}

/* ---- cgroups of ours ---- */

struct walk {
	host_cgroup_fn *fn;
	void *ctx;
	unsigned int visits;
};

/* An ordinary user cannot know which of the others' instances run. */
static bool is_ours(int dirfd, const char *name)
{
	struct stat st;

	return geteuid() == 0 ||
	       (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid());
}

static bool is_instance(const char *name)
{
	return strncmp(name, "sbxd-", 5) == 0 && paths_instance_valid(name + 5);
}

/* What vanishes meanwhile is fine. */
static void walk(struct walk *w, int parent, const char *name, const char *path, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *e = readdir(dir); e && w->visits < VISITS_MAX; e = readdir(dir)) {
		char below[HOST_CGROUP_PATH];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		w->visits++;
		if (snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= (int)sizeof(below))
			continue;
		if (is_instance(e->d_name) && is_ours(dirfd(dir), e->d_name))
			w->fn(w->ctx, below, e->d_name + 5);
		else if (depth < DEPTH_MAX)
			walk(w, dirfd(dir), e->d_name, below, depth + 1);
	}
	(void)closedir(dir); /* opened for reading only */
}

void host_cgroup_each(host_cgroup_fn *fn, void *ctx)
{
	struct host_cgroup all[HOST_CGROUP_MOUNTS];
	size_t count = host_cgroup_find(all);
	struct walk w = {.fn = fn, .ctx = ctx};

	for (size_t i = 0; i < count; i++) {
		if (!all[i].again)
			walk(&w, AT_FDCWD, all[i].dir, all[i].dir, 0);
	}
}

/* ---- the end of one ---- */

/* A pid of cgroup.procs is held by a pidfd and looked for there again before it is killed: so it is
 * one of the cgroup's, and no other that got its number. */
static void kill_one(int dir, pid_t pid)
{
	FD_SCOPED int pidfd = -1;
	char *text = malloc(PIDS_MAX);
	char *save = NULL;
	uint64_t start;

	if (text && proc_start_time(pid, &start) == 0)
		pidfd = proc_open_exact(pid, start);
	if (pidfd >= 0 && fd_read_file_at(dir, "cgroup.procs", text, PIDS_MAX) > 0) {
		for (char *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save)) {
			if (atoi(line) == pid)
				(void)proc_signal(pidfd, SIGKILL); /* rmdir will tell */
		}
	}
	free(text);
}

static void kill_all(int dir)
{
	char *text = malloc(PIDS_MAX);
	char *save = NULL;

	if (fd_write_file_at(dir, "cgroup.kill", "1") < 0 && text &&
	    fd_read_file_at(dir, "cgroup.procs", text, PIDS_MAX) > 0) {
		for (char *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			kill_one(dir, atoi(line));
	}
	free(text);
}

/*
 * Under v2 sbxd may have moved whatever shared its cgroup into the leaf `supervisor`, as a cgroup
 * with children holds no processes. They are nobody's to kill, and go back where they were.
 */
static void give_back(int dir)
{
	char *text = malloc(PIDS_MAX);
	char *save = NULL;

	if (text && fd_read_file_at(dir, "supervisor/cgroup.procs", text, PIDS_MAX) > 0) {
		/* rmdir will tell if anything of this did not work */
		(void)fd_write_file_at(dir, "cgroup.subtree_control", "-memory -pids -cpu");
		(void)fd_write_file_at(dir, "../cgroup.subtree_control", "-memory -pids -cpu");
		for (char *pid = strtok_r(text, "\n", &save); pid;
		     pid = strtok_r(NULL, "\n", &save))
			(void)fd_write_file_at(dir, "../cgroup.procs", pid);
	}
	free(text);
}

/* Those below first; what is in cgroups of boxes is killed. 0, or why this one stays. */
static int destroy_once(int parent, const char *name, int depth, bool box)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		int rc = errno == ENOENT ? 0 : -errno;

		fd_close(&fd);
		return rc;
	}
	if (depth == 0)
		give_back(dirfd(dir));
	for (struct dirent *e = readdir(dir); e && depth < DEPTH_MAX; e = readdir(dir)) {
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			(void)destroy_once(dirfd(dir), e->d_name, depth + 1,
			    box || strncmp(e->d_name, "sbxd-", 5) == 0); /* rmdir tells */
	}
	if (box)
		kill_all(dirfd(dir));
	(void)closedir(dir); /* opened for reading only */
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int host_cgroup_destroy(const char *path)
{
	uint64_t deadline = clock_now_ns() + DESTROY_NS;
	const struct timespec pause = {.tv_nsec = PAUSE_MS * (long)NS_PER_MS};
	int rc;

	/* A killed process is gone a little later; there is nothing to be told by when. */
	while ((rc = destroy_once(AT_FDCWD, path, 0, false)) == -EBUSY && clock_now_ns() < deadline)
		(void)nanosleep(&pause, NULL);
	return rc;
}
