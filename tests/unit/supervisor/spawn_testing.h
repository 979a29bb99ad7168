/*
 * spawn_testing: a helper process that writes down what it finds when it begins. It is the test
 * program itself, as `report FD`.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_SPAWN_TESTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_SPAWN_TESTING_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "supervisor/spawn.h"

#define SELF "/proc/self/exe"
#define LAST_FD (3 + SPAWN_FDS)

extern char **environ;

/* ---- the helper ---- */

static inline void report_fds(FILE *out)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);
		struct stat st;

		if (e->d_name[0] == '.' || fd == dirfd(d) || fstat(fd, &st) < 0)
			continue;
		(void)fprintf(out, "fd %d %llu:%llu\n", fd, (unsigned long long)st.st_dev,
		    (unsigned long long)st.st_ino);
	}
	if (d)
		(void)closedir(d);
}

static inline void report_signals(FILE *out)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "SigBlk:", 7) || !strncmp(line, "SigIgn:", 7))
			(void)fputs(line, out);
	}
	if (f)
		(void)fclose(f);
}

static inline int report(int fd, char **argv)
{
	FILE *out = fdopen(fd, "w");

	if (!out)
		return 99;
	report_fds(out);
	report_signals(out);
	for (char **e = environ; *e; e++)
		(void)fprintf(out, "env %s\n", *e);
	for (char **a = argv; *a; a++)
		(void)fprintf(out, "arg %s\n", *a);
	return fclose(out) == 0 ? 7 : 98;
}

/* ---- what it said ---- */

struct seen {
	char text[16384];
};

static inline bool says(const struct seen *s, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = s->text; at && *at;
	     at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		if (!strncmp(at, line, n) && at[n] == '\n')
			return true;
	}
	return false;
}

static inline bool says_fd(const struct seen *s, int number, const struct stat *st)
{
	char line[96];

	(void)snprintf(line, sizeof(line), "fd %d %llu:%llu", number,
	    (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
	return says(s, line);
}

static inline int count(const struct seen *s, const char *prefix)
{
	int n = 0;

	for (const char *at = s->text; at && *at;
	     at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		n += !strncmp(at, prefix, strlen(prefix));
	return n;
}

/* Waits for the end of the child behind pidfd; its wait status. */
static inline int finish(struct spawned *child)
{
	struct pollfd p = {.fd = child->pidfd, .events = POLLIN};
	int status;

	assert_int_equal(poll(&p, 1, 20000), 1);
	status = spawn_reap(child->pidfd);
	fd_close(&child->pidfd);
	return status;
}

/* Leaves the low numbers as they were. */
static inline void lift(int *fd)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, LAST_FD + 20);

	assert_true(high >= 0);
	fd_close(fd);
	*fd = high;
}

/* Starts the helper with fds, of which the one at `where` (3..7) becomes a pipe that it reports to.
 */
static inline void see(struct seen *s, int fds[SPAWN_FDS], int where)
{
	const char *const argv[] = {
	    "helper", "report", (const char[]){(char)('0' + where), 0}, "three words here", NULL};
	struct spawned child;
	size_t len = 0;
	ssize_t n;
	int pair[2];

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	lift(&pair[0]);
	lift(&pair[1]);
	fds[where - 3] = pair[1];
	assert_int_equal(spawn_process(SELF, argv, fds, &child), 0);
	fd_close(&pair[1]);
	while ((n = read(pair[0], s->text + len, sizeof(s->text) - 1 - len)) > 0)
		len += (size_t)n;
	assert_int_equal(n, 0);
	s->text[len] = '\0';
	fd_close(&pair[0]);
	assert_int_equal(finish(&child), W_EXITCODE(7, 0));
}

static inline int any_file(struct stat *st)
{
	char name[] = "/tmp/sbxd-spawn-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(fstat(fd, st), 0);
	return fd;
}

#endif
