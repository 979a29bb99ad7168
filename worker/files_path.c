/*
 * files_path: GET fs/stat, POST fs/mkdir, DELETE fs, POST fs/rename: what the guest does to a name
 * at once. sbx-worker. If we die here, sbxd answers the client; it happened, or it did not.
 */
#include "worker/files_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "wire/json.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"

#define PATH_JSON_MAX (32U * PATH_MAX) /* two paths, and a link's text, in the worst of writing */

struct path_op;

/* A kind of request. */
struct path_kind {
	enum agent_path_op op;
	struct path_form form;
	/* Adds what the guest has answered. */
	void (*put)(struct path_op *p, struct json_out *j, const struct agent_end *end);
};

struct path_op {
	struct op op; /* first */
	const struct path_kind *kind;
	struct path_request request;
	struct buf body;
	bool started; /* stat: `stat` and `link` are filled */
	struct agent_stat stat;
	char link[PATH_MAX];
};

static struct path_op *path_of(struct op *op)
{
	return (struct path_op *)(void *)op;
}

static struct path_op *path_of_chan(struct agent_chan *c)
{
	return path_of(LOOP_OWNER(c, struct op, chan));
}

/* ---- answers ---- */

static void put_path(struct path_op *p, struct json_out *j, const char *key)
{
	files_put_name(j, key, p->request.from, strlen(p->request.from));
}

static void stat_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	const struct files_stat st = {
	    .size = p->stat.size,
	    .mtime_ns = (int64_t)p->stat.mtime_ns,
	    .mode = p->stat.mode,
	    .uid = p->stat.uid,
	    .gid = p->stat.gid,
	};

	(void)end; /* has nothing more */
	put_path(p, j, "path");
	files_put_stat(j, &st);
	if (p->stat.link_len)
		files_put_name(j, "link_target", p->link, p->stat.link_len);
}

static void mkdir_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	put_path(p, j, "path");
	json_put_bool(j, "created", end->bytes > 0);
}

static void remove_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	(void)end; /* it is one */
	put_path(p, j, "path");
	json_put_uint(j, "removed", 1);
}

static void rename_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	(void)end; /* it is one */
	put_path(p, j, "from");
	files_put_name(j, "to", p->request.to, strlen(p->request.to));
}

static const struct path_kind stat_kind = {
    .op = AGENT_PATH_STAT,
    .form = {.from = "path", .flag_name = "follow", .flag = AGENT_PATH_FOLLOW},
    .put = stat_put,
};

static const struct path_kind mkdir_kind = {
    .op = AGENT_PATH_MKDIR,
    .form = {.from = "path", .flag_name = "parents", .flag = AGENT_PATH_PARENTS, .mode = true},
    .put = mkdir_put,
};

static const struct path_kind remove_kind = {
    .op = AGENT_PATH_REMOVE,
    .form = {.from = "path"},
    .put = remove_put,
};

static const struct path_kind rename_kind = {
    .op = AGENT_PATH_RENAME,
    .form = {.from = "from", .to = "to", .flag_name = "overwrite", .flag = AGENT_PATH_OVERWRITE},
    .put = rename_put,
};

/* ---- the guest ---- */

static int path_started(struct agent_chan *c, const uint8_t *payload, size_t n)
{
	struct path_op *p = path_of_chan(c);
	struct agent_stat st;

	if (p->kind->op != AGENT_PATH_STAT || p->started || n < sizeof(st))
		return -EBADMSG;
	memcpy(&st, payload, sizeof(st));
	if (st.size > INT64_MAX || st.link_len != n - sizeof(st) ||
	    st.link_len >= sizeof(p->link) || memchr(payload + sizeof(st), '\0', st.link_len))
		return -EBADMSG;
	memcpy(p->link, payload + sizeof(st), st.link_len);
	p->stat = st;
	p->started = true;
	return 0;
}

static void path_end(struct agent_chan *c, const struct agent_end *end)
{
	struct path_op *p = path_of_chan(c);
	struct json_out j;
	struct buf out;

	buf_init(&out, PATH_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	p->kind->put(p, &j, end);
	json_object_end(&j);
	if (p->op.conn && p->kind->op == AGENT_PATH_STAT && !p->started)
		conn_fail(p->op.conn, API_IO, "the guest's answer is not complete");
	else if (p->op.conn && json_out_error(&j) == 0)
		conn_reply(p->op.conn, 200, &out);
	else if (p->op.conn)
		conn_fail(p->op.conn, API_INTERNAL, "no memory for the answer");
	buf_free(&out);
	op_free(&p->op);
}

static void path_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct path_op *p = path_of_chan(c);

	if (p->op.conn)
		conn_fail(p->op.conn, files_error(code), text);
	op_free(&p->op);
}

