/*
 * notify: tells a service manager how we are, by the protocol of sd_notify(3). Runs in sbxd; if it
 * dies here the manager starts the next one.
 *
 * The manager's queue may be full, and it may wait for us at that moment: so nothing waits for it.
 */
#include "supervisor/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"

/* 0, or -errno when it is no address of this protocol. */
static int fill_address(const char *name, struct notify *n)
{
	size_t len = strlen(name);

	if (name[0] != '/' && name[0] != '@')
		return -EAFNOSUPPORT;
	if (len >= sizeof(n->addr.sun_path))
		return -ENAMETOOLONG;
	n->addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(n->addr.sun_path, name, len);
	if (name[0] == '@')
		n->addr.sun_path[0] = '\0'; /* an abstract name: every byte of it counts */
	n->addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

static int open_socket(struct notify *n)
{
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return n->fd < 0 ? -errno : 0;
}

/* The value of a variable as a number; 0 when it is none. */
static uint64_t number(const char *name)
{
	const char *text = getenv(name);
	char *end = NULL;
	uint64_t value;

	if (!text || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' ? value : 0;
}

/* Without WATCHDOG_PID it is meant for whoever has it: sd_watchdog_enabled(3). */
static uint64_t watchdog_ns(void)
{
	uint64_t usec = number("WATCHDOG_USEC");

	if (getenv("WATCHDOG_PID") && number("WATCHDOG_PID") != (uint64_t)getpid())
		return 0;
	return usec < UINT64_MAX / NS_PER_US ? usec * NS_PER_US : 0;
}

void notify_open(struct notify *n)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int rc;

	*n = (struct notify)NOTIFY_NOBODY;
	if (name) {
		rc = fill_address(name, n);
		if (rc == 0)
			rc = open_socket(n);
		if (rc < 0)
			log_warn("NOTIFY_SOCKET %s: %s; the service manager is told nothing", name,
			    strerror(-rc));
		else
			n->watchdog_ns = watchdog_ns();
	}
	(void)unsetenv("NOTIFY_SOCKET"); /* fails for impossible names only */
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *n)
{
	fd_close(&n->fd);
}

int notify_try(const struct notify *n, const char *state)
{
	if (n->fd < 0)
		return 0;
	if (sendto(n->fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&n->addr,
		n->addr_len) < 0)
		return -errno;
	return 0;
}

void notify_retry(struct notify *n)
{
	int rc = n->due ? notify_try(n, n->due) : 0;

	/* Whatever else is wrong with it will not pass by itself. */
	if (rc != -EAGAIN && rc != -ENOBUFS)
		n->due = NULL;
}

void notify_send(struct notify *n, const char *state)
{
	n->due = state;
	notify_retry(n);
}

/* A line break would begin another assignment. */
static void make_line(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

void notify_status(struct notify *n, const char *fmt, ...)
{
	static const char name[] = "STATUS=";
	char message[sizeof(name) - 1 + NOTIFY_STATUS_MAX];
	char *text = message + sizeof(name) - 1;
	va_list ap;

	memcpy(message, name, sizeof(name) - 1);
	va_start(ap, fmt);
	(void)vsnprintf(text, NOTIFY_STATUS_MAX, fmt, ap); /* a cut text is still a text */
	va_end(ap);
	make_line(text);
	if (strcmp(text, n->status) != 0 && notify_try(n, message) == 0)
		memcpy(n->status, text, strlen(text) + 1);
}

void notify_reloading(struct notify *n, uint64_t now_ns)
{
	char message[64];

	(void)snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%llu",
	    (unsigned long long)(now_ns / NS_PER_US));
	(void)notify_try(
	    n, message); /* at best: what follows it is READY=1, which is due until told */
}
