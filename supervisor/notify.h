/*
 * notify: tells a service manager how we are, by the protocol of sd_notify(3). Nothing here waits:
 * a state that cannot be sent now is due, and goes out with the next notify_retry().
 */
#ifndef SBXD_SUPERVISOR_NOTIFY_H
#define SBXD_SUPERVISOR_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOTIFY_STATUS_MAX 512 /* bytes of a status, the rest is cut */

/* Who is told. */
struct notify {
	int fd; /* owned; -1: nobody is to be told */
	struct sockaddr_un addr;
	socklen_t addr_len;
	uint64_t watchdog_ns;		/* it must hear of us this often; 0: it need not */
	const char *due;		/* a state it has not been told yet, NULL none */
	char status[NOTIFY_STATUS_MAX]; /* the one that was told last */
};

#define NOTIFY_NOBODY    \
	{                \
		.fd = -1 \
	}

/*
 * Takes $NOTIFY_SOCKET (a path, or @ and an abstract name) and, if it is meant for this process,
 * $WATCHDOG_USEC out of the environment, so that no child takes them for its own. A socket that
 * cannot be used is logged, and nobody is told.
 */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

/* Tells one state, e.g. "READY=1"; the text must live on. The newest one replaces one that is due.
 * A manager that is gone is no error. */
void notify_send(struct notify *n, const char *state);

/* The same, once and at best: nothing becomes due. 0 or -errno. For WATCHDOG=1 and the like. */
int notify_try(const struct notify *n, const char *state);

/* Sends what is due, if anything. */
void notify_retry(struct notify *n);

/* What a person is shown of us: one line, in which control characters become '?'. Sends nothing
 * when it is as before. */
void notify_status(struct notify *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Says that a reload begins, at the given CLOCK_MONOTONIC time; READY=1 says that it is over. */
void notify_reloading(struct notify *n, uint64_t now_ns);

#endif
