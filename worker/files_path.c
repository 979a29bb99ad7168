/*
 * files_path: GET fs/stat, POST fs/mkdir, DELETE fs, POST fs/rename: what the guest does to a name
 * at once. sbx-worker. If we die here, sbxd answers the client; it happened, or it did not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "wire/http.h"
#include "wire/json.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"

#define PATH_JSON_MAX (32U * PATH_MAX) /* two paths, and a link's text, in the worst of writing */

struct path_op;

/* A kind of request. */
struct path_kind {
	enum agent_path_op op;
	const char *from;      /* what the client calls its path, */
	const char *to;	       /* and its second one; NULL: there is none */
	const char *flag_name; /* and what can be asked for; NULL: nothing */
	uint32_t flag;
	bool mode; /* it takes one */
	/* Adds what the guest has answered. */
	void (*put)(struct path_op *p, struct json_out *j, const struct agent_end *end);
};

struct path_op {
	struct op op; /* first */
	const struct path_kind *kind;
	struct buf body;
	uint32_t flags;
	uint32_t mode;
	bool started; /* stat: `stat` and `link` are filled */
	struct agent_stat stat;
	char from[PATH_MAX];
	char to[PATH_MAX];
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
	files_put_name(j, "path", p->from, strlen(p->from));
	files_put_stat(j, &st);
	if (p->stat.link_len)
		files_put_name(j, "link_target", p->link, p->stat.link_len);
}

static void mkdir_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	files_put_name(j, "path", p->from, strlen(p->from));
	json_put_bool(j, "created", end->bytes > 0);
}

static void remove_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	(void)end; /* it is one */
	files_put_name(j, "path", p->from, strlen(p->from));
	json_put_uint(j, "removed", 1);
}

static void rename_put(struct path_op *p, struct json_out *j, const struct agent_end *end)
{
	(void)end; /* it is one */
	files_put_name(j, "from", p->from, strlen(p->from));
	files_put_name(j, "to", p->to, strlen(p->to));
}

static const struct path_kind stat_kind = {
    .op = AGENT_PATH_STAT,
    .from = "path",
    .flag_name = "follow",
    .flag = AGENT_PATH_FOLLOW,
    .put = stat_put,
};
static const struct path_kind mkdir_kind = {
    .op = AGENT_PATH_MKDIR,
    .from = "path",
    .flag_name = "parents",
    .flag = AGENT_PATH_PARENTS,
    .mode = true,
    .put = mkdir_put,
};
static const struct path_kind remove_kind = {
    .op = AGENT_PATH_REMOVE,
    .from = "path",
    .put = remove_put,
};
static const struct path_kind rename_kind = {
    .op = AGENT_PATH_RENAME,
    .from = "from",
    .to = "to",
    .flag_name = "overwrite",
    .flag = AGENT_PATH_OVERWRITE,
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

/* Nothing was answered yet: the request as a whole fails. */
static void path_refuse(struct path_op *p, enum api_error e, const char *message)
{
	if (p->op.conn)
		conn_fail(p->op.conn, e, message);
	op_free(&p->op);
}

static void path_send(struct path_op *p)
{
	struct agent_path head = {
	    .op = p->kind->op,
	    .flags = p->flags,
	    .mode = p->mode,
	    .path_len = (uint32_t)strlen(p->from),
	    .other_len = (uint32_t)strlen(p->to),
	};
	uint8_t request[sizeof(head) + 2 * PATH_MAX];
	int rc;

	memcpy(request, &head, sizeof(head));
	memcpy(request + sizeof(head), p->from, head.path_len);
	memcpy(request + sizeof(head) + head.path_len, p->to, head.other_len);
	rc = agent_chan_open(p->op.s->link, &p->op.chan, &path_chan_ops, AGENT_PATH, request,
	    sizeof(head) + head.path_len + head.other_len);
	if (rc < 0) {
		files_refuse(p->op.conn, rc);
		op_free(&p->op);
	}
}

/* ---- requests ---- */

/* Checks what was given; asks the guest, or answers. */
static void path_begin(struct path_op *p)
{
	const char *const names[] = {p->kind->from, p->kind->to};
	char *const paths[] = {p->from, p->to};
	char why[96];

	for (int i = 0; i < 2 && names[i]; i++) {
		const char *fault = *paths[i] ? files_check_path(paths[i]) : "is missing";

		if (!fault)
			continue;
		(void)snprintf(why, sizeof(why), "\"%s\" %s", names[i], fault);
		path_refuse(p, API_INVALID_PATH, why);
		return;
	}
	path_send(p);
}

/* A member of the body as a path. 0, or -EINVAL with *err. */
static int path_take_member(const char *text, const char *name, char to[PATH_MAX], struct err *err)
{
	if (!text)
		return 0;
	if (*to)
		return err_set(err, EINVAL, "\"%s\" is given in the query and in the body", name);
	if (strlen(text) >= PATH_MAX)
		return err_set(err, EINVAL, "\"%s\" is too long", name);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

static int path_take_mode(const char *text, uint32_t *mode, struct err *err)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 8);
	if (*text < '0' || *text > '7' || *end || errno || value > 07777)
		return err_set(err, EINVAL, "\"mode\" must be an octal number in a string");
	*mode = (uint32_t)value;
	return 0;
}

