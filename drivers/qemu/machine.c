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
	fd_close(&m->listener);
}

int machine_wait(const struct machine *m, int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p[] = {
	    {.fd = fd, .events = events},
	    {.fd = m->pidfd, .events = POLLIN},
	    {.fd = m->listener, .events = POLLIN},
	};
	int rc;

	for (;;) {
		rc = poll(p, 3, machine_wait_ms(deadline_ns));
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
	char text[4096] = "";
	char line[WORDS];
	const char *at;
	ssize_t n = m->console < 0 ? -1 : recv(m->console, text, sizeof(text) - 1, MSG_DONTWAIT);
	size_t len = err ? strlen(err->text) : 0;

	if (!err)
		return;
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
