/* listen_unix: the Unix socket. Runs in sbxd; its successor replaces the socket file. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd.h"
#include "supervisor/listen.h"
#include "supervisor/sbxd.h"

#define LISTEN_MODE 0660

static int fill_address(const char *path, struct sockaddr_un *addr)
{
	size_t len = strlen(path);

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (len >= sizeof(addr->sun_path))
		return -ENAMETOOLONG;
	memcpy(addr->sun_path, path, len);
	return 0;
}

/* Is somebody listening there? */
static bool answers(const struct sockaddr_un *addr)
{
	FD_SCOPED int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	return connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN;
}

/* With its mode from the first moment: who may use the socket is never told that it may not. */
static int bind_as(int fd, const struct sockaddr_un *addr, mode_t mode)
{
	mode_t old = umask(~mode & 0777);
	int rc = bind(fd, (const struct sockaddr *)addr, sizeof(*addr));

	(void)umask(old); /* always succeeds, and leaves errno alone */
	return rc;
}

int listen_unix(const struct sbxd *s, struct err *err)
{
	struct sockaddr_un addr;
	FD_SCOPED int fd = -1;
	int rc = fill_address(s->socket_path, &addr);

	if (rc < 0)
		return err_sys(err, -rc, "socket %s", s->socket_path);
	if (answers(&addr))
		return err_set(
		    err, EADDRINUSE, "socket %s: another daemon listens there", s->socket_path);
	if (unlink(s->socket_path) < 0 && errno != ENOENT)
		return err_sys(err, errno, "remove the old socket %s", s->socket_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "socket");
	if (bind_as(fd, &addr, LISTEN_MODE) < 0)
		return err_sys(err, errno, "bind %s", s->socket_path);
	if (s->admin_gid != (gid_t)-1 && chown(s->socket_path, (uid_t)-1, s->admin_gid) < 0)
		return err_sys(
		    err, errno, "give %s to group %u", s->socket_path, (unsigned int)s->admin_gid);
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return err_sys(err, errno, "listen on %s", s->socket_path);
	return fd_take(&fd);
}