static const struct agent_chan_ops path_chan_ops = {
    .started = path_started,
    .end = path_end,
    .error = path_error,
};

/* The result is agent_chan_open()'s. */
static int path_open(struct path_op *p)
{
	const struct path_request *r = &p->request;
	struct agent_path head = {
	    .op = p->kind->op,
	    .flags = r->flags,
	    .mode = r->mode,
	    .path_len = (uint32_t)strlen(r->from),
	    .other_len = (uint32_t)strlen(r->to),
	};
	uint8_t request[sizeof(head) + 2 * PATH_MAX];

	memcpy(request, &head, sizeof(head));
	memcpy(request + sizeof(head), r->from, head.path_len);
	memcpy(request + sizeof(head) + head.path_len, r->to, head.other_len);
	return agent_chan_open(p->op.s->link, &p->op.chan, &path_chan_ops, AGENT_PATH, request,
	    sizeof(head) + head.path_len + head.other_len);
}

/* ---- requests ---- */

/* Nothing was answered yet: the request as a whole fails. */
static void path_refuse(struct path_op *p, enum api_error e, const char *message)
{
	conn_fail(p->op.conn, e, message);
	op_free(&p->op);
}

/* All that is known of the request is there: asks the guest, or answers. */
static void path_begin(struct path_op *p)
{
	struct err err = {0};
	int rc;

	if (path_check(&p->request, &p->kind->form, &err) < 0) {
		path_refuse(p, API_INVALID_PATH, err.text);
		return;
	}
	rc = path_open(p);
	if (rc < 0) {
		files_refuse(p->op.conn, rc);
		op_free(&p->op);
	}
}

static void path_body(struct op *op, const uint8_t *bytes, size_t n)
{
	op_keep_body(op, &path_of(op)->body, bytes, n);
}

static void path_body_end(struct op *op)
{
	struct path_op *p = path_of(op);
	const uint8_t *body = buf_head(&p->body);
	enum api_error e = API_MALFORMED;
	struct err err = {0};
	int rc = json_check_depth(body, p->body.len, op->s->limits->json_depth, &err);

	if (rc == 0)
		rc = path_take_body(&p->request, &p->kind->form, body, p->body.len, &e, &err);
	buf_free(&p->body);
	if (rc < 0)
		path_refuse(p, e, err.text);
	else
		path_begin(p);
}

static void path_free(struct op *op)
{
	struct path_op *p = path_of(op);

	buf_free(&p->body);
	free(p);
}

static const struct op_class plain_class = {
    .abandon = op_close_chan,
    .free = path_free,
};

static const struct op_class body_class = {
    .body = path_body,
    .body_end = path_body_end,
    .abandon = op_close_chan,
    .free = path_free,
};

/* NULL after answering. */
static struct path_op *path_new(struct conn *c, const struct http_head *h,
    const struct path_kind *kind, const struct op_class *cls)
{
	struct path_op *p = calloc(1, sizeof(*p));

	if (!p) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return NULL;
	}
	p->kind = kind;
	if (path_take_query(&p->request, &kind->form, c, h) < 0) {
		free(p);
		return NULL;
	}
	op_init(&p->op, cls, c);
	buf_init(&p->body, FILES_BODY_MAX);
	return p;
}

void files_begin_stat(struct conn *c, const struct http_head *h)
{
	struct path_op *p = path_new(c, h, &stat_kind, &plain_class);

	if (p)
		path_begin(p);
}

void files_begin_remove(struct conn *c, const struct http_head *h)
{
	bool recursive = false;
	char path[PATH_MAX];
	struct path_op *p;

	if (files_take_flag(c, h, "recursive", &recursive) < 0)
		return;
	if (recursive) {
		if (files_take_directory(c, h, path) >= 0)
			files_remove_tree(c, path);
		return;
	}
	p = path_new(c, h, &remove_kind, &plain_class);
	if (p)
		path_begin(p);
}

/* The rest comes in the body. */
void files_begin_mkdir(struct conn *c, const struct http_head *h)
{
	(void)path_new(c, h, &mkdir_kind, &body_class);
}

void files_begin_rename(struct conn *c, const struct http_head *h)
{
	(void)path_new(c, h, &rename_kind, &body_class);
}
