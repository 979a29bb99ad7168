/* exec_call: what is done to an execution: callbacks, stdin, signals, its end. */
#include "tests/drivers/fake_boxlite/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/proto.h"

#define FREE_WAIT_S 5

/* ---- callbacks ---- */

static enum blx_code on_stream(
    struct execution *x, int which, blx_data_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(x, "execution", (const void *)cb, true, err);
	struct stream *s;

	if (code != BLX_OK)
		return code;
	(void)pthread_mutex_lock(&x->lock);
	s = &x->streams[which];
	if (s->wanted) {
		code = BLX_INVALID_STATE;
	} else {
		s->cb = cb;
		s->user = user;
		s->wanted = true;
		(void)pthread_cond_broadcast(&x->change);
	}
	(void)pthread_mutex_unlock(&x->lock);
	return code == BLX_OK ? code : error_set(err, code, "invalid state: registered already");
}

enum blx_code boxlite_execution_on_stdout(
    struct execution *x, blx_data_fn *cb, void *user, struct blx_error *err)
{
	return on_stream(x, 0, cb, user, err);
}

enum blx_code boxlite_execution_on_stderr(
    struct execution *x, blx_data_fn *cb, void *user, struct blx_error *err)
{
	return on_stream(x, 1, cb, user, err);
}

/* From here on, output that nobody has asked for is dropped. */
enum blx_code boxlite_execution_on_exit(
    struct execution *x, blx_exit_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(x, "execution", (const void *)cb, true, err);

	if (code != BLX_OK)
		return code;
	(void)pthread_mutex_lock(&x->lock);
	x->exit_cb = cb;
	x->exit_user = user;
	x->streams[0].wanted = true;
	x->streams[1].wanted = true;
	(void)pthread_cond_broadcast(&x->change);
	(void)pthread_mutex_unlock(&x->lock);
	return BLX_OK;
}

/* ---- stdin ---- */

/* With the lock. */
static void add_input(struct execution *x, const uint8_t *data, size_t len)
{
	uint8_t *all = realloc(x->input, x->input_len + len);

	if (!all)
		abort();
	memcpy(all + x->input_len, data, len);
	x->input = all;
	x->input_len += len;
	(void)pthread_cond_broadcast(&x->change);
}

enum blx_code boxlite_execution_stdin_write(
    struct execution *x, const uint8_t *data, size_t len, struct blx_error *err)
{
	enum blx_code code = call_check(x, "execution", NULL, false, err);
	struct knob k;
	bool closed;

	if (code == BLX_OK && !data && len)
		code = error_set(err, BLX_INVALID_ARGUMENT, "data is null");
	if (code == BLX_OK)
		code = call_begin_knob(KNOB_STDIN, &k, err);
	if (code != BLX_OK || !len || k.action == KNOB_LIE)
		return code;
	(void)pthread_mutex_lock(&x->lock);
	closed = x->input_closed;
	if (!closed) {
		add_input(x, data, len);
		if (k.action == KNOB_FLIP)
			x->input[x->input_len - len / 2 - 1] ^= 1;
		if (k.action == KNOB_TWICE)
			add_input(x, data, len);
	}
	(void)pthread_mutex_unlock(&x->lock);
	return closed ? error_set(err, BLX_INVALID_STATE, "invalid state: stdin is closed")
		      : BLX_OK;
}

static void close_input(struct execution *x)
{
	(void)pthread_mutex_lock(&x->lock);
	x->input_closed = true;
	(void)pthread_cond_broadcast(&x->change);
	(void)pthread_mutex_unlock(&x->lock);
}

enum blx_code boxlite_execution_stdin_close(struct execution *x, struct blx_error *err)
{
	enum blx_code code = call_check(x, "execution", NULL, false, err);

	if (code == BLX_OK)
		code = call_begin(KNOB_STDIN_CLOSE, err);
	if (code == BLX_OK)
		close_input(x);
	return code;
}

/* ---- signals and the end ---- */

int exec_ask(struct execution *x, uint32_t kind, int a, int b)
{
	int32_t ask[4] = {(int32_t)kind, x->pid, a, b};
	struct shim_answer answer = {0, -ESRCH};
	int sock;

	(void)pthread_mutex_lock(&x->lock);
	sock = x->exited ? -ESRCH : 0;
	(void)pthread_mutex_unlock(&x->lock);
	if (sock == 0)
		sock = boot_connect(x->rt, x->id);
	if (sock < 0)
		return sock;
	if (send(sock, ask, sizeof(ask), MSG_NOSIGNAL) < 0 ||
	    recv(sock, &answer, sizeof(answer), 0) != sizeof(answer))
		answer.value = -EPIPE;
	(void)close(sock);
	return answer.value;
}

