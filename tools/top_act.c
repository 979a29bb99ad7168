/* top_act: release and kill. sbxtop, and a child of it for each order; when the child dies, sbxd
 * sees its connection close and does what it was asked for all the same. */
#include "tools/top_act.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/cli.h"
#include "wire/json.h"

#define WAIT_S 60
#define ANSWER_MAX (4U * 1024U * 1024U)
#define TEXT_MAX 400 /* less than a pipe takes at once */

static const struct {
	const char *name;
	const char *method;
	const char *path; /* after the box */
	const char *body;
	const char *done;
} acts[] = {
    [ACT_RELEASE] = {"release", "POST", "/release", "{}", "released"},
    [ACT_KILL] = {"kill", "DELETE", "?force=true", NULL, "killed"},
};

_Static_assert(sizeof(acts) / sizeof(acts[0]) == ACTS, "every act is known");

const char *top_act_name(enum top_act_kind kind)
{
	return acts[kind].name;
}

/* ---- asking ---- */

/* An answer that is no success, in words. */
static int refuse_answer(unsigned int status, const struct buf *body, struct err *err)
{
	json_t *answer = json_parse_object(buf_head(body), body->len, NULL);
	const json_t *error = json_object_get(answer, "error");
	const char *message = json_string_value(json_object_get(error, "message"));

	if (message)
		(void)err_set(err, EIO, "%.200s", message);
	else
		(void)err_set(err, EIO, "the service answered %u", status);
	json_decref(answer);
	return -EIO;
}

/* One request; *body has the answer. 0 or -errno with *err. */
static int ask(struct httpc *c, const struct httpc_request *req, struct buf *body, struct err *err)
{
	uint64_t deadline = cli_deadline(WAIT_S);
	const struct http_head *head = NULL;
	unsigned int status;
	int rc = httpc_send(c, req, deadline, &head, err);

	if (rc < 0)
		return rc;
	status = head->status;
	rc = httpc_read_all(c, deadline, body, err);
	if (rc == 0 && (status < 200 || status > 299))
		rc = refuse_answer(status, body, err);
	return rc;
}

/* The table and the socket must be one sbxd's. */
static int check_supervisor(struct httpc *c, const struct top_order *order, struct err *err)
{
	const struct httpc_request req = {.method = "GET", .path = "/v1/pool"};
	struct buf body;
	json_t *pool;
	json_int_t pid;
	int rc;

	buf_init(&body, ANSWER_MAX);
	rc = ask(c, &req, &body, err);
	if (rc == 0) {
		pool = json_parse_object(buf_head(&body), body.len, NULL);
		pid =
		    json_integer_value(json_object_get(json_object_get(pool, "supervisor"), "pid"));
		if (pid != order->supervisor)
			rc = err_set(err, EXDEV,
			    "the socket is that of sbxd %lld, the table that of %d", (long long)pid,
			    order->supervisor);
		json_decref(pool);
	}
	buf_free(&body);
	return rc;
}

static int put_path(struct buf *out, const struct top_order *order)
{
	char id[SHM_TOKEN_LEN + 16];

	if (order->uid == geteuid())
		(void)snprintf(id, sizeof(id), "%s", order->token);
	else
		(void)snprintf(id, sizeof(id), "%u:%s", order->uid, order->token);
	return cli_put_box_path(out, id, acts[order->kind].path);
}

static int send_order(
    struct httpc *c, const struct top_order *order, struct buf *body, struct err *err)
{
	const char *content = acts[order->kind].body;
	struct httpc_request req = {.method = acts[order->kind].method,
	    .body = content,
	    .body_len = content ? strlen(content) : 0};
	struct buf path;
	int rc;

	buf_init(&path, 256);
	rc = put_path(&path, order);
	if (rc < 0) {
		(void)err_sys(err, -rc, "name of the box");
	} else {
		req.path = (const char *)buf_head(&path);
		rc = ask(c, &req, body, err);
	}
	buf_free(&path);
	return rc;
}

static void say_done(const struct top_order *order, const struct buf *body, char *text, size_t size)
{
	json_t *answer = json_parse_object(buf_head(body), body->len, NULL);
	const char *status = json_string_value(json_object_get(answer, "status"));

	(void)snprintf(text, size, "%s %s%s%s", order->token, acts[order->kind].done,
	    status ? ": " : "", status ? status : "");
	json_decref(answer);
}

int top_act_perform(const struct top_order *order, char *text, size_t size, struct err *err)
{
	const struct cli cli = {.socket = order->socket,
	    .instance = order->instance,
	    .env = order->env,
	    .signal_fd = -1};
	struct httpc *c = NULL;
	struct buf body;
	int rc = cli_connect(&cli, &c, err);

	if (rc < 0) {
		struct err why = *err;

		return err_set(err, -rc, "is sbxd running? %.200s", why.text);
	}
	buf_init(&body, ANSWER_MAX);
	rc = check_supervisor(c, order, err);
	if (rc == 0)
		rc = send_order(c, order, &body, err);
	if (rc == 0)
		say_done(order, &body, text, size);
	buf_free(&body);
	httpc_close(c);
	return rc;
}

/* ---- the child ---- */

/* Its last word: '+' or '-' and a text, in one write. */
static void act_in_child(const struct top_order *order, int fd)
{
	char text[TEXT_MAX] = "+";
	struct err err = {0};

	if (top_act_perform(order, text + 1, sizeof(text) - 1, &err) < 0)
		(void)snprintf(text, sizeof(text), "-%s", err.text);
	(void)!write(fd, text, strlen(text)); /* who would have read it is gone */
	_exit(0);
}

int top_act_begin(struct top_act *a, const struct top_order *order, struct err *err)
{
	int fds[2];
	pid_t pid;

	if (a->fd >= 0)
		return err_set(
		    err, EBUSY, "%s of %s is still under way", acts[a->kind].name, a->token);
	if (order->token[0] == '\0')
		return err_set(err, EINVAL, "it is nobody's yet, and so has no name");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		fd_close(&fds[0]);
		act_in_child(order, fds[1]);
	}
	fd_close(&fds[1]);
	if (pid < 0) {
		int rc = err_sys(err, errno, "fork");

		fd_close(&fds[0]);
		return rc;
	}
	a->kind = order->kind;
	memcpy(a->token, order->token, sizeof(a->token));
	a->pid = pid;
	a->fd = fds[0];
	return 0;
}

static void reap(struct top_act *a)
{
	fd_close(&a->fd);
	while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	a->pid = 0;
}

bool top_act_end(struct top_act *a, char *text, size_t size)
{
	char got[TEXT_MAX + 1];
	ssize_t n = read(a->fd, got, sizeof(got) - 1);

	reap(a);
	if (n <= 0) {
		(void)snprintf(text, size, "%s of %s: nobody knows what came of it",
		    acts[a->kind].name, a->token);
		return false;
	}
	got[n] = '\0';
	if (got[0] == '+')
		(void)snprintf(text, size, "%s", got + 1);
	else
		(void)snprintf(text, size, "%s of %s: %s", acts[a->kind].name, a->token, got + 1);
	return got[0] == '+';
}

void top_act_abandon(struct top_act *a)
{
	if (a->fd < 0)
		return;
	(void)kill(a->pid, SIGKILL); /* our own child, not yet waited for */
	reap(a);
}
