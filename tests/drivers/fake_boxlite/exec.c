/* exec: commands in boxes, and how they are started. */
#include "tests/drivers/fake_boxlite/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/proto.h"

#define START_MS 30000

struct execution *exec_ref(struct execution *x)
{
	(void)pthread_mutex_lock(&x->lock);
	x->refs++;
	(void)pthread_mutex_unlock(&x->lock);
	return x;
}

void exec_unref(struct execution *x)
{
	bool last;

	(void)pthread_mutex_lock(&x->lock);
	last = --x->refs == 0;
	(void)pthread_mutex_unlock(&x->lock);
	if (!last)
		return;
	fd_close(&x->conn);
	fd_close(&x->stop[0]);
	fd_close(&x->stop[1]);
	fd_close(&x->in);
	fd_close(&x->streams[0].fd);
	fd_close(&x->streams[1].fd);
	(void)pthread_cond_destroy(&x->change);
	(void)pthread_mutex_destroy(&x->lock);
	runtime_unref(x->rt);
	free(x->input);
	free(x);
}

static struct execution *exec_new(struct box *box, const struct blx_command *cmd)
{
	struct execution *x = calloc(1, sizeof(*x));
	pthread_condattr_t attr;

	if (!x)
		abort();
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&x->change, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&x->lock, NULL);
	x->refs = 1;
	x->rt = runtime_ref(box->rt);
	(void)snprintf(x->id, sizeof(x->id), "%s", box->id);
	x->tty = cmd->tty;
	x->timeout_ms = cmd->timeout_secs > 0 ? (int)(cmd->timeout_secs * 1000) + 1 : 0;
	x->conn = x->stop[0] = x->stop[1] = x->in = -1;
	x->streams[0].fd = x->streams[1].fd = -1;
	return x;
}

/* ---- the request ---- */

struct ask_text {
	struct shim_ask *ask;
	size_t len;
	bool full;
};

static void add_text(struct ask_text *t, const char *a, const char *b)
{
	int n = snprintf(
	    t->ask->text + t->len, SHIM_TEXT - t->len, "%s%s%s", a, b ? "=" : "", b ? b : "");

	if ((size_t)n + 1 > SHIM_TEXT - t->len)
		t->full = true;
	else
		t->len += (size_t)n + 1;
}

/* The whole message, malloc'ed; NULL when it is too long. */
static struct shim_ask *exec_request(const struct blx_command *cmd, size_t *len)
{
	struct ask_text t = {calloc(1, sizeof(struct shim_ask)), 0, false};

	if (!t.ask)
		abort();
	t.ask->kind = SHIM_EXEC;
	t.ask->a = cmd->tty;
	t.ask->b = cmd->argc + 1;
	add_text(&t, cmd->workdir ? cmd->workdir : "/", NULL);
	add_text(&t, cmd->user ? cmd->user : "root", NULL);
	add_text(&t, cmd->command, NULL);
	for (int i = 0; i < cmd->argc; i++)
		add_text(&t, cmd->args[i], NULL);
	for (int i = 0; i + 1 < cmd->env_count; i += 2)
		add_text(&t, cmd->env_pairs[i], cmd->env_pairs[i + 1]);
	*len = offsetof(struct shim_ask, text) + t.len;
	if (!t.full)
		return t.ask;
	free(t.ask);
	return NULL;
}

static int exec_pipes(struct execution *x, int theirs[3])
{
	int in[2] = {-1, -1};
	int out[2] = {-1, -1};
	int err[2] = {-1, -1};

	if (pipe2(x->stop, O_CLOEXEC) < 0)
		return -errno;
	if (x->tty)
		return 0;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return -errno; /* what there is, is lost with the test */
	theirs[0] = in[0];
	theirs[1] = out[1];
	theirs[2] = err[1];
	x->in = in[1];
	x->streams[0].fd = out[0];
	x->streams[1].fd = err[0];
	return fd_set_nonblock(x->in);
}

/* Its answer, with the terminal if it has one. The pid, or -errno. */
static int exec_start(struct execution *x, const struct shim_ask *ask, size_t len, int theirs[3])
{
	struct shim_answer a;
	struct pollfd p = {.fd = x->conn, .events = POLLIN};
	int fds[FD_PASS_MAX];
	ssize_t n = fd_send_msg(x->conn, ask, len, theirs, x->tty ? 0 : 3);

	if (n < 0)
		return (int)n;
	if (poll(&p, 1, START_MS) <= 0)
		return -ETIMEDOUT;
	n = fd_recv_msg(x->conn, &a, sizeof(a), fds);
	if (n < 0)
		return (int)n;
	if (n != sizeof(a))
		return -EPIPE;
	if (x->tty && a.value > 0) {
		x->streams[0].fd = fds[0];
		x->in = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	}
	return a.value;
}

enum blx_code boxlite_box_exec(
    struct box *box, const struct blx_command *cmd, struct execution **out, struct blx_error *err)
{
	int theirs[3] = {-1, -1, -1};
	struct execution *x;
	struct record r;
	struct shim_ask *ask;
	struct knob k;
	size_t len;
	int rc;
	enum blx_code code = call_check(box, "handle", NULL, false, err);

	if (code == BLX_OK)
		code = call_check(cmd, "cmd", NULL, false, err);
	if (code == BLX_OK)
		code = call_check(out, "out_execution", NULL, false, err);
	if (code == BLX_OK)
		code = call_check(cmd->command, "command", NULL, false, err);
	if (code == BLX_OK && box->rt->refused)
		code = error_set(err, box->rt->refused, "%s", box->rt->refusal);
	if (code == BLX_OK)
		code = call_begin_knob(KNOB_EXEC, &k, err);
	if (code != BLX_OK)
		return code;
	*out = NULL;
	if (k.action == KNOB_LIE)
		return BLX_OK; /* and no execution */
	code = box_running(box, &r, err);
	if (code != BLX_OK)
		return code;
	ask = exec_request(cmd, &len);
	if (!ask)
		return error_set(err, BLX_INVALID_ARGUMENT, "the command is too long");
	x = exec_new(box, cmd);
	rc = x->conn = boot_connect(box->rt, box->id);
	if (rc >= 0)
		rc = exec_pipes(x, theirs);
	if (rc >= 0)
		rc = x->pid = exec_start(x, ask, len, theirs);
	free(ask);
	for (int i = 0; i < 3; i++)
		fd_close(&theirs[i]);
	if (rc > 0)
		rc = exec_io_start(x);
	if (rc < 0) {
		exec_unref(x);
		return error_sys(err, BLX_INTERNAL, rc, "internal error: spawn failed");
	}
	*out = x;
	return BLX_OK;
}
