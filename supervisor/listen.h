/* listen: the Unix socket that agents connect to. */
#ifndef SBXD_SUPERVISOR_LISTEN_H
#define SBXD_SUPERVISOR_LISTEN_H

#include "lib/err.h"

struct sbxd;

/*
 * Binds s->socket_path (0660) and watches it. A socket left by a dead daemon is replaced; one that
 * answers is -EADDRINUSE. 0 or -errno with *err.
 */
int listen_open(struct sbxd *s, struct err *err);

/* Stops listening and removes the socket. */
void listen_close(struct sbxd *s);

#endif
