/*
 * listen: the sockets that clients connect to: the Unix socket (listen_unix.c) and, if the
 * configuration says so, one of TCP (listen_tcp.c). Both accept in the same way.
 */
#ifndef SBXD_SUPERVISOR_LISTEN_H
#define SBXD_SUPERVISOR_LISTEN_H

#include <stdbool.h>

#include "lib/err.h"
#include "lib/loop.h"

struct clients;
struct sbxd;

/* Takes over a connection. */
typedef void listener_fn(struct clients *cs, int fd);

/* One socket that is listened on. */
struct listener {
	struct clients *clients;
	listener_fn *fn;
	int fd;	    /* owned; -1: there is none */
	bool given; /* by a service manager: its file is not ours */
	struct loop_watch watch;
	struct loop_timer pause;
};

#define LISTENER_NONE                          \
	{                                      \
		.fd = -1, .watch = {.fd = -1 } \
	}

/*
 * Listens where the configuration says: s->socket_path (0660), and s->config.listen_tcp if it is
 * set. A socket file left by a dead daemon is replaced; an address that answers is -EADDRINUSE.
 * s->listening is taken over instead of the first, if there is one: who may use it is then its
 * maker's to say. 0 or -errno with *err.
 */
int listen_open(struct sbxd *s, struct err *err);

/* Stops listening, and removes the socket file if it is ours. */
void listen_close(struct sbxd *s);

/* ---- between the listen files: a socket that listens, the caller's, or -errno with *err ---- */

#define LISTEN_BACKLOG 1024

int listen_unix(const struct sbxd *s, struct err *err);
int listen_tcp(const struct sbxd *s, struct err *err);

/* Logs where it listens: the port may be one that was free. */
void listen_tcp_log(const struct sbxd *s);

#endif
