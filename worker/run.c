/*
 * run: a command from its request to its end. sbx-worker. If we die here the box dies with us, and
 * sbxd answers the client.
 */
#include "worker/run.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "wire/http.h"
#include "wire/json.h"
#include "worker/command_request.h"
#include "worker/conn.h"

static struct run *run_of(struct op *op)
{
	return (struct run *)(void *)op;
}

static struct run *run_of_chan(struct agent_chan *c)
{
	return run_of(LOOP_OWNER(c, struct op, chan));
}

/* Nothing was answered yet: the request as a whole fails. */
static void run_refuse(struct run *r, enum api_error e, const char *message)
{
	if (r->op.conn)
		conn_fail(r->op.conn, e, message);
	op_free(&r->op);
}

static void run_feed_stdin(struct run *r)
{
	if (!r->req.has_stdin || r->stdin_done)
		return;
	while (r->stdin_sent < r->req.stdin_len) {
		size_t n = agent_chan_room(&r->op.chan);

		if (n > r->req.stdin_len - r->stdin_sent)
			n = r->req.stdin_len - r->stdin_sent;
		n = agent_chan_send(&r->op.chan, r->req.stdin_data + r->stdin_sent, n);
		if (n == 0)
			return;
		r->stdin_sent += n;
		r->op.s->report->work.bytes_in += n;
	}
	r->stdin_done = true;
	agent_chan_eof(&r->op.chan);
	run_request_sent(&r->req, true);
}

static void run_on_timeout(struct loop *loop, struct loop_timer *t)
{
	struct run *r = LOOP_OWNER(t, struct run, timeout);

	(void)loop; /* the service knows its loop */
	r->timed_out = true;
	op_close_chan(&r->op);
}

static int run_started(struct agent_chan *c, const uint8_t *payload, size_t n)
{
	struct run *r = run_of_chan(c);

	(void)payload; /* its pid in the box is of no use to anybody outside */
	if (n != sizeof(uint32_t))
		return -EBADMSG;
	r->op.stall.max_ms = 0; /* it may be silent for as long as it likes */
	if (r->op.conn && r->mode->started)
		r->mode->started(r);
	return 0;
}

void run_grant(struct run *r, unsigned int stream, size_t n)
{
	agent_chan_grant(&r->op.chan, AGENT_STDOUT + stream, n);
}

static size_t run_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct run *r = run_of_chan(c);

	r->op.s->report->work.bytes_out += n;
	if (r->op.conn)
		r->mode->data(r, stream - AGENT_STDOUT, p, n);
	else
		run_grant(r, stream - AGENT_STDOUT, n);
	return n;
}

static void run_sendable(struct agent_chan *c)
{
	run_feed_stdin(run_of_chan(c));
}

static void run_end(struct agent_chan *c, const struct agent_end *end)
{
	struct run *r = run_of_chan(c);

	r->end = *end;
	r->over = true;
	r->ended_ns = clock_now_ns();
	/* It may have ended by itself just before the guest heard of the timeout. */
	r->timed_out = r->timed_out && (end->flags & AGENT_END_KILLED);
	loop_timer_clear(r->op.s->loop, &r->timeout);
	loop_timer_clear(r->op.s->loop, &r->op.patience);
	if (r->op.conn)
		r->mode->end(r);
	else
		op_free(&r->op);
}

static void run_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct run *r = run_of_chan(c);
	enum api_error e = command_error(code);

	if (!r->begun || !r->op.conn) {
		run_refuse(r, e, text);
		return;
	}
	r->mode->lost(r, e, text);
	conn_cut(r->op.conn);
	op_free(&r->op);
}

static const struct agent_chan_ops run_chan_ops = {
    .started = run_started,
    .data = run_data,
    .sendable = run_sendable,
    .end = run_end,
    .error = run_error,
};

static void run_body(struct op *op, const uint8_t *p, size_t n)
{
	op_keep_body(op, &run_of(op)->body, p, n);
}

static void run_body_end(struct op *op)
{
	struct run *r = run_of(op);
	struct service *s = op->s;
	enum api_error e = API_INTERNAL;
	struct err err = {0};
	int rc;

	rc = run_request_parse(buf_head(&r->body), r->body.len, s, &r->req, &e, &err);
	buf_free(&r->body);
	if (rc < 0) {
		run_refuse(r, e, err.text);
		return;
	}
	r->started_ns = clock_now_ns();
	op->stall.max_ms = COMMAND_START_NS / NS_PER_MS;
	rc = agent_chan_open(
	    s->link, &op->chan, &run_chan_ops, AGENT_EXEC, buf_head(&r->req.exec), r->req.exec.len);
	if (rc == 0 && r->req.timeout_ns)
		rc = loop_timer_set(
		    s->loop, &r->timeout, r->started_ns + r->req.timeout_ns, run_on_timeout);
	if (rc < 0) {
		agent_chan_close(&op->chan);
		if (rc == -EPIPE)
			run_refuse(r, API_BOX_DIED, "the box died");
		else
			run_refuse(r, API_BOX_RESOURCES, "too many operations in the box");
		return;
	}
	s->report->work.exec_total++;
	FAULT_POINT("worker.run.started");
	run_request_sent(&r->req, false);
	run_feed_stdin(r);
}

static void run_drained(struct op *op)
{
	struct run *r = run_of(op);

	if (r->mode->drained)
		r->mode->drained(r);
}

static void run_abandon(struct op *op)
{
	struct run *r = run_of(op);

	loop_timer_clear(op->s->loop, &r->timeout);
	for (size_t i = 0; i < RUN_STREAMS; i++)
		buf_free(&r->streams[i].kept);
	op_close_chan(op);
}

static void run_lost(struct op *op, enum api_error e, const char *message)
{
	struct run *r = run_of(op);

	if (r->mode->lost)
		r->mode->lost(r, e, message);
}

static void run_free(struct op *op)
{
	struct run *r = run_of(op);

	if (r->started_ns && !r->over)
		op->s->report->work.exec_failed++;
	loop_timer_clear(op->s->loop, &r->timeout);
	run_request_free(&r->req);
	for (size_t i = 0; i < RUN_STREAMS; i++)
		buf_free(&r->streams[i].kept);
	buf_free(&r->line);
	buf_free(&r->body);
	free(r);
}

static const struct op_class run_class = {
    .stalled = "the command did not begin",
    .body = run_body,
    .body_end = run_body_end,
    .drained = run_drained,
    .abandon = run_abandon,
    .lost = run_lost,
    .free = run_free,
};

void run_begin(struct conn *c, const struct http_head *h)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	r->mode = h->wants_ndjson ? &run_mode_stream : &run_mode_buffer;
	buf_init(&r->body, c->s->limits->run_body_bytes);
	op_init(&r->op, &run_class, c);
}

void run_put_end(struct run *r, struct json_out *j)
{
	bool killed = r->end.signal != 0 || r->timed_out;

	if (killed)
		json_put_null(j, "exit_code");
	else
		json_put_int(j, "exit_code", r->end.exit_code);
	if (r->timed_out)
		json_put_int(j, "signal", 9);
	else if (killed)
		json_put_int(j, "signal", r->end.signal);
	else
		json_put_null(j, "signal");
	json_put_bool(j, "timed_out", r->timed_out);
}

void run_put_duration(struct run *r, struct json_out *j)
{
	json_put_double(
	    j, "duration_ms", (double)(r->ended_ns - r->started_ns) / (double)NS_PER_MS);
}
