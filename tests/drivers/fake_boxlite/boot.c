/* boot: the box's process, fake-boxlite-shim, which stands beside this library. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "tests/drivers/fake_boxlite/fake.h"
#include "tests/drivers/fake_boxlite/proto.h"

#define BOOT_MS 60000	 /* a start takes some milliseconds; the machine may be busy */
#define STOP_MS 10000	 /* for the box to end by itself */
#define FIRST_SAFE_FD 10 /* above those that the box's process gets */

void library_dir(char out[PATH_MAX])
{
	Dl_info info;
	char *slash;

	out[0] = '\0';
	if (dladdr((void *)library_dir, &info) && info.dli_fname)
		(void)snprintf(out, PATH_MAX, "%s", info.dli_fname);
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
}

int boot_connect(struct runtime *rt, const char *id)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int dir = record_open(rt, id);
	int sock = dir < 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int rc = dir < 0 ? dir : 0;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/sock", dir);
	if (rc == 0 && connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		rc = -errno;
	fd_close(&dir);
	if (rc == 0)
		return sock;
	fd_close(&sock);
	return rc;
}

/* Descriptors for the box's process; ours end where it has them. */
struct boot_fds {
	int watch;
	int alive; /* the other end of watch */
	int ready[2];
	int dir;
};

static void boot_fds_close(struct boot_fds *f)
{
	fd_close(&f->watch);
	fd_close(&f->alive);
	fd_close(&f->ready[0]);
	fd_close(&f->ready[1]);
	fd_close(&f->dir);
}

/* Out of the way of those that it shall have. */
static void move_up(int *fd)
{
	int up = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_SAFE_FD);

	fd_close(fd);
	*fd = up;
}

static int boot_fds_open(struct runtime *rt, const struct record *r, struct boot_fds *f)
{
	int watch[2] = {-1, -1};

	*f = (struct boot_fds){-1, -1, {-1, -1}, -1};
	if (r->detach || rt->remote)
		watch[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else if (pipe2(watch, O_CLOEXEC) < 0)
		return -errno;
	f->watch = watch[0];
	f->alive = watch[1];
	f->dir = record_open(rt, r->id);
	if (f->watch < 0 || f->dir < 0 || pipe2(f->ready, O_CLOEXEC) < 0)
		return -EMFILE;
	move_up(&f->watch);
	move_up(&f->dir);
	move_up(&f->ready[1]);
	return 0;
}

static int boot_spawn(const struct boot_fds *f, const struct record *r)
{
	char dir[PATH_MAX];
	char path[PATH_MAX + 32];
	char disk[32];
	char id[FAKE_ID];
	char *argv[] = {path, id, disk, NULL};
	char *envp[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, ignorable;
	pid_t pid = -1;
	int rc;

	library_dir(dir);
	(void)snprintf(path, sizeof(path), "%s/fake-boxlite-shim", dir);
	(void)snprintf(id, sizeof(id), "%s", r->id);
	(void)snprintf(disk, sizeof(disk), "%d", r->disk_gb);
	(void)posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		(void)posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, f->watch, SHIM_FD_WATCH);
	(void)posix_spawn_file_actions_adddup2(&actions, f->ready[1], SHIM_FD_READY);
	(void)posix_spawn_file_actions_adddup2(&actions, f->dir, SHIM_FD_DIR);
	(void)posix_spawnattr_init(&attr);
	(void)sigemptyset(&none);
	(void)sigemptyset(&ignorable);
	(void)sigaddset(&ignorable, SIGPIPE);
	(void)sigaddset(&ignorable, SIGCHLD);
	(void)sigaddset(&ignorable, SIGTERM);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &ignorable);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(&pid, path, &actions, &attr, argv, envp);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (rc == 0)
		(void)waitpid(pid, NULL, 0); /* it has gone into the background */
	return -rc;
}

static enum blx_code boot_await(struct boot_fds *f, struct blx_error *err)
{
	struct pollfd p = {.fd = f->ready[0], .events = POLLIN};
	struct shim_ready ready;

	fd_close(&f->ready[1]);
	if (poll(&p, 1, BOOT_MS) <= 0)
		return error_set(err, BLX_ENGINE, "engine error: the box did not boot in time");
	if (read(f->ready[0], &ready, sizeof(ready)) != sizeof(ready))
		return error_set(err, BLX_ENGINE, "engine error: the box's process died");
	ready.step[sizeof(ready.step) - 1] = '\0';
	if (ready.error)
		return error_set(
		    err, BLX_ENGINE, "engine error: %s: %s", ready.step, strerror(ready.error));
	return BLX_OK;
}

enum blx_code boot_start(struct runtime *rt, struct record *r, struct blx_error *err)
{
	struct boot_fds f;
	enum blx_code code;
	int rc;

	if (r->pid)
		return BLX_OK;
	code = image_need(rt, r->image, err);
	if (code != BLX_OK)
		return code;
	rc = boot_fds_open(rt, r, &f);
	if (rc == 0)
		rc = boot_spawn(&f, r);
	code = rc < 0 ? error_sys(err, BLX_ENGINE, rc, "fake-boxlite-shim") : boot_await(&f, err);
	if (code == BLX_OK) {
		record_started(f.dir);
		code = record_find(rt, r->id, r, err);
	}
	if (code == BLX_OK && f.alive >= 0)
		runtime_watch(rt, r->id, fd_take(&f.alive));
	boot_fds_close(&f);
	return code;
}

static int await_gone(pid_t pid, uint64_t start, int ms, bool deadly)
{
	int fd = proc_open_exact(pid, start);
	int rc;

	if (fd < 0)
		return 0;
	rc = proc_wait_gone(fd, ms);
	if (rc < 0 && deadly) {
		(void)proc_signal(fd, SIGKILL);
		rc = proc_wait_gone(fd, STOP_MS);
	}
	(void)close(fd);
	return rc;
}

enum blx_code boot_stop(struct runtime *rt, const struct record *r, struct blx_error *err)
{
	static const uint32_t stop[4] = {SHIM_STOP, 0, 0, 0};
	int sock = boot_connect(rt, r->id);
	int rc;

	if (sock >= 0)
		(void)!send(sock, stop, sizeof(stop), MSG_NOSIGNAL);
	runtime_unwatch(rt, r->id);
	rc = await_gone(r->pid, r->start, sock < 0 ? 0 : STOP_MS, true);
	if (rc == 0)
		rc = await_gone(r->init, r->init_start, STOP_MS, true);
	fd_close(&sock);
	return rc == 0 ? BLX_OK : error_sys(err, BLX_ENGINE, rc, "stopping the box");
}
