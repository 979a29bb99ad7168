/* bench_counter: a command in a box that counts aloud, and a process that reads along: is every
 * number there, and how long does nothing come. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define FIRST_BOUND_NS (20 * NS_PER_S)

enum counter_end { COUNTER_RUNS, COUNTER_WHOLE, COUNTER_BROKEN };

/* Shared with the reading process. */
struct counter {
	_Atomic uint64_t numbers;
	_Atomic uint64_t silence_ns;
	_Atomic uint32_t end; /* enum counter_end */
	pid_t reader;
};

/* A number each ms, so that there is always something on its way. */
#define COUNT_ALOUD                                                                  \
	"{\"argv\":[\"/usr/bin/perl\",\"-e\",\"$|=1;for($i=0;!-e q(/tmp/stop);$i++)" \
	"{print $i,qq(\\n);select undef,undef,undef,.001}\"]}"

/* ---- the reading process ---- */

/* What one line says, escaped as in JSON; *partial: of a number whose end has not come yet. */
static bool read_numbers(struct counter *c, const char *data, uint64_t *partial)
{
	for (const char *p = data; *p != '"'; p++) {
		if (*p >= '0' && *p <= '9') {
			*partial = *partial * 10 + (uint64_t)(*p - '0');
		} else if (p[0] == '\\' && p[1] == 'n') {
			if (*partial != c->numbers)
				return false;
			c->numbers++;
			*partial = 0;
			p++;
		} else {
			return false;
		}
	}
	return true;
}

static void note_silence(struct counter *c, uint64_t *last)
{
	uint64_t now = clock_now_ns();

	if (now - *last > c->silence_ns)
		c->silence_ns = now - *last; /* reset only by whoever asks for it */
	*last = now;
}

static void read_along(struct counter *c, int fd)
{
	static const char data[] = "\"data\":\"";
	FILE *f = fdopen(fd, "r");
	uint64_t last = clock_now_ns();
	uint64_t partial = 0;
	char *line = NULL;
	size_t cap = 0;

	while (f && c->end == COUNTER_RUNS && getline(&line, &cap, f) > 0) {
		const char *at = strstr(line, data);

		note_silence(c, &last);
		if (at && !read_numbers(c, at + sizeof(data) - 1, &partial))
			c->end = COUNTER_BROKEN;
		else if (strstr(line, "\"exit_code\":0"))
			c->end = COUNTER_WHOLE;
	}
	if (c->end == COUNTER_RUNS)
		c->end = COUNTER_BROKEN;
}

/* ---- its owner ---- */

static void fork_reader(struct counter *c, int fd)
{
	c->reader = fork();
	if (c->reader < 0)
		bench_die("fork");
	if (c->reader > 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	read_along(c, fd);
	_exit(0);
}

struct counter *counter_start(const struct daemon *d, const char *id)
{
	struct counter *c =
	    mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t begin = clock_now_ns();
	char request[512];
	struct wire w;
	int n;

	if (c == MAP_FAILED)
		bench_die("mmap");
	wire_open(&w, d);
	/* HTTP/1.0: the answer comes as it is, without chunks. */
	n = snprintf(request, sizeof(request),
	    "POST /v1/boxes/%s/run HTTP/1.0\r\nAccept: application/x-ndjson\r\n"
	    "Content-Length: %zu\r\n\r\n" COUNT_ALOUD,
	    id, sizeof(COUNT_ALOUD) - 1);
	wire_send(&w, request, (size_t)n);
	fork_reader(c, w.fd);
	wire_close(&w);
	while (c->numbers < 10) {
		if (c->end != COUNTER_RUNS || clock_now_ns() - begin > FIRST_BOUND_NS)
			bench_give_up("the counting command does not start");
		bench_settle(1);
	}
	return c;
}

uint64_t counter_silence_ns(struct counter *c)
{
	return atomic_exchange(&c->silence_ns, 0);
}

uint64_t counter_stop(struct counter *c, struct wire *w, const char *id)
{
	char request[256];
	char path[128];
	uint64_t numbers;

	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/fs/write?path=/tmp/stop", id);
	wire_call(w, request, wire_build(request, sizeof(request), "PUT", path, ""));
	(void)waitpid(c->reader, NULL, 0); /* the worker bounds it, and we are its parent */
	numbers = c->end == COUNTER_WHOLE ? c->numbers : 0;
	(void)munmap(c, sizeof(*c)); /* our own mapping */
	return numbers;
}