static int path_take_body(struct path_op *p, const json_t *json, enum api_error *e, struct err *err)
{
	const struct path_kind *k = p->kind;
	const char *from = NULL;
	const char *to = NULL;
	const char *mode = NULL;
	bool flag = (p->flags & k->flag) != 0;
	const struct json_field fields[] = {
	    {k->from, JSON_FIELD_STRING, &from, 0, 0},
	    {k->flag_name, JSON_FIELD_BOOL, &flag, 0, 0},
	    {k->to ? k->to : "mode", JSON_FIELD_STRING, k->to ? &to : &mode, 0, 0},
	};

	if (json_take(json, fields, sizeof(fields) / sizeof(fields[0]), err) < 0)
		return -EINVAL;
	p->flags = flag ? p->flags | k->flag : p->flags & ~k->flag;
	if (k->mode && mode) {
		p->flags |= AGENT_PATH_MODE;
		if (path_take_mode(mode, &p->mode, err) < 0)
			return -EINVAL;
	}
	*e = API_INVALID_PATH;
	if (path_take_member(from, k->from, p->from, err) < 0)
		return -EINVAL;
	return path_take_member(to, k->to, p->to, err);
}

static void path_body(struct op *op, const uint8_t *bytes, size_t n)
{
	struct path_op *p = path_of(op);

	if (buf_append(&p->body, bytes, n) < 0)
		path_refuse(p, API_INTERNAL, "no memory for the request");
}

static void path_body_end(struct op *op)
{
	struct path_op *p = path_of(op);
	enum api_error e = API_INVALID_ARGUMENT;
	struct err err = {0};
	json_t *json;
	int rc;

	if (p->op.chan.link)
		return; /* has no body, and is under way */
	json = json_parse_object(buf_head(&p->body), p->body.len, &err);
	if (!json) {
		path_refuse(p, API_MALFORMED, err.text);
		return;
	}
	rc = path_take_body(p, json, &e, &err);
	json_decref(json);
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

/* What the query gives. -EINVAL after answering. */
static int path_take_query(struct path_op *p, struct conn *c, const struct http_head *h)
{
	const struct path_kind *k = p->kind;
	uint64_t mode = 0;
	bool flag = false;
	int rc = files_take_text(c, h, k->from, p->from, sizeof(p->from), API_INVALID_PATH);

	if (rc >= 0 && k->to)
		rc = files_take_text(c, h, k->to, p->to, sizeof(p->to), API_INVALID_PATH);
	if (rc >= 0 && k->flag_name)
		rc = files_take_flag(c, h, k->flag_name, &flag);
	if (rc >= 0 && k->mode)
		rc = files_take_number(c, h, "mode", 8, 0, 07777, &mode);
	if (rc < 0)
		return rc;
	p->mode = (uint32_t)mode;
	p->flags = (flag ? k->flag : 0) | (k->mode && rc > 0 ? AGENT_PATH_MODE : 0);
	return 0;
}

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
	if (path_take_query(p, c, h) < 0) {
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
