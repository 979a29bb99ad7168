/*
 * fake_service: a child that answers requests on a Unix socket with what the test wrote down, and
 * keeps what it was asked.
 */
#ifndef SBXD_TESTS_UNIT_TOOLS_FAKE_SERVICE_H
#define SBXD_TESTS_UNIT_TOOLS_FAKE_SERVICE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FAKE_ANSWERS 8
#define FAKE_ASKED 16384

/* What to do with the n-th request, over all connections. */
struct fake_answer {
	const char *bytes;  /* the whole response, or all of one that breaks off */
	const char *json;   /* or the body of one with this status */
	const char *status; /* "404 Not Found"; NULL: 200 */
	bool hang;	    /* after that: neither close nor answer until the client hangs up */
	bool hang_up;	    /* close after that */
};

struct fake {
	char dir[32];
	char socket[64];
	pid_t pid;
	/* Shared with the child: everything it was sent, and how many requests that were. */
	struct fake_log {
		char asked[FAKE_ASKED];
		volatile int requests;
		volatile int closed; /* connections that clients closed */
	} * log;
};

/* Reads one request, of a known length, to its end. 1, or 0 at end of file. */
static inline int fake_read(int fd, struct fake_log *log)
{
	static char request[65536];
	size_t len = 0;
	size_t body = 0;
	char *end = NULL;

	while (!end || len < (size_t)(end - request) + 4 + body) {
		ssize_t n = read(fd, request + len, sizeof(request) - 1 - len);
		char *field;

		if (n <= 0)
			return 0;
		len += (size_t)n;
		request[len] = '\0';
		end = strstr(request, "\r\n\r\n");
		field = end ? strcasestr(request, "\r\ncontent-length:") : NULL;
		body = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
	}
	strncat(log->asked, request, sizeof(log->asked) - strlen(log->asked) - 1);
	strncat(log->asked, "\n", sizeof(log->asked) - strlen(log->asked) - 1);
	log->requests++;
	return 1;
}

/* Serves one connection at a time, each in a child of its own so that one may hang. */
static inline void fake_serve(int listener, struct fake_log *log, const struct fake_answer *answers)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		if (fork() != 0) {
			close(fd);
			continue;
		}
		while (fake_read(fd, log)) {
			const struct fake_answer *a = &answers[log->requests - 1];
			char byte;

			if (a->bytes)
				(void)!write(fd, a->bytes, strlen(a->bytes));
			if (a->json)
				dprintf(fd,
				    "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
				    "Content-Length: %zu\r\n\r\n%s",
				    a->status ? a->status : "200 OK", strlen(a->json), a->json);
			if (a->hang)
				(void)!read(fd, &byte, 1);
			if (a->hang || a->hang_up || (!a->bytes && !a->json))
				break;
		}
		close(fd);
		log->closed++;
		_exit(0);
	}
}

static inline void fake_start(struct fake *f, const struct fake_answer answers[FAKE_ANSWERS])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(f->dir, "/tmp/sbxd-fake-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/s", f->dir);
	strcpy(addr.sun_path, f->socket);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 8), 0);
	f->log =
	    mmap(NULL, sizeof(*f->log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->log != MAP_FAILED);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		setpgid(0, 0);
		fake_serve(listener, f->log, answers);
	}
	setpgid(f->pid, f->pid);
	close(listener);
}

static inline void fake_stop(struct fake *f)
{
	kill(-f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	unlink(f->socket);
	rmdir(f->dir);
	munmap(f->log, sizeof(*f->log));
}

#endif
