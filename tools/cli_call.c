/* cli_call: requests to the service, and saying what went wrong. sbxctl; holds no state. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int paths_of(const struct cli *cli, uid_t uid, struct paths *out, struct err *err)
{
	const struct passwd *pw = uid == 0 ? NULL : getpwuid(uid);
	const struct paths_query q = {.uid = uid,
	    .instance = cli->instance,
	    .env = cli->env,
	    .home = pw ? pw->pw_dir : "/"}; /* only the runtime directory matters here */

	return paths_resolve(&q, out, err);
}

int cli_paths(const struct cli *cli, struct paths *out, struct err *err)
{
	return paths_of(cli, getuid(), out, err);
}

/* Below /tmp whoever was first could listen for our commands and their input. */
static int refuse_stranger(struct httpc **c, const char *socket, struct err *err)
{
	uid_t uid = 0;
	int rc = httpc_peer_uid(*c, &uid);

	if (rc == 0 && uid == getuid())
		return 0;
	httpc_close(*c);
	*c = NULL;
	if (rc < 0)
		return err_sys(err, -rc, "%s: who listens", socket);
	return err_set(
	    err, EPERM, "%s: it is user %u who listens there", socket, (unsigned int)uid);
}

int cli_connect(const struct cli *cli, struct httpc **out, struct err *err)
{
	uint64_t deadline = cli_deadline(CONNECT_S);
	struct paths p;
	int rc;

	if (cli->socket)
		return httpc_connect(cli->socket, cli->signal_fd, deadline, out, err);
	rc = cli_paths(cli, &p, err);
	if (rc == 0)
		rc = httpc_connect(p.socket, cli->signal_fd, deadline, out, err);
	if (rc == 0 && p.shared_tmp)
		rc = refuse_stranger(out, p.socket, err);
	if ((rc == -ENOENT || rc == -ECONNREFUSED) && getuid() != 0) {
		struct err own = *err;
		int root_rc = paths_of(cli, 0, &p, err);

		if (root_rc == 0)
			root_rc = httpc_connect(p.socket, cli->signal_fd, deadline, out, err);
		if (root_rc == -ENOENT || root_rc == -ECONNREFUSED)
			*err = own; /* neither is there: ours is the one to start */
		else
			return root_rc;
	}
	if (rc == -ENOENT || rc == -ECONNREFUSED) {
		struct err plain = *err;

		(void)err_set(err, -rc, "%.180s; is sbxd running?", plain.text);
	}
	return rc;
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
