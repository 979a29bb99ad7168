/* cli_transfer: bytes into and out of boxes. sbxctl; when it dies the service sees its connection
 * close: a file is then as it was before, of a tree what came before is there. */
#include "tools/cli_transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define PATH_MAX_LEN 16000U
#define ANSWER_MAX 65536U
#define STALL_S 300 /* without a byte: what was sent is being written to the disk */

int cli_transfer_open(struct cli_transfer *t, const struct cli *cli, const char *what)
{
	struct err err;

	*t = (struct cli_transfer){.cli = cli, .what = what};
	return cli_connect(cli, &t->c, &err) < 0 ? cli_transfer_fail(t, &err) : CLI_OK;
}

void cli_transfer_close(struct cli_transfer *t)
{
	cli_progress_end(&t->progress);
	httpc_close(t->c);
	t->c = NULL;
}

int cli_transfer_fail(struct cli_transfer *t, const struct err *err)
{
	int sig = cli_caught_signal(t->cli);

	cli_progress_end(&t->progress);
	return sig ? CLI_SIGNAL + sig : cli_fail(t->what, err);
}

/* The answer is no success: says so, from its body. */
static int refused(struct cli_transfer *t, unsigned int status)
{
	struct err err;
	struct buf body;
	int rc;

	cli_progress_end(&t->progress);
	buf_init(&body, ANSWER_MAX);
	rc = httpc_read_all(t->c, cli_deadline(CLI_WAIT_S), &body, &err);
	rc = rc < 0 ? cli_transfer_fail(t, &err)
		    : cli_fail_answer(t->what, status, buf_head(&body), body.len);
	buf_free(&body);
	return rc;
}

static void take_stat(const json_t *o, struct cli_stat *out)
{
	const char *type = cli_text_at(o, "type");

	out->found = true;
	out->directory = !strcmp(type, "directory");
	out->regular = !strcmp(type, "file");
	out->mode = (unsigned int)strtoul(cli_text_at(o, "mode"), NULL, 8) & 0777U;
	out->size = (uint64_t)cli_int_at(o, "size");
}

static int ask_stat(struct cli_transfer *t, const char *path, struct cli_stat *out)
{
	const struct httpc_request req = {.method = "GET", .path = path};
	uint64_t deadline = cli_deadline(CLI_WAIT_S);
	const struct http_head *head = NULL;
	json_t *answer;
	struct buf body;
	struct err err;
	int status = CLI_OK;

	if (httpc_send(t->c, &req, deadline, &head, &err) < 0)
		return cli_transfer_fail(t, &err);
	buf_init(&body, ANSWER_MAX);
	if (httpc_read_all(t->c, deadline, &body, &err) < 0) {
		buf_free(&body);
		return cli_transfer_fail(t, &err);
	}
	/* What is not found may also be the box: the request that follows is told so again. */
	answer = json_parse_object(buf_head(&body), body.len, NULL);
	if (head->status == 200)
		take_stat(answer, out);
	else if (head->status != 404)
		status = cli_fail_answer(t->what, head->status, buf_head(&body), body.len);
	json_decref(answer);
	buf_free(&body);
	return status;
}

int cli_transfer_stat(struct cli_transfer *t, const struct cli_place *place, struct cli_stat *out)
{
	const struct err too_long = {.code = ENAMETOOLONG, .text = "the name is too long"};
	struct buf path;
	int status;
	int rc;

	*out = (struct cli_stat){.found = false};
	buf_init(&path, PATH_MAX_LEN);
	rc = cli_place_put(&path, place->box, "/fs/stat", place->path);
	if (rc == 0)
		rc = cli_query_put(&path, "follow", "1");
	status = rc < 0 ? cli_transfer_fail(t, &too_long)
			: ask_stat(t, (const char *)buf_head(&path), out);
	buf_free(&path);
	return status;
}

int cli_transfer_get(struct cli_transfer *t, const char *path, const char *accept)
{
	const struct httpc_request req = {.method = "GET", .path = path, .accept = accept};
	const struct http_head *head = NULL;
	struct err err;

	if (httpc_send(t->c, &req, cli_deadline(STALL_S), &head, &err) < 0)
		return cli_transfer_fail(t, &err);
	return head->status == 200 ? CLI_OK : refused(t, head->status);
}

int cli_transfer_read(struct cli_transfer *t, const uint8_t **bytes, size_t *n, struct err *err)
{
	int rc = httpc_read(t->c, cli_deadline(STALL_S), bytes, n, err);

	if (rc > 0)
		cli_progress_add(&t->progress, *n);
	return rc;
}

/* Counts what goes through. */
struct counted {
	struct cli_transfer *t;
	httpc_fill_fn *fill;
	void *ctx;
};

static ssize_t fill_counted(void *ctx, uint8_t *out, size_t size, struct err *err)
{
	struct counted *c = ctx;
	ssize_t n = c->fill(c->ctx, out, size, err);

	if (n > 0)
		cli_progress_add(&c->t->progress, (uint64_t)n);
	return n;
}

int cli_transfer_put(struct cli_transfer *t, const char *path, const char *type,
    httpc_fill_fn *fill, void *ctx, uint64_t len)
{
	struct counted counted = {t, fill, ctx};
	const struct httpc_request req = {.method = "PUT",
	    .path = path,
	    .type = type,
	    .fill = fill_counted,
	    .fill_ctx = &counted,
	    .fill_len = len,
	    .fill_ns = STALL_S * NS_PER_S};
	const struct http_head *head = NULL;
	struct buf body;
	struct err err;
	int status = CLI_OK;

	if (httpc_send(t->c, &req, 0, &head, &err) < 0)
		return cli_transfer_fail(t, &err);
	if (head->status < 200 || head->status > 299)
		return refused(t, head->status);
	buf_init(&body, ANSWER_MAX);
	if (httpc_read_all(t->c, cli_deadline(CLI_WAIT_S), &body, &err) < 0)
		status = cli_transfer_fail(t, &err);
	buf_free(&body);
	return status;
}
