/*
 * exec_api: what executions there are and how they are, signals, terminal sizes, the kill.
 * sbx-worker. If we die here, sbxd answers the client.
 */
#include "worker/exec_api.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "wire/json.h"
#include "worker/conn.h"
#include "worker/exec.h"

#define API_ONE_MAX 4096U /* JSON of one execution */

void exec_api_not_found(struct conn *c)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "execution not found: %s", c->item);
	conn_fail(c, API_NOT_FOUND, text);
}

/* ---- status ---- */

static void api_put(struct json_out *j, const struct execution *x)
{
	char started[CLOCK_RFC3339_LEN];
	bool over = x->state == EXEC_OVER;

	clock_format_rfc3339(x->started_ms, started);
	json_object_begin(j, NULL);
	json_put_string(j, "execution_id", x->id);
	json_put_string(j, "command", x->command);
	json_put_string(j, "status", exec_status(x));
	json_put_bool(j, "attached", x->attach != NULL);
	json_put_bool(j, "tty", x->tty);
	if (over)
		json_put_int(j, "exit_code", x->exit_code);
	else
		json_put_null(j, "exit_code");
	if (over && x->exit_code < 0)
		json_put_int(j, "signal", -x->exit_code);
	else
		json_put_null(j, "signal");
	json_put_string(j, "started_at", started);
	if (over)
		json_put_uint(j, "duration_ms", (x->ended_ns - x->started_ns) / NS_PER_MS);
	else
		json_put_null(j, "duration_ms");
	json_put_string(j, "error_message", *x->message ? x->message : NULL);
	json_object_end(j);
}

static void api_reply(struct conn *c, struct buf *out, const struct json_out *j)
{
	if (json_out_error(j) == 0)
		conn_reply(c, 200, out);
	else
		conn_fail(c, API_INTERNAL, "no memory for the answer");
	buf_free(out);
}

void exec_begin_get(struct conn *c, const struct http_head *h)
{
	const struct execution *x = exec_find(c->s, c->item);
	struct json_out j;
	struct buf out;

	(void)h; /* there is nothing to choose */
	if (!x) {
		exec_api_not_found(c);
		return;
	}
	buf_init(&out, API_ONE_MAX);
	json_out_init(&j, &out);
	api_put(&j, x);
	api_reply(c, &out, &j);
}

void exec_begin_list(struct conn *c, const struct http_head *h)
{
	const struct execution *x;
	struct json_out j;
	struct buf out;

	(void)h; /* there is nothing to choose */
	buf_init(&out, 2U * AGENT_CHANNELS_MAX * API_ONE_MAX);
	json_out_init(&j, &out);
	json_array_begin(&j, NULL);
	LIST_FOREACH (x, &c->s->executions, entry) {
		if (x->state != EXEC_STARTING && !x->evicted)
			api_put(&j, x);
	}
	json_array_end(&j);
	api_reply(c, &out, &j);
}

/* ---- kill ---- */

struct exec_kill {
	struct op op; /* first */
	struct execution *x;
	LIST_ENTRY(exec_kill) entry;
};

static void kill_free(struct op *op)
{
	struct exec_kill *k = (struct exec_kill *)(void *)op;

	LIST_REMOVE(k, entry); /* the execution ends all the same */
	free(k);
}

static const struct op_class kill_class = {.free = kill_free};

void exec_kill_done(struct exec_kill *k)
{
	conn_reply_empty(k->op.conn, 204);
	op_free(&k->op);
}

void exec_begin_kill(struct conn *c, const struct http_head *h)
{
	struct execution *x = exec_find(c->s, c->item);
	struct exec_kill *k;

	(void)h; /* there is nothing to choose */
	if (!x) {
		exec_api_not_found(c);
		return;
	}
	if (x->state == EXEC_OVER) {
		exec_evict(x);
		conn_reply_empty(c, 204);
		return;
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	op_init(&k->op, &kill_class, c);
	k->x = x;
	LIST_INSERT_HEAD(&x->kills, k, entry);
	x->doomed = true;
	exec_end(x, EXEC_CAUSE_KILLED);
}

/* ---- signal, resize ---- */

typedef int exec_parse_fn(
    const uint8_t *body, size_t n, struct exec_order *out, enum api_error *e, struct err *err);

struct exec_post {
	struct op op; /* first */
	struct buf body;
	exec_parse_fn *parse;
};

static struct exec_post *post_of(struct op *op)
{
	return (struct exec_post *)(void *)op;
}

static void post_body(struct op *op, const uint8_t *p, size_t n)
{
	op_keep_body(op, &post_of(op)->body, p, n);
}

static void post_answer(struct exec_post *p)
{
	struct conn *c = p->op.conn;
	struct execution *x = exec_find(c->s, c->item);
	enum api_error e = API_INTERNAL;
	struct exec_order order;
	struct err err = {0};

	if (!x) {
		exec_api_not_found(c);
	} else if (json_check_depth(
		       buf_head(&p->body), p->body.len, c->s->limits->json_depth, &err) < 0) {
		conn_fail(c, API_MALFORMED, err.text);
	} else if (p->parse(buf_head(&p->body), p->body.len, &order, &e, &err) < 0) {
		conn_fail(c, e, err.text);
	} else if (x->state == EXEC_OVER) {
		conn_fail(c, API_INVALID_STATE, "the execution is over");
	} else if (order.type == EXEC_ORDER_RESIZE && !x->tty) {
		conn_fail(c, API_NOT_A_TTY, "the execution has no terminal");
	} else if (agent_chan_crowded(&x->chan)) {
		conn_fail(c, API_BOX_RESOURCES, "the box does not read what it is sent; try again");
	} else {
		exec_obey(x, &order);
		conn_reply_empty(c, 204);
	}
}

static void post_body_end(struct op *op)
{
	post_answer(post_of(op));
	op_free(op);
}

static void post_free(struct op *op)
{
	buf_free(&post_of(op)->body);
	free(op);
}

static const struct op_class post_class = {
    .body = post_body,
    .body_end = post_body_end,
    .free = post_free,
};

static void post_begin(struct conn *c, exec_parse_fn *parse)
{
	struct exec_post *p = calloc(1, sizeof(*p));

	if (!p) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	p->parse = parse;
	buf_init(&p->body, EXEC_ORDER_MAX);
	op_init(&p->op, &post_class, c);
}

void exec_begin_signal(struct conn *c, const struct http_head *h)
{
	(void)h; /* everything is in the body */
	post_begin(c, exec_signal_parse);
}

void exec_begin_resize(struct conn *c, const struct http_head *h)
{
	(void)h; /* everything is in the body */
	post_begin(c, exec_resize_parse);
}
