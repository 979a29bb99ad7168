/*
 * exec_start: POST exec: answered as soon as the command runs, or cannot. sbx-worker. If we die
 * here, sbxd answers the client.
 */
#include <stdio.h>
#include <stdlib.h>

#include "wire/json.h"
#include "worker/conn.h"
#include "worker/exec.h"
#include "worker/exec_api.h"

struct exec_start {
	struct op op; /* first */
	struct buf body;
	struct execution *x; /* that it waits for */
};

static struct exec_start *start_of(struct op *op)
{
	return (struct exec_start *)(void *)op;
}

static void start_refuse(struct exec_start *t, enum api_error e, const char *message)
{
	conn_fail(t->op.conn, e, message);
	op_free(&t->op);
}

void exec_start_failed(struct exec_start *t, enum api_error e, const char *message)
{
	t->x = NULL;
	start_refuse(t, e, message);
}

void exec_start_done(struct exec_start *t, struct execution *x)
{
	struct conn *c = t->op.conn;
	char location[256];
	struct json_out j;
	struct buf out;

	t->x = NULL;
	(void)snprintf(
	    location, sizeof(location), "Location: /v1/boxes/%s/executions/%s\r\n", c->id, x->id);
	buf_init(&out, 256);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "execution_id", x->id);
	json_object_end(&j);
	if (json_out_error(&j) == 0)
		conn_reply_extra(c, 201, location, &out);
	else
		conn_fail(c, API_INTERNAL, "no memory for the answer");
	buf_free(&out);
	op_free(&t->op);
}

static void start_body(struct op *op, const uint8_t *p, size_t n)
{
	op_keep_body(op, &start_of(op)->body, p, n);
}

static void start_body_end(struct op *op)
{
	struct exec_start *t = start_of(op);
	struct service *s = op->s;
	enum api_error e = API_INTERNAL;
	struct exec_request r;
	struct err err = {0};
	int rc;

	if (json_check_depth(buf_head(&t->body), t->body.len, s->limits->json_depth, &err) < 0) {
		start_refuse(t, API_MALFORMED, err.text);
		return;
	}
	rc = exec_request_parse(buf_head(&t->body), t->body.len, s, &r, &e, &err);
	buf_free(&t->body);
	op_forget(op);
	if (rc == 0)
		rc = exec_create(s, &r, t, &t->x, &e, &err);
	exec_request_free(&r);
	if (rc < 0)
		start_refuse(t, e, err.text);
}

static void start_free(struct op *op)
{
	struct exec_start *t = start_of(op);

	if (t->x) {
		/* Nobody knows of it, or ever will. */
		t->x->start = NULL;
		t->x->doomed = true;
		exec_end(t->x, EXEC_CAUSE_KILLED);
	}
	buf_free(&t->body);
	free(t);
}

static const struct op_class start_class = {
    .body = start_body,
    .body_end = start_body_end,
    .free = start_free,
};

void exec_begin_start(struct conn *c, const struct http_head *h)
{
	struct exec_start *t = calloc(1, sizeof(*t));

	(void)h; /* everything is in the body */
	if (!t) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	buf_init(&t->body, c->s->limits->exec_body_bytes);
	op_init(&t->op, &start_class, c);
}
