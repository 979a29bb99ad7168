/*
 * cli_follow: a request whose answer tells how far it is. sbxctl; if it dies, what was asked for
 * goes on: it is the service's.
 */
#include "tools/cli_follow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/cli_progress.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define LINE_BYTES (1024U * 1024U)
#define SILENCE_S 60 /* of a service that says something every 15 s */
#define WHAT_LEN 200

struct following {
	const struct cli *cli;
	const struct cli_follow *f;
	struct cli_progress progress;
	char what[WHAT_LEN]; /* "fetching REFERENCE" */
	struct buf line;
	json_t *last; /* the last line: what came of it, or an error */
};

static void show(struct following *p, const json_t *line)
{
	char what[WHAT_LEN];
	uint64_t done = (uint64_t)cli_int_at(line, "done_bytes");

	(void)snprintf(what, sizeof(what), "%s %s", cli_text_at(line, "status"), p->f->subject);
	if (strcmp(what, p->what) != 0) {
		cli_progress_end(&p->progress);
		memcpy(p->what, what, sizeof(what));
		cli_progress_begin(
		    &p->progress, p->what, (uint64_t)cli_int_at(line, "total_bytes"), p->cli->json);
	}
	cli_progress_add(&p->progress, done > p->progress.done ? done - p->progress.done : 0);
}

static int take_line(struct following *p)
{
	struct err err = {0};
	json_t *o = json_parse_object(buf_head(&p->line), p->line.len, &err);

	if (!o)
		return -EBADMSG;
	if (json_object_get(o, "status")) {
		show(p, o);
		json_decref(o);
	} else {
		json_decref(p->last);
		p->last = o;
	}
	return 0;
}

static int take_bytes(struct following *p, const uint8_t *bytes, size_t n)
{
	int rc = 0;

	while (rc == 0 && n > 0) {
		const uint8_t *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;

		rc = buf_append(&p->line, bytes, part);
		if (rc == 0 && end) {
			rc = take_line(p);
			buf_clear(&p->line);
		}
		part += end != NULL;
		bytes += part;
		n -= part;
	}
	return rc;
}

/* The answer to its end. CLI_OK, CLI_FAILED after it has said what went wrong, 128 and a signal. */
static int read_stream(struct following *p, struct httpc *c)
{
	const uint8_t *bytes = NULL;
	struct err err = {0};
	size_t n = 0;
	int rc;

	do {
		rc = httpc_read(c, cli_deadline(SILENCE_S), &bytes, &n, &err);
		if (rc > 0 && take_bytes(p, bytes, n) < 0)
			rc = err_set(&err, EBADMSG, "the service says what is no progress");
	} while (rc > 0);
	cli_progress_end(&p->progress);
	if (rc == -ECANCELED)
		return CLI_SIGNAL + cli_caught_signal(p->cli);
	if (rc < 0)
		return cli_fail(p->f->command, &err);
	return CLI_OK;
}

/* What came of it, unless that is an error, which is said. */
static int take_last(struct following *p, json_t **out)
{
	const json_t *error = json_object_get(p->last, "error");

	if (!p->last || error) {
		(void)fprintf(stderr, "sbxctl: %s: ", p->f->command);
		cli_put_text(
		    stderr, error ? cli_text_at(error, "message") : "the answer broke off");
		(void)fputc('\n', stderr);
		return CLI_FAILED;
	}
	*out = json_incref(p->last);
	return CLI_OK;
}

static int fail_answer(const struct following *p, struct httpc *c, unsigned int status)
{
	struct err err = {0};
	struct buf answer;
	int rc;

	buf_init(&answer, LINE_BYTES);
	rc = httpc_read_all(c, cli_deadline(SILENCE_S), &answer, &err);
	rc = rc < 0 ? cli_fail(p->f->command, &err)
		    : cli_fail_answer(p->f->command, status, buf_head(&answer), answer.len);
	buf_free(&answer);
	return rc;
}

static int ask(struct following *p, struct httpc *c, json_t **out)
{
	const struct httpc_request req = {.method = "POST",
	    .path = p->f->path,
	    .accept = "application/x-ndjson",
	    .body = buf_head(p->f->body),
	    .body_len = p->f->body->len};
	const struct http_head *head = NULL;
	struct err err = {0};
	int rc = httpc_send(c, &req, cli_deadline(SILENCE_S), &head, &err);

	if (rc == -ECANCELED)
		return CLI_SIGNAL + cli_caught_signal(p->cli);
	if (rc < 0)
		return cli_fail(p->f->command, &err);
	if (head->status != 200)
		return fail_answer(p, c, head->status);
	rc = read_stream(p, c);
	if (rc != CLI_OK)
		return rc;
	/* What takes no time is answered at once, and as one object. */
	if (p->line.len > 0 && take_line(p) < 0)
		return cli_fail(p->f->command,
		    &(struct err){.code = EBADMSG, .text = "the service's answer is no JSON"});
	return take_last(p, out);
}

int cli_follow(const struct cli *cli, const struct cli_follow *f, json_t **out)
{
	struct following p = {.cli = cli, .f = f};
	struct httpc *c = NULL;
	struct err err = {0};
	int status;

	buf_init(&p.line, LINE_BYTES);
	if (cli_connect(cli, &c, &err) < 0)
		status = cli_fail(f->command, &err);
	else
		status = ask(&p, c, out);
	httpc_close(c);
	json_decref(p.last);
	buf_free(&p.line);
	return status;
}
