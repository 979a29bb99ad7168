/*
 * activation: the socket that a service manager has opened for us. Runs in sbxd at its start; if it
 * dies, connections wait in that socket for the next one.
 */
#include "supervisor/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd.h"

#define ACTIVATION_FIRST 3 /* SD_LISTEN_FDS_START */

static const char *const variables[] = {
    "LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES"};

static bool number(const char *text, long *out)
{
	char *end = NULL;

	errno = 0;
	*out = strtol(text, &end, 10);
	return *text && errno == 0 && *end == '\0' && *out >= 0;
}

/* How many descriptors are meant for this process. */
static int count_fds(struct err *err)
{
	const char *pid = getenv("LISTEN_PID");
	const char *fds = getenv("LISTEN_FDS");
	long of = 0;
	long count = 0;

	if (!pid || !fds)
		return 0;
	if (!number(pid, &of))
		return err_set(err, EINVAL, "LISTEN_PID: '%.40s' is no process id", pid);
	if (of != getpid())
		return 0; /* of whoever started us */
	if (!number(fds, &count) || count > INT_MAX - ACTIVATION_FIRST)
		return err_set(err, EINVAL, "LISTEN_FDS: '%.40s' is no number of descriptors", fds);
	return (int)count;
}

/* An option of the socket, or -1. */
static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

/* Is it a socket as sbxd would have made it itself? `who` names it for people. */
static int check(int fd, const char *who, const char *path, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);
	char at[sizeof(addr.sun_path) + 1] = "";

	if (option(fd, SO_DOMAIN) != AF_UNIX || option(fd, SO_TYPE) != SOCK_STREAM)
		return err_set(err, EINVAL,
		    "%s is no Unix stream socket: give its unit ListenStream=%s", who, path);
	if (option(fd, SO_ACCEPTCONN) != 1)
		return err_set(err, EINVAL, "%s does not listen: give its unit Accept=no", who);
	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return err_sys(err, errno, "%s: where it listens", who);
	if (len > offsetof(struct sockaddr_un, sun_path))
		memcpy(at, addr.sun_path, len - offsetof(struct sockaddr_un, sun_path));
	if (strcmp(at, path) != 0)
		return err_set(err, EINVAL, "%s listens at '%s', not at %s", who, at, path);
	return 0;
}

/* The descriptor is another's file too, so the flags that matter are set anew each time. */
static int claim(int fd, struct err *err)
{
	int rc = fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : fd_set_nonblock(fd);

	return rc < 0 ? err_sys(err, -rc, "LISTEN_FDS: descriptor %d", fd) : 0;
}

static int take(const char *path, int *fd, struct err *err)
{
	const char *names = getenv("LISTEN_FDNAMES");
	char who[96];
	int count = count_fds(err);
	int rc;

	if (count <= 0)
		return count;
	if (count > 1)
		return err_set(err, EINVAL,
		    "%d sockets are handed over (LISTEN_FDS), and only one is wanted: that of %s",
		    count, path);
	(void)snprintf(who, sizeof(who), "the socket that is handed over%s%.60s",
	    names && *names ? " as " : "", names ? names : "");
	rc = claim(ACTIVATION_FIRST, err);
	if (rc == 0)
		rc = check(ACTIVATION_FIRST, who, path, err);
	if (rc == 0)
		*fd = ACTIVATION_FIRST;
	return rc;
}

int activation_take(const char *path, int *fd, struct err *err)
{
	int given = -1;
	int rc = take(path, &given, err);

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		(void)unsetenv(variables[i]); /* fails for impossible names only */
	if (rc == 0)
		*fd = given;
	return rc;
}
