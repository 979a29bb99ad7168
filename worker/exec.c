/*
 * exec: an execution from its request to its end. sbx-worker. If we die here the box dies with us,
 * and sbxd closes the connections of its clients.
 */
#include "worker/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/log.h"
#include "worker/command_request.h"

static struct execution *exec_of(struct agent_chan *c)
{
	return LOOP_OWNER(c, struct execution, chan);
}

/* ---- what it has to say ---- */

const char *exec_status(const struct execution *x)
{
	if (x->state != EXEC_OVER)
		return "running";
	if (x->cause == EXEC_CAUSE_TIMEOUT)
		return "timed_out";
	return x->exit_code < 0 ? "killed" : "completed";
}

static void exec_describe_end(struct execution *x)
{
	const char *name = x->exit_code < 0 ? sigabbrev_np(-x->exit_code) : NULL;
	double grace = x->s->limits->exec_detach_grace_ms / 1000.0;
	char *out = x->message;

	if (x->cause == EXEC_CAUSE_TIMEOUT)
		(void)snprintf(out, EXEC_MESSAGE_LEN, "timed out after %g s",
		    (double)x->timeout_ns / (double)NS_PER_S);
	else if (x->cause == EXEC_CAUSE_ALONE || x->alone_step > 0)
		(void)snprintf(
		    out, EXEC_MESSAGE_LEN, "ended: no client was attached for %g s", grace);
	else if (x->cause == EXEC_CAUSE_MEMORY)
		(void)snprintf(out, EXEC_MESSAGE_LEN, "killed: no memory for its output");
	else if (x->exit_code < 0)
		(void)snprintf(out, EXEC_MESSAGE_LEN, "killed by signal %d%s%s%s", -x->exit_code,
		    name ? " (SIG" : "", name ? name : "", name ? ")" : "");
}

/* ---- its end ---- */

static void exec_on_patience(struct loop *loop, struct loop_timer *t)
{
	struct execution *x = LOOP_OWNER(t, struct execution, patience);

	(void)loop; /* the service knows its loop */
	x->s->ops->broken(x->s, "the guest did not end an execution in time");
}

void exec_end(struct execution *x, enum exec_cause cause)
{
	if (!x->chan.link || x->chan.closing)
		return;
	x->cause = cause;
	loop_timer_clear(x->s->loop, &x->alone);
	agent_chan_close(&x->chan);
	INVARIANT(loop_timer_set(x->s->loop, &x->patience,
		      clock_now_ns() + service_patience_ns(x->s), exec_on_patience) == 0);
}

static void exec_on_timeout(struct loop *loop, struct loop_timer *t)
{
	(void)loop; /* the service knows its loop */
	exec_end(LOOP_OWNER(t, struct execution, timeout), EXEC_CAUSE_TIMEOUT);
}

static void exec_stop_counting(struct execution *x)
{
	struct service *s = x->s;

	if (x->state == EXEC_OVER)
		return;
	x->state = EXEC_OVER;
	loop_timer_clear(s->loop, &x->timeout);
	loop_timer_clear(s->loop, &x->patience);
	loop_timer_clear(s->loop, &x->alone);
	s->executions_running--;
	report_end(s->report);
}

static void exec_free(struct execution *x)
{
	exec_stop_counting(x);
	loop_timer_clear(x->s->loop, &x->alone);
	agent_chan_drop(&x->chan);
	for (size_t i = 0; i < EXEC_STREAMS; i++) {
		x->s->buffered -= x->out[i].extra;
		exec_output_free(&x->out[i]);
	}
	LIST_REMOVE(x, entry);
	free(x);
}

void exec_release(struct execution *x)
{
	if (x->state == EXEC_OVER && !x->attach)
		exec_free(x);
}

/* Its process is reaped, its tree gone if it was to go, its output is here. x may be gone then. */
static void exec_is_over(struct execution *x)
{
	struct exec_attach *a = x->attach;
	struct exec_kill *k;

	exec_stop_counting(x);
	x->ended_ns = clock_now_ns();
	while ((k = LIST_FIRST(&x->kills)))
		exec_kill_done(k);
	FAULT_POINT("worker.exec.over");
	if (x->doomed)
		exec_evict(x);
	else
		exec_keep(x);
	if (a) /* then x was not freed */
		exec_attach_pump(a);
}

/* It never ran. */
static void exec_not_started(struct execution *x, enum api_error e, const char *message)
{
	struct exec_start *start = x->start;

	x->start = NULL;
	x->s->report->work.exec_failed++;
	if (start)
		exec_start_failed(start, e, message);
	exec_free(x);
}

/* Whoever asked for it is told; it goes when the guest has ended it. */
static void exec_on_late(struct loop *loop, struct loop_timer *t)
{
	struct execution *x = LOOP_OWNER(t, struct execution, alone);
	struct exec_start *start = x->start;
	char text[64];

	(void)loop; /* the service knows its loop */
	x->start = NULL;
	x->doomed = true;
	exec_end(x, EXEC_CAUSE_KILLED);
	(void)snprintf(text, sizeof(text), "the command did not begin within %llu s",
	    (unsigned long long)(COMMAND_START_NS / NS_PER_S));
	if (start)
		exec_start_failed(start, API_TIMEOUT, text);
}

/* ---- what the guest says ---- */

