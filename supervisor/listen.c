/* listen: the Unix socket that agents connect to. Runs in sbxd; its successor replaces the socket
 * file. */
#include "supervisor/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/client.h"
#include "supervisor/sbxd.h"

#define LISTEN_BACKLOG 1024
#define LISTEN_BATCH 64 /* connections taken in one go, so that others get their turn */
#define LISTEN_MODE 0660
#define LISTEN_PAUSE (200 * NS_PER_MS)

static void on_pause_over(struct loop *l, struct loop_timer *t)
{
	struct sbxd *s = LOOP_OWNER(t, struct sbxd, listen_pause);

	(void)loop_mod(l, &s->listen_watch, EPOLLIN);
}

/* Out of descriptors or memory: the connection stays in the queue and would wake us at once. */
static void pause_accepting(struct sbxd *s)
{
	log_warn("accept: %s; trying again in a while", strerror(errno));
	(void)loop_mod(s->loop, &s->listen_watch, 0);
	if (loop_timer_set(
		s->loop, &s->listen_pause, loop_now(s->loop) + LISTEN_PAUSE, on_pause_over) < 0)
		(void)loop_mod(
		    s->loop, &s->listen_watch, EPOLLIN); /* then rather at once than never */
}

static void on_connection(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct sbxd *s = LOOP_OWNER(w, struct sbxd, listen_watch);

	(void)l;
	(void)events;
	for (int i = 0; i < LISTEN_BATCH; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			client_accept(s->clients, fd);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_accepting(s);
		return;
	}
}

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

int listen_open(struct sbxd *s, struct err *err)
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
	rc = loop_add(s->loop, &s->listen_watch, fd, EPOLLIN, on_connection);
	if (rc < 0)
		return err_sys(err, -rc, "watch %s", s->socket_path);
	s->listen_fd = fd_take(&fd);
	return 0;
}

void listen_close(struct sbxd *s)
{
	if (s->listen_fd < 0)
		return;
	loop_timer_clear(s->loop, &s->listen_pause);
	loop_del(s->loop, &s->listen_watch);
	fd_close(&s->listen_fd);
	(void)unlink(s->socket_path); /* ours; a successor would replace it anyway */
}
