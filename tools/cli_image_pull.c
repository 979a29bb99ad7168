/*
 * cli_image_pull: sbxctl image pull, and how far it is. If it dies, the pull goes on: it is the
 * service's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/cli.h"
#include "tools/cli_progress.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define LINE_BYTES (1024U * 1024U)
#define SILENCE_S 60 /* of a service that says something every 15 s */
#define WHAT_LEN 200

struct pulling {
	const struct cli *cli;
	const char *reference;
	struct cli_progress progress;
	char what[WHAT_LEN]; /* "fetching REFERENCE" */
	struct buf line;
	json_t *last; /* the last line: the image, or an error */
};

static void show(struct pulling *p, const json_t *line)
{
	char what[WHAT_LEN];
	uint64_t done = (uint64_t)cli_int_at(line, "done_bytes");

	(void)snprintf(what, sizeof(what), "%s %s", cli_text_at(line, "status"), p->reference);
	if (strcmp(what, p->what) != 0) {
		cli_progress_end(&p->progress);
		memcpy(p->what, what, sizeof(what));
		cli_progress_begin(
		    &p->progress, p->what, (uint64_t)cli_int_at(line, "total_bytes"), p->cli->json);
	}
	cli_progress_add(&p->progress, done > p->progress.done ? done - p->progress.done : 0);
}

static int take_line(struct pulling *p)
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

static int take_bytes(struct pulling *p, const uint8_t *bytes, size_t n)
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
static int read_stream(struct pulling *p, struct httpc *c)
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
		return cli_fail("image pull", &err);
	return CLI_OK;
}

static int tell(struct pulling *p)
{
	const json_t *error = json_object_get(p->last, "error");
	char bytes[16];

	if (!p->last || error) {
		(void)fprintf(stderr, "sbxctl: image pull: ");
		cli_put_text(
		    stderr, error ? cli_text_at(error, "message") : "the answer broke off");
		(void)fputc('\n', stderr);
		return CLI_FAILED;
	}
	if (p->cli->json) {
		(void)cli_put_json(p->last); /* cli_finish() looks for errors */
		return CLI_OK;
	}
	cli_format_bytes((uint64_t)cli_int_at(p->last, "size_bytes"), bytes, sizeof(bytes));
	cli_put_text(stdout, cli_text_at(p->last, "reference"));
	(void)printf("  %s  %s\n", cli_text_at(p->last, "id"), bytes);
	return CLI_OK;
}

static int fail_answer(struct httpc *c, unsigned int status)
{
	struct err err = {0};
	struct buf answer;
	int rc;

	buf_init(&answer, LINE_BYTES);
	rc = httpc_read_all(c, cli_deadline(SILENCE_S), &answer, &err);
	rc = rc < 0 ? cli_fail("image pull", &err)
		    : cli_fail_answer("image pull", status, buf_head(&answer), answer.len);
	buf_free(&answer);
	return rc;
}

static int ask(struct pulling *p, struct httpc *c, const struct buf *body)
{
	const struct httpc_request req = {.method = "POST",
	    .path = "/v1/images/pull",
	    .accept = "application/x-ndjson",
	    .body = buf_head(body),
	    .body_len = body->len};
	const struct http_head *head = NULL;
	struct err err = {0};
	int rc = httpc_send(c, &req, cli_deadline(SILENCE_S), &head, &err);

	if (rc == -ECANCELED)
		return CLI_SIGNAL + cli_caught_signal(p->cli);
	if (rc < 0)
		return cli_fail("image pull", &err);
	if (head->status != 200)
		return fail_answer(c, head->status);
	rc = read_stream(p, c);
	if (rc != CLI_OK)
		return rc;
	/* What needs no pull is answered at once, and as one object. */
	if (p->line.len > 0 && take_line(p) < 0)
		return cli_fail("image pull",
		    &(struct err){.code = EBADMSG, .text = "the service's answer is no JSON"});
	return tell(p);
}

static int pull(struct cli *cli, const char *reference)
{
	struct pulling p = {.cli = cli, .reference = reference};
	struct httpc *c = NULL;
	struct err err = {0};
	struct json_out j;
	struct buf body;
	int status;

	buf_init(&body, LINE_BYTES);
	buf_init(&p.line, LINE_BYTES);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	json_put_string(&j, "reference", reference);
	json_object_end(&j);
	if (cli_connect(cli, &c, &err) < 0)
		status = cli_fail("image pull", &err);
	else
		status = ask(&p, c, &body);
	httpc_close(c);
	json_decref(p.last);
	buf_free(&p.line);
	buf_free(&body);
	return status;
}

static int pull_run(struct cli *cli, int argc, char **argv)
{
	int first = cli_parse(cli, NULL, argc, argv);
	int status;

	if (first < 0)
		return -first;
	if (argc - first != 1)
		return cli_usage(cli, "one image is expected");
	status = cli_prepare(cli);
	if (status == CLI_OK)
		status = pull(cli, argv[first]);
	return cli_finish(status);
}

const struct cli_command cli_image_pull = {
    .name = "image",
    .sub = "pull",
    .args = "REFERENCE",
    .help = "fetch an image from its registry: it is what boxes of that name are made of then",
    .run = pull_run,
};
