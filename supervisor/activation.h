/* activation: the socket that a service manager has opened for us, by the protocol of
 * sd_listen_fds(3). */
#ifndef SBXD_SUPERVISOR_ACTIVATION_H
#define SBXD_SUPERVISOR_ACTIVATION_H

#include "lib/err.h"

/*
 * Takes the descriptor that was handed to this process, and its variables out of the environment,
 * so that no child takes it for its own: to be called once, before anything is started. What is
 * taken must be one Unix stream socket that listens at `path`: a service that listens elsewhere
 * than it was told to would be found by nobody. *fd is then the caller's, close-on-exec and
 * non-blocking; its file is the manager's and stays. Without one *fd is -1. 0, or -errno with *err.
 */
int activation_take(const char *path, int *fd, struct err *err);

#endif
