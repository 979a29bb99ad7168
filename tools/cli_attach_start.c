/* cli_attach_start: an execution begins, and we attach to it. sbxctl; when it dies in between, the
 * service ends the execution after its limits.execution_detach_grace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fd.h"
#include "tools/cli_attach.h"
#include "tools/ws_client.h"
#include "wire/json.h"

#define BODY_MAX (8U * 1024U * 1024U)
#define ANSWER_MAX 65536U
#define KILL_S 15

static bool names(const struct cli_list *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, n) == 0 && env->items[i][n] == '=')
			return true;
	}
	return false;
}

static void put_env(struct json_out *j, const struct cli_command_line *line)
{
	const char *term = getenv("TERM");

	json_object_begin(j, "env");
	cli_command_put_env(j, &line->env);
	/* The program is to know what it draws on. */
	if (line->tty && term && *term && cli_is_utf8(term) && !names(&line->env, "TERM"))
		json_put_string(j, "TERM", term);
	json_object_end(j);
}

static void put_body(struct json_out *j, const struct cli_command_line *line)
{
	int columns;
	int rows;

	json_object_begin(j, NULL);
	json_put_string(j, "command", line->argv[0]);
	json_array_begin(j, "args");
	for (char **arg = line->argv + 1; *arg; arg++)
		json_put_string(j, NULL, *arg);
	json_array_end(j);
	put_env(j, line);
	if (line->dir)
		json_put_string(j, "working_dir", line->dir);
	if (line->timeout > 0)
		json_put_double(j, "timeout_seconds", line->timeout);
	if (line->tty) {
		json_put_bool(j, "tty", true);
		if (cli_terminal_size(&columns, &rows)) {
			json_put_int(j, "cols", columns);
			json_put_int(j, "rows", rows);
		}
	}
	json_object_end(j);
}

/* POST .../exec. Its path is then in *out. */
static int start(const struct cli *cli, struct httpc *c, const struct cli_command_line *line,
    const char *box, const char *path, struct cli_execution *out)
{
	json_t *answer = NULL;
	struct json_out j;
	struct buf body;
	struct err err;
	const char *id;
	int status = CLI_OK;

	buf_init(&body, BODY_MAX);
	json_out_init(&j, &body);
	put_body(&j, line);
	if (json_out_error(&j)) {
		(void)err_sys(&err, -json_out_error(&j), "the request");
		status = cli_fail(line->argv[0], &err);
	} else {
		status = cli_call_on(c, box, "POST", path, &body, CLI_WAIT_S, &answer);
	}
	buf_free(&body);
	id = json_string_value(json_object_get(answer, "execution_id"));
	if (status == CLI_OK && (!id || strlen(path) + 6 + strlen(id) >= sizeof(out->path))) {
		(void)err_set(&err, EBADMSG, "the answer names no execution");
		status = cli_fail(box, &err);
	} else if (status == CLI_OK) {
		/* ".../exec" and ".../executions/ID" */
		(void)snprintf(out->path, sizeof(out->path), "%sutions/%s", path, id);
	}
	json_decref(answer);
	return cli_caught_signal(cli) && status != CLI_OK ? CLI_SIGNAL + cli_caught_signal(cli)
							  : status;
}

/* The answer to an upgrade: CLI_OK when it has become a WebSocket. */
static int check_answer(
    struct httpc *c, const struct http_head *head, const char *key, const char *what)
{
	struct err err;
	struct buf body;
	int status;

	if (head->status == 101)
		return ws_client_check(key, head->websocket_accept, &err) < 0 ? cli_fail(what, &err)
									      : CLI_OK;
	buf_init(&body, ANSWER_MAX);
	if (httpc_read_all(c, cli_deadline(CLI_WAIT_S), &body, &err) < 0)
		status = cli_fail(what, &err);
	else
		status = cli_fail_answer(what, head->status, buf_head(&body), body.len);
	buf_free(&body);
	return status;
}

static int attach(struct httpc *c, const struct cli_execution *e, int *sock, struct buf *rest)
{
	char key[WS_CLIENT_KEY_LEN];
	char headers[256];
	char path[sizeof(e->path) + 8];
	const struct httpc_request req = {.method = "GET", .path = path, .headers = headers};
	const struct http_head *head = NULL;
	struct err err;
	int status;

	if (ws_client_key(key) < 0) {
		(void)err_set(&err, EIO, "no random numbers");
		return cli_fail("attach", &err);
	}
	(void)snprintf(path, sizeof(path), "%s/attach", e->path);
	(void)snprintf(headers, sizeof(headers),
	    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: %s\r\n"
	    "Sec-WebSocket-Key: %s\r\n",
	    WS_VERSION, key);
	if (httpc_send(c, &req, cli_deadline(CLI_WAIT_S), &head, &err) < 0)
		return cli_fail("attach", &err);
	status = check_answer(c, head, key, "attach");
	if (status == CLI_OK && httpc_take_socket(c, sock, rest) < 0) {
		(void)err_set(&err, ENOMEM, "no memory");
		status = cli_fail("attach", &err);
	}
	return status;
}

int cli_attach_start(const struct cli *cli, const struct cli_command_line *line,
    const struct cli_box *box, struct cli_execution *out, int *sock, struct buf *rest)
{
	struct httpc *c = NULL;
	struct buf path;
	struct err err;
	int status;

	buf_init(&path, sizeof(out->path));
	if (cli_put_box_path(&path, box->id, "/exec") < 0) {
		(void)err_set(&err, EINVAL, "no box can have this name");
		status = cli_fail(box->id, &err);
	} else if (cli_connect(cli, &c, &err) < 0) {
		status = cli_fail(box->id, &err);
	} else {
		out->generation = box->generation;
		httpc_mean_box(c, box->generation);
		status = start(cli, c, line, box->id, (const char *)buf_head(&path), out);
		if (status == CLI_OK) {
			status = attach(c, out, sock, rest);
			if (status != CLI_OK)
				cli_attach_kill(cli, out);
		}
	}
	httpc_close(c);
	buf_free(&path);
	return status;
}

int cli_attach_again(
    const struct cli *cli, const struct cli_execution *e, int *sock, struct buf *rest)
{
	struct httpc *c = NULL;
	struct err err;
	int status;

	if (cli_connect(cli, &c, &err) < 0)
		return cli_fail("attach", &err);
	httpc_mean_box(c, e->generation);
	status = attach(c, e, sock, rest);
	httpc_close(c);
	return status;
}

void cli_attach_kill(const struct cli *cli, const struct cli_execution *e)
{
	const struct httpc_request req = {.method = "DELETE", .path = e->path};
	const struct http_head *head = NULL;
	struct cli alone = *cli;
	struct httpc *c = NULL;
	struct err err;

	alone.signal_fd = -1; /* this is not to be interrupted */
	/* Whoever cannot be asked has no execution any more, or ends it by itself. */
	if (cli_connect(&alone, &c, &err) == 0) {
		httpc_mean_box(c, e->generation);
		(void)httpc_send(c, &req, cli_deadline(KILL_S), &head, &err);
	}
	httpc_close(c);
}
