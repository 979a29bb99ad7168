/* bench_events: what it costs everybody else that somebody follows the events. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench.h"

#define ROUNDS 20
#define ACQUIRES 200
#define SETTLE_MS 20

/* A process that reads the events until it is killed. */
static pid_t subscribe(const struct daemon *d)
{
	static const char request[] = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct wire w;
	pid_t pid;

	wire_open(&w, d);
	wire_send(&w, request, strlen(request));
	pid = fork();
	if (pid < 0)
		bench_die("fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(w.fd, w.buf, w.cap) > 0)
			;
		_exit(0);
	}
	wire_close(&w);
	return pid;
}

static void unsubscribe(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void acquire_some(struct wire *w, struct samples *s)
{
	struct acquired a;

	bench_settle(SETTLE_MS);
	for (int i = 0; i < ACQUIRES; i++) {
		call_acquire(w, "followed", &a);
		samples_add(s, a.ns);
		call_release(w, a.id);
	}
}

static int measure_followed(const char *what, const char *config)
{
	struct samples alone = {0};
	struct samples followed = {0};
	struct acquired first;
	struct daemon d;
	struct wire w;
	int missed;

	daemon_start(&d, config);
	wire_open(&w, &d);
	call_acquire(&w, "followed", &first);
	call_release(&w, first.id);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t reader;

		acquire_some(&w, &alone);
		reader = subscribe(&d);
		acquire_some(&w, &followed);
		unsubscribe(reader);
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_times(what, "us", &followed, "the same, nobody follows", &alone, 0);
	samples_free(&alone);
	samples_free(&followed);
	return missed;
}

int bench_events(uint32_t boxes)
{
	(void)boxes;
	return measure_followed("warm acquire, events followed", "replicas: 10\n") +
	       measure_followed(
		   "the same, check skipped", "replicas: 10\nhealth_check_skip_seconds: 3600\n");
}
