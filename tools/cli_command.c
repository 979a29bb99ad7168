/* cli_command: runs one command in a box and passes its output on; with -i that is cli_attach's.
 * sbxctl; when it dies the service sees its connection close and ends the command. */
#include "tools/cli_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli_attach.h"
#include "tools/cli_stream.h"
#include "wire/json.h"

#define BODY_MAX (64U * 1024U * 1024U)
#define ANSWER_MAX (128U * 1024U * 1024U)
#define GRACE_S 60 /* that the service may take longer than the command's own timeout */

int cli_command_check(const struct cli *cli, const struct cli_command_line *line)
{
	if (!line->argv[0])
		return cli_usage(cli, "no command is given");
	if (line->dir && line->dir[0] != '/')
		return cli_usage(cli, "-w: '%s' is no absolute path", line->dir);
	for (size_t i = 0; i < line->env.count; i++) {
		if (line->env.items[i][0] == '=' || !strchr(line->env.items[i], '='))
			return cli_usage(cli, "-e: '%s' is not NAME=VALUE", line->env.items[i]);
	}
	for (char **arg = line->argv; *arg; arg++) {
		if (!cli_is_utf8(*arg))
			return cli_usage(cli, "an argument is no UTF-8 text");
	}
	return CLI_OK;
}

/* True when a later -e names the same variable. */
static bool overridden(const struct cli_list *env, size_t i)
{
	size_t name_len = strcspn(env->items[i], "=") + 1;

	for (size_t j = i + 1; j < env->count; j++) {
		if (strncmp(env->items[i], env->items[j], name_len) == 0)
			return true;
	}
	return false;
}

bool cli_command_attaches(const struct cli *cli, const struct cli_command_line *line)
{
	return line->read_stdin && !cli->json;
}

void cli_command_put_env(struct json_out *j, const struct cli_list *env)
{
	char name[256];
	for (size_t i = 0; i < env->count; i++) {
		const char *value = strchr(env->items[i], '=') + 1;

		(void)snprintf(
		    name, sizeof(name), "%.*s", (int)(value - 1 - env->items[i]), env->items[i]);
		if (!overridden(env, i))
			json_put_string(j, name, value);
	}
}

/* Our stdin to its end. 0 or -errno with *err. */
static int read_stdin(const struct cli *cli, struct buf *out, struct err *err)
{
	ssize_t n;
	int rc;

	do {
		rc = httpc_wait(STDIN_FILENO, POLLIN, cli->signal_fd, CLOCK_NEVER);
		if (rc < 0)
			return err_sys(err, -rc, "waiting for input");
		n = buf_read_fd(out, STDIN_FILENO, 65536);
	} while (n > 0 || n == -EAGAIN || n == -EINTR);
	if (n == -ENOBUFS)
		return err_set(err, EFBIG, "more than %u bytes; write a file in the box instead",
		    CLI_STDIN_MAX);
	return n < 0 ? err_sys(err, (int)-n, "cannot read") : 0;
}

static void put_body(
    struct json_out *j, const struct cli_command_line *line, const struct buf *input)
{
	json_object_begin(j, NULL);
	json_array_begin(j, "argv");
	for (char **arg = line->argv; *arg; arg++)
		json_put_string(j, NULL, *arg);
	json_array_end(j);
	if (line->env.count) {
		json_object_begin(j, "env");
		cli_command_put_env(j, &line->env);
		json_object_end(j);
	}
	if (line->dir)
		json_put_string(j, "cwd", line->dir);
	if (line->timeout > 0)
		json_put_double(j, "timeout_seconds", line->timeout);
	if (line->tty)
		json_put_bool(j, "tty", true);
	if (line->read_stdin)
		json_put_base64(j, "stdin_base64", buf_head(input), input->len);
	json_object_end(j);
}

int cli_command_body(const struct cli *cli, const struct cli_command_line *line, struct buf *out)
{
	struct json_out j;
	struct buf input;
	struct err err;
	int rc = 0;

	buf_init(out, BODY_MAX);
	if (cli_command_attaches(cli, line))
		return CLI_OK;
	buf_init(&input, CLI_STDIN_MAX);
	if (line->read_stdin)
		rc = read_stdin(cli, &input, &err);
	if (rc < 0) {
		int sig = cli_caught_signal(cli);

		buf_free(&input);
		return sig ? CLI_SIGNAL + sig : cli_fail("stdin", &err);
	}
	json_out_init(&j, out);
	put_body(&j, line, &input);
	buf_free(&input);
	if (json_out_error(&j) == 0)
		return CLI_OK;
	(void)err_sys(&err, -json_out_error(&j), "the request");
	return cli_fail(line->argv[0], &err);
}

/* What output needs to know. */
struct sink {
	const struct cli *cli;
	bool closed; /* nobody reads our stdout or stderr any more */
};

