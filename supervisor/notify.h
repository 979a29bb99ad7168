/* notify: tells a service manager (sd_notify protocol) how we are. */
#ifndef SBXD_SUPERVISOR_NOTIFY_H
#define SBXD_SUPERVISOR_NOTIFY_H

/* Sends e.g. "READY=1" to $NOTIFY_SOCKET. Does nothing when there is none; a manager that is gone
 * is no error. */
void notify_send(const char *state);

#endif
