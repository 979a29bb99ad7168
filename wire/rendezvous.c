/*
 * rendezvous: making and finding a worker's socket. Worker and sbxd; a socket file that is left
 * behind by a dead one is replaced by the slot's next worker, or removed by sbxd.
 */
#include "wire/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd.h"

#define RENDEZVOUS_BACKLOG 4
#define RENDEZVOUS_NAME 16

static int open_dir(const char *runtime_dir)
{
	FD_SCOPED int run = open(runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int dir;

	if (run < 0)
		return -errno;
	dir = openat(run, RENDEZVOUS_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

/* The directory may have a longer name than an address holds: it is named by its descriptor. */
static struct sockaddr_un address(int dir, uint32_t slot)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%u", dir, slot);
	return addr;
}

static int remove_at(int dir, uint32_t slot)
{
	char name[RENDEZVOUS_NAME];

	(void)snprintf(name, sizeof(name), "%u", slot);
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int rendezvous_listen(const char *runtime_dir, uint32_t slot)
{
	FD_SCOPED int dir = open_dir(runtime_dir);
	FD_SCOPED int fd = -1;
	struct sockaddr_un addr;
	int rc = dir < 0 ? dir : remove_at(dir, slot);

	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	addr = address(dir, slot);
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, RENDEZVOUS_BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

static int peer_of(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) < 0 ? -errno : 0;
}

int rendezvous_accept(int listener, uid_t uid)
{
	FD_SCOPED int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;

	if (fd < 0)
		return -errno;
	if (peer_of(fd, &peer) < 0 || peer.uid != uid)
		return -EPERM;
	return fd_take(&fd);
}

int rendezvous_connect(const char *runtime_dir, uint32_t slot, pid_t *pid)
{
	FD_SCOPED int dir = open_dir(runtime_dir);
	FD_SCOPED int fd = -1;
	struct sockaddr_un addr;
	struct ucred peer;

	if (dir < 0)
		return dir;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	addr = address(dir, slot);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	if (peer_of(fd, &peer) < 0)
		return -errno;
	*pid = peer.pid;
	return fd_take(&fd);
}

int rendezvous_remove(const char *runtime_dir, uint32_t slot)
{
	FD_SCOPED int dir = open_dir(runtime_dir);

	return dir < 0 ? dir : remove_at(dir, slot);
}