static int write_out(void *ctx, int fd, const uint8_t *bytes, size_t n)
{
	struct sink *sink = ctx;
	int rc = cli_write(sink->cli, fd, bytes, n);

	sink->closed = rc == -EPIPE;
	return rc;
}

/* Nothing came back, or not all of it: says why, unless it was on purpose. */
static int fail_run(
    const struct cli *cli, const char *what, int rc, const struct sink *sink, struct err *err)
{
	int sig = cli_caught_signal(cli);

	if (sig)
		return CLI_SIGNAL + sig;
	if (sink && sink->closed)
		return CLI_SIGNAL + SIGPIPE; /* as if the command's own output had been closed */
	if (sink && err->code == 0)
		(void)err_sys(err, -rc, "cannot write the output");
	return cli_fail(what, err);
}

static int stream_answer(
    const struct cli *cli, struct httpc *c, const char *what, uint64_t deadline)
{
	struct sink sink = {.cli = cli};
	struct err err = {0};
	struct cli_stream s;
	const uint8_t *bytes = NULL;
	size_t n = 0;
	int status;
	int rc;

	cli_stream_init(&s, write_out, &sink);
	while ((rc = httpc_read(c, deadline, &bytes, &n, &err)) > 0) {
		rc = cli_stream_feed(&s, bytes, n, &err);
		if (rc < 0)
			break;
	}
	status = cli_result_status(&s.result);
	if (s.result.failed) {
		(void)err_set(&err, EIO, "%s (%s)", s.result.message, s.result.reason);
		status = cli_fail(what, &err);
	} else if (rc < 0) {
		status = fail_run(cli, what, rc, &sink, &err);
	} else if (!s.result.known) {
		(void)err_set(&err, EBADMSG, "the answer ended before the command did");
		status = cli_fail(what, &err);
	}
	cli_stream_free(&s);
	return status;
}

static int buffered_answer(
    const struct cli *cli, struct httpc *c, const char *what, uint64_t deadline)
{
	struct cli_result result = {.known = false};
	struct err err = {0};
	json_error_t wrong;
	struct buf body;
	json_t *answer;
	int rc;

	buf_init(&body, ANSWER_MAX);
	rc = httpc_read_all(c, deadline, &body, &err);
	if (rc < 0) {
		buf_free(&body);
		return fail_run(cli, what, rc, NULL, &err);
	}
	answer = json_loadb((const char *)buf_head(&body), body.len, JSON_ALLOW_NUL, &wrong);
	buf_free(&body);
	if (!json_is_object(answer))
		rc = err_set(&err, EBADMSG, "the answer is no JSON object");
	else
		rc = cli_result_read(answer, &result, &err);
	if (rc == 0)
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
	json_decref(answer);
	return rc < 0 ? cli_fail(what, &err) : cli_finish(cli_result_status(&result));
}

static int refused_answer(struct httpc *c, const char *what, unsigned int status)
{
	struct err err;
	struct buf body;

	buf_init(&body, ANSWER_MAX);
	if (httpc_read_all(c, cli_deadline(CLI_WAIT_S), &body, &err) < 0)
		(void)cli_fail(what, &err);
	else
		(void)cli_fail_answer(what, status, buf_head(&body), body.len);
	buf_free(&body);
	return CLI_FAILED;
}

static int run_on(const struct cli *cli, struct httpc *c, const struct cli_command_line *line,
    const char *what, const struct httpc_request *req)
{
	uint64_t deadline = line->timeout > 0 ? cli_deadline(line->timeout + GRACE_S) : CLOCK_NEVER;
	const struct http_head *head = NULL;
	struct err err = {0};
	int rc = httpc_send(c, req, deadline, &head, &err);

	if (rc < 0)
		return fail_run(cli, what, rc, NULL, &err);
	if (head->status != 200)
		return refused_answer(c, what, head->status);
	return cli->json ? buffered_answer(cli, c, what, deadline)
			 : stream_answer(cli, c, what, deadline);
}

int cli_command_run(const struct cli *cli, const struct cli_command_line *line,
    const struct cli_box *box, const struct buf *body)
{
	struct httpc_request req = {.method = "POST",
	    .accept = cli->json ? NULL : "application/x-ndjson",
	    .body = buf_head(body),
	    .body_len = body->len};
	struct httpc *c = NULL;
	struct err err;
	struct buf path;
	int status;

	if (cli_command_attaches(cli, line))
		return cli_attach_run(cli, line, box);
	buf_init(&path, HTTP_HEAD_MAX / 2);
	if (cli_put_box_path(&path, box->id, "/run") < 0) {
		(void)err_set(&err, EINVAL, "no box can have this name");
		status = cli_fail(box->id, &err);
	} else if (cli_connect(cli, &c, &err) < 0) {
		status = fail_run(cli, box->id, 0, NULL, &err);
	} else {
		req.path = (const char *)buf_head(&path);
		httpc_mean_box(c, box->generation);
		status = run_on(cli, c, line, box->id, &req);
	}
	httpc_close(c);
	buf_free(&path);
	return status;
}