static enum blx_code work_ask(struct job *j)
{
	static const uint32_t kinds[KNOB_OPS] = {
	    [KNOB_KILL] = SHIM_SIGNAL, [KNOB_SIGNAL] = SHIM_SIGNAL, [KNOB_RESIZE] = SHIM_RESIZE};
	int rows = j->number >> 16;
	int rc = j->lie ? 0
			: exec_ask(j->execution, kinds[j->op], rows ? rows : j->number,
			      j->number & 0xffff);

	return rc < 0 ? error_sys(&j->event->err, BLX_INTERNAL, rc, "internal error: signal")
		      : BLX_OK;
}

static enum blx_code post_ask(struct execution *x, enum knob_op op, int number, blx_done_fn *cb,
    void *user, struct blx_error *err)
{
	enum blx_code code = call_check(x, "execution", (const void *)cb, true, err);
	struct job *j;

	if (code != BLX_OK)
		return code;
	j = job_new(x->rt, op, call_done, (void *)cb, user, work_ask);
	j->execution = exec_ref(x);
	j->number = number;
	return job_post(j, err);
}

enum blx_code boxlite_execution_kill(
    struct execution *x, blx_done_fn *cb, void *user, struct blx_error *err)
{
	return post_ask(x, KNOB_KILL, SIGKILL, cb, user, err);
}

enum blx_code boxlite_execution_signal(
    struct execution *x, int sig, blx_done_fn *cb, void *user, struct blx_error *err)
{
	if (sig < 1 || sig > 64)
		return error_set(
		    err, BLX_INVALID_ARGUMENT, "signal must be in 1..=64, got %d", sig);
	return post_ask(x, KNOB_SIGNAL, sig, cb, user, err);
}

enum blx_code boxlite_execution_tty_resize(
    struct execution *x, int rows, int cols, blx_done_fn *cb, void *user, struct blx_error *err)
{
	if (rows <= 0 || cols <= 0 || rows > 0x7fff || cols > 0xffff)
		return error_set(err, BLX_INVALID_ARGUMENT, "rows and cols must be positive");
	return post_ask(x, KNOB_RESIZE, rows << 16 | cols, cb, user, err);
}

static void call_wait(struct event *e)
{
	((blx_wait_fn *)e->cb)(e->err.code ? -1 : e->number, &e->err, e->user);
}

static enum blx_code work_wait(struct job *j)
{
	struct execution *x = j->execution;

	(void)pthread_mutex_lock(&x->lock);
	x->streams[0].wanted = true;
	x->streams[1].wanted = true;
	(void)pthread_cond_broadcast(&x->change);
	while (!x->exited && !x->freed)
		(void)pthread_cond_wait(&x->change, &x->lock);
	j->event->number = j->lie ? 0 : x->code;
	(void)pthread_mutex_unlock(&x->lock);
	return BLX_OK;
}

enum blx_code boxlite_execution_wait(
    struct execution *x, blx_wait_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(x, "execution", (const void *)cb, true, err);
	struct job *j;

	if (code != BLX_OK)
		return code;
	j = job_new(x->rt, KNOB_WAIT, call_wait, (void *)cb, user, work_wait);
	j->execution = exec_ref(x);
	return job_post(j, err);
}

static void call_exit_forced(struct event *e)
{
	((blx_exit_fn *)e->cb)(EXEC_FORCED, e->user);
}

/*
 * Kills what still runs, and tells its end if nothing has: as the last that is told of it. Not for
 * long, if nobody drains.
 */
void boxlite_execution_free(struct execution *x)
{
	struct event *e = NULL;
	struct timespec until;

	if (!x)
		return;
	close_input(x);
	(void)pthread_mutex_lock(&x->lock);
	x->freed = true; /* before it is killed: else that may be told as its own end */
	(void)pthread_mutex_unlock(&x->lock);
	(void)exec_ask(x, SHIM_SIGNAL, SIGKILL, 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FREE_WAIT_S;
	(void)pthread_mutex_lock(&x->lock);
	fd_close(&x->stop[1]);
	(void)pthread_cond_broadcast(&x->change);
	while (!x->exited || !x->streams[0].done || !x->streams[1].done) {
		if (pthread_cond_timedwait(&x->change, &x->lock, &until) == ETIMEDOUT)
			break;
	}
	if (x->exit_cb && !x->told) {
		x->told = true;
		e = event_new(call_exit_forced, (void *)x->exit_cb, x->exit_user);
		e->stream = x;
	}
	(void)pthread_mutex_unlock(&x->lock);
	if (e)
		queue_push(x->rt, e);
	exec_unref(x);
}