static int exec_on_started(struct agent_chan *c, const uint8_t *payload, size_t n)
{
	struct execution *x = exec_of(c);
	struct exec_start *start = x->start;

	(void)payload; /* its pid in the box is of no use to anybody outside */
	if (n != sizeof(uint32_t) || x->state != EXEC_STARTING)
		return -EBADMSG;
	x->state = EXEC_RUNNING;
	x->start = NULL;
	loop_timer_clear(x->s->loop, &x->alone);
	FAULT_POINT("worker.exec.started");
	exec_watch_alone(x);
	if (start)
		exec_start_done(start, x);
	return 0;
}

static size_t exec_on_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct execution *x = exec_of(c);
	struct exec_output *o = &x->out[stream - AGENT_STDOUT];

	x->s->report->work.bytes_out += n;
	if (exec_output_add(o, p, n) < 0)
		exec_end(x, EXEC_CAUSE_MEMORY);
	else if (x->attach)
		exec_attach_pump(x->attach);
	else if (x->attached_once)
		agent_chan_grant(c, stream, exec_output_leave(o));
	/* else: whoever comes first is to have all of it, and the guest waits */
	return n;
}

static void exec_on_sendable(struct agent_chan *c)
{
	struct execution *x = exec_of(c);

	if (x->attach)
		exec_attach_listen(x->attach);
}

static void exec_on_end(struct agent_chan *c, const struct agent_end *end)
{
	struct execution *x = exec_of(c);
	bool killed = (end->flags & AGENT_END_KILLED) != 0;

	if (x->state == EXEC_STARTING) {
		exec_not_started(x, API_EXECUTION_FAILED, "the command was ended before it began");
		return;
	}
	/* It may have ended by itself just before the guest was told to end it. */
	if (!killed)
		x->cause = EXEC_CAUSE_NONE;
	if (end->signal > 0 && end->signal < NSIG)
		x->exit_code = -end->signal;
	else
		x->exit_code = killed ? -SIGKILL : end->exit_code & 0xff;
	exec_describe_end(x);
	exec_is_over(x);
}

static void exec_on_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct execution *x = exec_of(c);

	if (x->state == EXEC_STARTING) {
		exec_not_started(x, command_error(code), text);
		return;
	}
	x->exit_code = -SIGKILL; /* how it ended is not known; that it was ended is */
	(void)snprintf(x->message, sizeof(x->message), "%s", text);
	exec_is_over(x);
}

static const struct agent_chan_ops exec_chan_ops = {
    .started = exec_on_started,
    .data = exec_on_data,
    .sendable = exec_on_sendable,
    .end = exec_on_end,
    .error = exec_on_error,
};

/* ---- its beginning ---- */

static int exec_make_id(char out[EXEC_ID_LEN])
{
	uint64_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -EIO;
	(void)snprintf(out, EXEC_ID_LEN, "exec-%016llx", (unsigned long long)id);
	return 0;
}

static int exec_open(struct execution *x, const struct exec_request *r)
{
	struct service *s = x->s;
	int rc = exec_make_id(x->id);

	if (rc == 0)
		rc = agent_chan_open(
		    s->link, &x->chan, &exec_chan_ops, AGENT_EXEC, buf_head(&r->exec), r->exec.len);
	if (rc == 0)
		rc = loop_timer_set(
		    s->loop, &x->alone, x->started_ns + COMMAND_START_NS, exec_on_late);
	if (rc == 0 && r->timeout_ns)
		rc = loop_timer_set(
		    s->loop, &x->timeout, x->started_ns + r->timeout_ns, exec_on_timeout);
	if (rc < 0)
		agent_chan_close(&x->chan);
	agent_chan_narrow(&x->chan);
	return rc;
}

static int exec_refused(int rc, enum api_error *e, struct err *err)
{
	*e = rc == -EPIPE ? API_BOX_DIED : API_BOX_RESOURCES;
	return err_set(
	    err, -rc, "%s", rc == -EPIPE ? "the box died" : "too many operations in the box");
}

int exec_create(struct service *s, const struct exec_request *r, struct exec_start *start,
    struct execution **out, enum api_error *e, struct err *err)
{
	struct execution *x;
	int rc;

	if (s->executions_running >= s->limits->max_executions) {
		*e = API_EXECUTION_LIMIT;
		return err_set(err, EAGAIN, "%u executions run in this box: that is the limit",
		    s->executions_running);
	}
	x = calloc(1, sizeof(*x));
	if (!x) {
		*e = API_INTERNAL;
		return err_set(err, ENOMEM, "no memory for an execution");
	}
	x->s = s;
	x->start = start;
	x->tty = r->tty;
	x->stdin_open = r->has_stdin;
	x->timeout_ns = r->timeout_ns;
	x->started_ns = clock_now_ns();
	x->started_ms = clock_wall_ms();
	memcpy(x->command, r->command, sizeof(x->command));
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		exec_output_init(&x->out[i]);
	LIST_INIT(&x->kills);
	LIST_INSERT_HEAD(&s->executions, x, entry);
	s->executions_running++;
	report_begin(s->report);
	rc = exec_open(x, r);
	if (rc < 0) {
		exec_free(x);
		return exec_refused(rc, e, err);
	}
	s->report->work.exec_total++;
	*out = x;
	return 0;
}

void exec_drop_all(struct service *s)
{
	struct execution *x;

	while ((x = LIST_FIRST(&s->executions)))
		exec_free(x);
}
