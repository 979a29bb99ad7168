/* cli_call: requests to the service, and saying what went wrong. sbxctl; holds no state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/answer.h"
#include "tools/cli.h"
#include "wire/json.h"

#define ANSWER_MAX (64U * 1024U * 1024U)
#define CONNECT_S 10

uint64_t cli_deadline(double seconds)
{
	return clock_now_ns() + clock_seconds_to_ns(seconds);
}

int cli_fail(const char *what, const struct err *err)
{
	(void)fprintf(stderr, "sbxctl: %s: ", what);
	cli_put_text(stderr, err->text);
	(void)fputc('\n', stderr);
	return CLI_FAILED;
}

static struct dial_where where_of(const struct cli *cli)
{
	return (struct dial_where){
	    .socket = cli->socket, .instance = cli->instance, .env = cli->env};
}

int cli_paths(const struct cli *cli, struct paths *out, struct err *err)
{
	const struct dial_where where = where_of(cli);

	return dial_paths(&where, out, err);
}

int cli_connect(const struct cli *cli, struct httpc **out, struct err *err)
{
	const struct dial_where where = where_of(cli);

	return httpc_connect_to(&where, cli->signal_fd, cli_deadline(CONNECT_S), out, err);
}

int cli_fail_answer(const char *what, unsigned int status, const uint8_t *body, size_t len)
{
	struct err err;

	(void)answer_error(status, body, len, &err); /* it always is one */
	return cli_fail(what, &err);
}

/* A 204, or no body at all, is an empty object. */
static int take_answer(const char *what, unsigned int status, const struct buf *body, json_t **out)
{
	struct err err;
	json_t *answer;

	if (status < 200 || status > 299)
		return cli_fail_answer(what, status, buf_head(body), body->len);
	if (!out)
		return CLI_OK;
	answer = json_parse_object(buf_head(body), body->len, &err);
	if (!answer)
		return cli_fail(what, &err);
	*out = answer;
	return CLI_OK;
}

int cli_call_on(struct httpc *c, const char *what, const char *method, const char *path,
    const struct buf *body, double seconds, json_t **out)
{
	const struct httpc_request req = {.method = method,
	    .path = path,
	    .body = body ? buf_head(body) : NULL,
	    .body_len = body ? body->len : 0};
	uint64_t deadline = cli_deadline(seconds);
	const struct http_head *head = NULL;
	unsigned int status = 0;
	struct err err;
	struct buf answer;
	int rc;

	buf_init(&answer, ANSWER_MAX);
	rc = httpc_send(c, &req, deadline, &head, &err);
	if (rc == 0) {
		status = head->status;
		rc = httpc_read_all(c, deadline, &answer, &err);
	}
	rc = rc < 0 ? cli_fail(what, &err) : take_answer(what, status, &answer, out);
	buf_free(&answer);
	return rc;
}

int cli_call(const struct cli *cli, const char *what, const char *method, const char *path,
    const struct buf *body, double seconds, json_t **out)
{
	struct httpc *c = NULL;
	struct err err;
	int rc;

	if (cli_connect(cli, &c, &err) < 0)
		return cli_fail(what, &err);
	rc = cli_call_on(c, what, method, path, body, seconds, out);
	httpc_close(c);
	return rc;
}

int cli_put_box_path(struct buf *out, const char *id, const char *rest)
{
	int rc = buf_puts(out, "/v1/boxes/");

	if (rc == 0)
		rc = http_put_escaped(out, id, false);
	if (rc == 0)
		rc = buf_puts(out, rest);
	return rc < 0 ? rc : buf_terminate(out);
}
