/* machine: a QEMU process that is there: waiting for it, its last words, its end. Worker, also when
 * it has no privilege left. */
#include "drivers/qemu/machine.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/qemu/opens.h"
#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define WORDS 120 /* of its last words that are told */
#define WAIT_MS_MAX 1000000
#define HEAR_MAX 64 /* pieces that the console may still hold */

int machine_wait_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t left = deadline_ns > now ? (deadline_ns - now) / NS_PER_MS + 1 : 0;

	return left > WAIT_MS_MAX ? WAIT_MS_MAX : (int)left;
}

/* QEMU is the first process of its pid namespace: with it everything in there is gone. */
int machine_kill(struct machine *m, uint64_t deadline_ns)
{
	siginfo_t info;
	int rc;

	if (m->reaped || m->pidfd < 0)
		return 0;
	rc = proc_signal(m->pidfd, SIGKILL);
	if (rc < 0 && rc != -ESRCH)
		return rc;
	rc = proc_wait_gone(m->pidfd, machine_wait_ms(deadline_ns));
	if (rc < 0)
		return rc;
	/* A caller that ignores SIGCHLD has it reaped already. */
	if (waitid(P_PIDFD, (id_t)m->pidfd, &info, WEXITED | __WALL) < 0 && errno != ECHILD)
		return -errno;
	m->reaped = true;
	return 0;
}

void machine_close(struct machine *m)
{
	fd_close(&m->pidfd);
	fd_close(&m->stream);
	fd_close(&m->qmp);
	fd_close(&m->words);
	fd_close(&m->console);
	fd_close(&m->said);
	fd_close(&m->listener);
}

/*
 * Takes something from the console, so that it is never full: a guest's kernel waits a while for
 * every byte that does not leave it. What came first is kept. False: there is nothing more now.
 */
static bool machine_hear(const struct machine *m)
{
	char bytes[4096];
	ssize_t n = recv(m->console, bytes, sizeof(bytes), MSG_DONTWAIT);
	off_t have = n > 0 ? lseek(m->said, 0, SEEK_CUR) : 0;
	size_t room = have >= 0 && have < MACHINE_SAID ? MACHINE_SAID - (size_t)have : 0;

	if (n <= 0)
		return false;
	/* Nobody depends on it: it makes an error clearer. */
	(void)!write(m->said, bytes, (size_t)n < room ? (size_t)n : room);
	return true;
}

int machine_wait(const struct machine *m, int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p[] = {
	    {.fd = fd, .events = events},
	    {.fd = m->pidfd, .events = POLLIN},
	    {.fd = m->listener, .events = POLLIN},
	    {.fd = m->console, .events = POLLIN},
	};
	int rc;

	for (;;) {
		rc = poll(p, sizeof(p) / sizeof(p[0]), machine_wait_ms(deadline_ns));
		if (rc < 0 && errno == EINTR)
			continue;
		if (rc <= 0)
			return rc < 0 ? -errno : -ETIMEDOUT;
		if (p[2].revents & POLLIN) {
			rc = opens_answer(m->listener, m->memory);
			if (rc < 0)
				return rc;
		}
		if (p[0].revents)
			return 0;
		if (p[1].revents)
			return -EPIPE;
		if (p[2].revents & (POLLHUP | POLLERR))
			p[2].fd = -1;
		if (p[3].revents && !machine_hear(m))
			p[3].fd = -1;
		/* One that always has something to say is not waited for any longer. */
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
	}
}

/* The last line that is not empty. */
static bool last_line(const char *text, char *out, size_t size)
{
	const char *end = text + strlen(text);
	const char *line;
	size_t n;

	while (end > text && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
		end--;
	line = end;
	while (line > text && line[-1] != '\n')
		line--;
	n = (size_t)(end - line) < size - 1 ? (size_t)(end - line) : size - 1;
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)line[i] < ' ' ? ' ' : line[i];
	out[n] = '\0';
	return n > 0;
}

void machine_explain(const struct machine *m, struct err *err)
{
	static const char guest[] = "sbx-guest: ";
	char text[MACHINE_SAID + 1] = "";
	char line[WORDS];
	const char *at;
	ssize_t n;
	size_t len = err ? strlen(err->text) : 0;

	if (!err)
		return;
	for (int i = 0; i < HEAR_MAX && machine_hear(m); i++)
		continue;
	n = pread(m->said, text, sizeof(text) - 1, 0);
	/* A panic has a long trace; what led to it stands before. */
	at = n > 0 ? strstr(text, guest) : NULL;
	if (!at && n > 0)
		at = strstr(text, "Kernel panic");
	if (at) {
		(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\r\n"), at);
	} else {
		n = pread(m->words, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		if (!last_line(text, line, sizeof(line)))
			return;
	}
	(void)snprintf(err->text + len, sizeof(err->text) - len, " (%s)", line);
}
