/*
 * cli_events_ask: the flight recorder as the service streams it, for those who may not read the
 * table. sbxctl; when it dies the service sees its connection close.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli_events.h"
#include "wire/json.h"

#define ANSWER_MAX 65536U
#define LINE_BYTES 65536U
#define CONNECT_S 10
#define SILENCE_S 60 /* of a service that says something every 15 s */

struct asking {
	const struct cli *cli;
	struct cli_screen screen;
	struct buf line; /* begun and not yet complete */
	uint64_t last;	 /* the number of the newest record we have */
};

/* One line of the stream. What spans more is not sent; comments and names of events say nothing
 * new. */
static int take_line(struct asking *a, const char *line, FILE *f)
{
	json_t *o;

	if (strncmp(line, "id: ", 4) == 0)
		a->last = strtoull(line + 4, NULL, 10);
	if (strncmp(line, "data: ", 6) != 0)
		return 0;
	o = json_loads(line + 6, 0, NULL);
	if (!json_is_object(o)) {
		json_decref(o);
		return -EBADMSG;
	}
	cli_events_put(a->cli, f, &a->screen, o);
	json_decref(o);
	return 0;
}

static int take_bytes(struct asking *a, const uint8_t *bytes, size_t n, FILE *f)
{
	while (n > 0) {
		const uint8_t *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;
		int rc = buf_append(&a->line, bytes, part);

		if (rc == 0 && end) {
			rc = buf_terminate(&a->line);
			if (rc == 0)
				rc = take_line(a, (const char *)buf_head(&a->line), f);
			buf_clear(&a->line);
		}
		if (rc < 0)
			return rc;
		part += end != NULL;
		bytes += part;
		n -= part;
	}
	return 0;
}

/* Prints what came. 0 or -errno of the output, or -EBADMSG. */
static int print_bytes(struct asking *a, const uint8_t *bytes, size_t n)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (!f)
		return -errno;
	rc = take_bytes(a, bytes, n, f);
	if (fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0)
		rc = cli_write(a->cli, STDOUT_FILENO, text, len);
	free(text);
	return rc;
}

/* The body of the answer to its end. 0: it ended; -ECONNRESET: it broke off; or -errno of the
 * output. */
static int print_stream(struct asking *a, struct httpc *c, struct err *err)
{
	uint64_t limit = cli_deadline(SILENCE_S);
	const uint8_t *bytes = NULL;
	size_t n = 0;
	int rc = 0;

	buf_clear(&a->line);
	while (rc == 0) {
		rc = httpc_read(c, clock_now_ns() + CLI_EVENTS_TICK, &bytes, &n, err);
		if (rc == 0)
			return 0;
		if (rc > 0) {
			limit = cli_deadline(SILENCE_S);
			rc = print_bytes(a, bytes, n);
		} else if (rc == -ETIMEDOUT) {
			err->code = 0; /* silence is none */
			rc = clock_now_ns() < limit ? cli_events_pause(a->cli, 0) : -ECONNRESET;
		}
	}
	return rc;
}

/* One request. As print_stream(), or a positive exit status after it was said what went wrong. */
static int ask_once(struct asking *a, bool follow, struct httpc *c, struct err *err)
{
	char path[64];
	const struct httpc_request req = {
	    .method = "GET", .path = path, .accept = "text/event-stream"};
	const struct http_head *head = NULL;
	struct buf answer;
	int rc;

	(void)snprintf(path, sizeof(path), "/v1/events?since=%llu&follow=%d",
	    (unsigned long long)a->last, follow);
	rc = httpc_send(c, &req, cli_deadline(CONNECT_S), &head, err);
	if (rc < 0)
		return rc;
	if (head->status == 200)
		return print_stream(a, c, err);
	buf_init(&answer, ANSWER_MAX);
	rc = httpc_read_all(c, cli_deadline(CONNECT_S), &answer, err);
	if (rc == 0)
		rc = cli_fail_answer("events", head->status, buf_head(&answer), answer.len);
	buf_free(&answer);
	return rc;
}

/* Until the service is there again; -errno of the output. */
static int connect_again(const struct cli *cli, struct httpc **out)
{
	struct err err;
	int rc;

	(void)fprintf(stderr, "sbxctl: events: sbxd has ended; waiting for the next\n");
	do
		rc = cli_events_pause(cli, CLI_EVENTS_TICK);
	while (rc == 0 && cli_connect(cli, out, &err) < 0);
	return rc;
}

static int finish(int rc, const struct err *err)
{
	if (rc > 0)
		return rc;
	if (rc == 0 || err->code == 0 || rc == -EPIPE || rc == -ECANCELED)
		return cli_events_end(rc);
	return cli_fail("events", err);
}

int cli_events_ask(const struct cli *cli, bool follow)
{
	struct asking a = {.cli = cli, .screen = cli_screen_of(STDOUT_FILENO)};
	struct httpc *c = NULL;
	struct err err = {0};
	int rc = cli_connect(cli, &c, &err);

	if (rc < 0)
		return finish(rc, &err);
	buf_init(&a.line, LINE_BYTES);
	for (;;) {
		err.code = 0;
		rc = ask_once(&a, follow, c, &err);
		httpc_close(c);
		c = NULL;
		if (!follow || (rc != 0 && rc != -ECONNRESET))
			break;
		err.code = 0;
		rc = connect_again(cli, &c);
		if (rc < 0)
			break;
	}
	buf_free(&a.line);
	return finish(rc, &err);
}
