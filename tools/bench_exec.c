/* bench_exec: a command as an execution, with its client attached by a WebSocket on a connection of
 * its own, as BoxLite's SDK does it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define ROUNDS 20
#define EACH 25
#define TRUE_RUN "{\"argv\":[\"/bin/true\"]}"
#define TRUE_EXEC "{\"command\":\"/bin/true\"}"
#define CLOSE_LEN 8 /* a Close with a code, masked */

struct target {
	struct daemon d;
	struct wire w; /* for requests; attached clients have others */
	struct acquired box;
};

/* Reads until the exit and the Close behind it have come. */
static void read_exit(struct wire *w)
{
	static const char exit_is[] = "\"exit_code\":0";
	size_t have = 0;
	char *at = NULL;

	/* Our Close is the last that comes, and a frame of four bytes. */
	while (!at || !memmem(at, have - (size_t)(at - w->buf), "\x88\x02\x03\xe8", 4)) {
		ssize_t n = read(w->fd, w->buf + have, w->cap - have);

		if (n <= 0)
			bench_give_up("an attached client is left alone");
		have += (size_t)n;
		at = memmem(w->buf, have, exit_is, sizeof(exit_is) - 1);
	}
}

static void attach(struct target *t, struct wire *ws, const char *execution)
{
	char request[512];
	int n = snprintf(request, sizeof(request),
	    "GET /v1/boxes/%s/executions/%s/attach HTTP/1.1\r\nHost: localhost\r\n"
	    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	    t->box.id, execution);

	wire_connect(ws, &t->d);
	wire_send(ws, request, (size_t)n);
	read_exit(ws);
}

static uint64_t exec_true(struct target *t, struct wire *ws, const char *request, size_t len)
{
	static const char goodbye[CLOSE_LEN] = "\x88\x82\0\0\0\0\x03\xe8";
	uint64_t begin = clock_now_ns();
	uint64_t took;
	char execution[64];

	wire_call(&t->w, request, len);
	if (t->w.status != 201 ||
	    !wire_json_text(&t->w, "execution_id", execution, sizeof(execution)))
		bench_give_up("`true` is not executed");
	attach(t, ws, execution);
	took = clock_now_ns() - begin;
	wire_send(ws, goodbye, sizeof(goodbye));
	wire_disconnect(ws);
	return took;
}

static uint64_t run_true(struct target *t, const char *request, size_t len)
{
	uint64_t begin = clock_now_ns();

	wire_call(&t->w, request, len);
	if (wire_json_int(&t->w, "exit_code") != 0)
		bench_give_up("`true` fails");
	return clock_now_ns() - begin;
}

static size_t build(const struct target *t, char out[512], const char *what, const char *body)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/%s", t->box.id, what);
	return wire_build(out, 512, "POST", path, body);
}

int bench_exec(uint32_t boxes)
{
	struct samples run = {0};
	struct samples exec = {0};
	struct wire ws = {.fd = -1};
	struct target t;
	char run_request[512];
	char exec_request[512];
	size_t run_len;
	size_t exec_len;
	int missed;

	(void)boxes;
	daemon_start(&t.d, "replicas: 1000\n");
	wire_open(&t.w, &t.d);
	call_acquire(&t.w, "exec", &t.box);
	wire_keep(&ws, 65536);
	run_len = build(&t, run_request, "run", TRUE_RUN);
	exec_len = build(&t, exec_request, "exec", TRUE_EXEC);
	for (int i = 0; i < ROUNDS * EACH; i++) {
		samples_add(&run, run_true(&t, run_request, run_len));
		samples_add(&exec, exec_true(&t, &ws, exec_request, exec_len));
	}
	wire_close(&t.w);
	free(ws.buf);
	daemon_stop(&t.d);
	missed = print_times("exec and attach of `true`", "us", &exec, "run `true`", &run, 1.3);
	samples_free(&run);
	samples_free(&exec);
	return missed;
}
