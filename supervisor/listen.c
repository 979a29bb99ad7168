/* listen: accepting connections. Runs in sbxd; its successor listens at the same places anew, or
 * gets the same socket again from the service manager. */
#include "supervisor/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/client.h"
#include "supervisor/sbxd.h"

#define LISTEN_BATCH 64 /* connections taken in one go, so that others get their turn */
#define LISTEN_PAUSE (200 * NS_PER_MS)

static void on_pause_over(struct loop *loop, struct loop_timer *t)
{
	struct listener *l = LOOP_OWNER(t, struct listener, pause);

	(void)loop_mod(loop, &l->watch, EPOLLIN);
}

/* Out of descriptors or memory: the connection stays in the queue and would wake us at once. */
static void pause_accepting(struct loop *loop, struct listener *l)
{
	log_warn("accept: %s; trying again in a while", strerror(errno));
	(void)loop_mod(loop, &l->watch, 0);
	if (loop_timer_set(loop, &l->pause, loop_now(loop) + LISTEN_PAUSE, on_pause_over) < 0)
		(void)loop_mod(loop, &l->watch, EPOLLIN); /* then rather at once than never */
}

/* Errors of accept() that are about the one connection, see accept(2): the next one may be fine. */
static bool is_of_connection(int code)
{
	static const int codes[] = {EINTR, ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN,
	    ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (codes[i] == code)
			return true;
	}
	return false;
}

static void on_connection(struct loop *loop, struct loop_watch *w, uint32_t events)
{
	struct listener *l = LOOP_OWNER(w, struct listener, watch);

	(void)events;
	for (int i = 0; i < LISTEN_BATCH; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			l->fn(l->clients, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (!is_of_connection(errno)) {
			pause_accepting(loop, l);
			return;
		}
	}
}

/* Takes over fd, which may be an error that is told already. */
static int start(struct sbxd *s, struct listener *l, int fd, listener_fn *fn, struct err *err)
{
	int rc;

	if (fd < 0)
		return fd;
	l->clients = s->clients;
	l->fn = fn;
	l->fd = fd;
	rc = loop_add(s->loop, &l->watch, fd, EPOLLIN, on_connection);
	return rc < 0 ? err_sys(err, -rc, "watch for connections") : 0;
}

static int start_unix(struct sbxd *s, struct err *err)
{
	if (s->listening < 0)
		return start(s, &s->unix_listener, listen_unix(s, err), client_accept, err);
	s->unix_listener.given = true;
	return start(s, &s->unix_listener, fd_take(&s->listening), client_accept, err);
}

int listen_open(struct sbxd *s, struct err *err)
{
	int rc = 0;

	if (s->config.listen_tcp.set)
		rc = start(s, &s->tcp_listener, listen_tcp(s, err), client_accept_tcp, err);
	if (rc == 0)
		rc = start_unix(s, err);
	if (rc == 0 && s->config.listen_tcp.set)
		listen_tcp_log(s);
	return rc;
}

static void stop(struct loop *loop, struct listener *l)
{
	loop_timer_clear(loop, &l->pause);
	loop_del(loop, &l->watch);
	fd_close(&l->fd);
}

void listen_close(struct sbxd *s)
{
	stop(s->loop, &s->tcp_listener);
	if (s->unix_listener.fd < 0)
		return;
	stop(s->loop, &s->unix_listener);
	if (!s->unix_listener.given)
		(void)unlink(s->socket_path); /* ours; a successor would replace it anyway */
}
