/*
 * process: starts the real sbx-guest for a test, ends it, and looks at it from outside.
 *
 * The guest runs either as a plain child or as PID 1 of a new pid and mount namespace. The binary
 * is $SBX_GUEST, by default build/sbx-guest; its helper is $SBX_FILES, by default build/sbx-files.
 */
#ifndef SBXD_TESTS_GUEST_PROCESS_H
#define SBXD_TESTS_GUEST_PROCESS_H

#include "tests/unit/guest/drive.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DRIVE_UNUSED __attribute__((unused))

static inline const char *drive_binary(void)
{
	const char *path = getenv("SBX_GUEST");

	return path != NULL ? path : "build/sbx-guest";
}

static inline const char *drive_files(void)
{
	const char *path = getenv("SBX_FILES");

	return path != NULL ? path : "build/sbx-files";
}

static inline void drive_child(int fd, bool init)
{
	int files = open(drive_files(), O_RDONLY);
	int null = open("/dev/null", O_RDWR);

	/* As in a box: so it is up to the guest that nobody looks into it. */
	(void)prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0);
	if (init &&
	    (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0))
		_exit(99);
	(void)dup2(fd, 0);
	(void)dup2(fd, 1);
	(void)dup2(null, 2);
	(void)dup2(files, 3);
	(void)syscall(SYS_close_range, 4, ~0U, 0);
	execl(drive_binary(), "sbx-guest", (char *)NULL);
	_exit(98);
}

/* buffer: how much the guest may write before it is read, in bytes. */
static inline struct drive *drive_start_with(bool init, int buffer)
{
	struct drive *d = calloc(1, sizeof(*d));
	struct agent_head h;
	const uint8_t *p;
	int pair[2];
	long pid;

	assert_non_null(d);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	pid = syscall(
	    SYS_clone, (init ? CLONE_NEWPID | CLONE_NEWNS : 0) | SIGCHLD, NULL, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (pid == 0)
		drive_child(pair[1], init);
	close(pair[1]);
	d->pid = (pid_t)pid;
	d->init = init;
	d->fd = pair[0];
	assert_true(drive_recv(d, &h, &p));
	assert_int_equal(h.type, AGENT_HELLO);
	assert_int_equal(h.size, sizeof(d->hello));
	memcpy(&d->hello, p, sizeof(d->hello));
	return d;
}

static DRIVE_UNUSED struct drive *drive_start(bool init)
{
	return drive_start_with(init, 4 << 20);
}

/* Waits for the guest to end by itself. Its wait status. */
static inline int drive_await_end(struct drive *d)
{
	int status = -1;
	int fd = (int)syscall(SYS_pidfd_open, d->pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_true(fd >= 0);
	assert_int_equal(poll(&p, 1, DRIVE_PATIENCE_MS), 1);
	close(fd);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	d->pid = 0;
	return status;
}

static inline void drive_free(struct drive *d)
{
	for (uint32_t i = 0; i < DRIVE_CHANNELS; i++)
		drive_forget(d, i);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

static DRIVE_UNUSED int setup_agent(void **state)
{
	/* What a guest might leave becomes our child, and is found in the teardown. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	*state = drive_start(false);
	return 0;
}

static DRIVE_UNUSED int setup_init(void **state)
{
	if (geteuid() != 0) {
		*state = NULL;
		return 0;
	}
	*state = drive_start(true);
	return 0;
}

/* The worker goes: the guest ends, and nothing of it is left. */
static DRIVE_UNUSED int teardown(void **state)
{
	struct drive *d = *state;

	if (d == NULL)
		return 0;
	if (d->pid != 0) {
		(void)shutdown(d->fd, SHUT_RDWR);
		assert_int_equal(drive_await_end(d), 0);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	drive_free(d);
	return 0;
}

static inline struct drive *drive_of(void **state)
{
	if (*state == NULL)
		skip(); /* a pid namespace needs root */
	return *state;
}

/* A test runs with the guest as a plain agent and as PID 1. */
#define GUEST_TEST(f)                                       \
	{#f " (agent)", f, setup_agent, teardown, NULL},    \
	{                                                   \
#f " (init)", f, setup_init, teardown, NULL \
	}

/* How many descriptors the guest has open, itself not counted. */
static DRIVE_UNUSED int count_fds(const struct drive *d)
{
	char path[64];
	int n = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", d->pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 2;
}

/* How many children the guest has; *zombies of them dead. Idle shims are two at most. */
static DRIVE_UNUSED int count_children(const struct drive *d, int *zombies)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	int n = 0;

	*zombies = 0;
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		char path[300];
		char line[512] = "";
		char state = 0;
		int parent = 0;
		const char *at;
		FILE *f;

		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		if (fgets(line, sizeof(line), f) != NULL && (at = strrchr(line, ')')) != NULL &&
		    sscanf(at, ") %c %d", &state, &parent) == 2 && parent == d->pid) {
			n++;
			*zombies += state == 'Z';
		}
		fclose(f);
	}
	closedir(dir);
	return n;
}

/* How many processes of that uid there are on the machine. */
static DRIVE_UNUSED int count_uid(uid_t uid)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	int n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		struct stat st;

		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
		    fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && st.st_uid == uid)
			n++;
	}
	closedir(dir);
	return n;
}

#endif
