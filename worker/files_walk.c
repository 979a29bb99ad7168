/*
 * files_walk: records of sbx-files become one JSON object. sbx-worker. If we die here the box dies
 * with us, and sbxd answers the client.
 */
#include "worker/files_walk.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/agent.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"

#define WALK_PIECE 16384U /* is looked at before the client is looked at again */
/* What is sent at once, what one record becomes, and the lists at the end. */
#define WALK_OUT_MAX (WALK_WHOLE + 128U * 1024U + 2U * WALK_LIST_MAX)

static struct walk *walk_of(struct op *op)
{
	return (struct walk *)(void *)op;
}

static struct walk *walk_of_chan(struct agent_chan *c)
{
	return walk_of(LOOP_OWNER(c, struct op, chan));
}

/* ---- lists that come at the end ---- */

static void list_init(struct walk_list *l)
{
	buf_init(&l->text, WALK_LIST_MAX);
	json_out_init(&l->json, &l->text);
}

bool walk_list_begin(struct walk_list *l)
{
	/* The longest name, and its base64, with what stands around them. */
	if (json_out_error(&l->json) != 0 || buf_room(&l->text) < 8U * ENTRY_PATH_MAX + 1024U)
		return false;
	json_object_begin(&l->json, NULL);
	return true;
}

void walk_list_end(struct walk_list *l)
{
	json_object_end(&l->json);
}

/* The list as a member. */
static void list_put(struct json_out *j, const char *key, const struct walk_list *l)
{
	if (l->text.len == 0)
		return;
	json_array_begin(j, key);
	json_put_written(j, NULL, buf_head(&l->text), l->text.len);
	json_array_end(j);
}

/* ---- the answer ---- */

/* Sends what there is of the answer. */
static void walk_send(struct walk *w)
{
	if (!w->begun)
		conn_begin(w->op.conn, "application/json", UINT64_MAX);
	w->begun = true;
	conn_put(w->op.conn, buf_head(&w->out), w->out.len);
	buf_clear(&w->out);
}

/* The answer is another one, or ends where it is. The client hears no more of the operation. */
static void walk_fail(struct walk *w, enum api_error e, const char *message)
{
	if (!w->op.conn)
		return;
	if (w->begun)
		conn_cut(w->op.conn);
	else
		conn_fail(w->op.conn, e, message);
}

static void walk_finish(struct walk *w)
{
	if (w->cls->array)
		json_array_end(&w->json);
	w->cls->end(w, &w->done);
	json_object_end(&w->json);
	if (json_out_error(&w->json) != 0) {
		walk_fail(w, API_INTERNAL, "no memory for the answer");
	} else if (!w->begun) {
		conn_reply(w->op.conn, 200, &w->out);
	} else {
		walk_send(w);
		conn_end(w->op.conn);
	}
}

void walk_truncate(struct walk *w)
{
	w->done.flags |= ENTRY_DONE_TRUNCATED;
	walk_finish(w);
	op_close_chan(&w->op);
}

static void put_problem(struct walk *w, const struct entry *e)
{
	struct json_out *j = &w->problems.json;

	if (!walk_list_begin(&w->problems))
		return; /* it is still counted */
	files_put_name(j, "path", e->path, e->path_len);
	json_put_string(j, "reason", agent_code_name(e->u.problem.code));
	json_put_bytes(j, "message", e->text, e->text_len);
	walk_list_end(&w->problems);
}

void walk_end_search(struct walk *w, const struct entry_done *done)
{
	list_put(&w->json, "encoded", &w->encoded);
	json_put_bool(&w->json, "truncated", (done->flags & ENTRY_DONE_TRUNCATED) != 0);
	list_put(&w->json, "errors", &w->problems);
	if (done->count > 0)
		json_put_uint(&w->json, "error_count", done->count);
}

/* ---- records ---- */

/* An entry_fn. 1: nobody wants to hear more. */
static int walk_take(void *ctx, const struct entry *e)
{
	struct walk *w = ctx;

	if (w->complete)
		return -EBADMSG;
	if (e->type == ENTRY_DONE) {
		w->complete = true;
		w->done = e->u.done;
		return 0;
	}
	if (e->type == ENTRY_PROBLEM && w->cls->array) {
		put_problem(w, e);
		return 0;
	}
	if (e->type != w->cls->type)
		return -EBADMSG;
	w->cls->put(w, e);
	w->count++;
	if (!w->op.conn)
		return 1;
	if (json_out_error(&w->json) != 0)
		return -ENOMEM;
	if (w->out.len >= WALK_WHOLE)
		walk_send(w);
	return 0;
}

/* Takes what the client can be told now of n bytes. How many that were; all, if there is nobody to
 * be told. */
static size_t walk_feed(struct walk *w, const uint8_t *p, size_t n)
{
	size_t off = 0;

	while (off < n && w->op.conn && conn_queued(w->op.conn) <= CONN_OUT_HIGH) {
		size_t piece = n - off < WALK_PIECE ? n - off : WALK_PIECE;
		int rc = entry_feed(&w->reader, p + off, piece, walk_take, w);

		off += piece;
		if (rc >= 0)
			continue;
		walk_fail(w, rc == -EBADMSG ? API_IO : API_INTERNAL,
		    rc == -EBADMSG ? "the file helper's answer makes no sense"
				   : "no memory for the answer");
		op_close_chan(&w->op);
	}
	if (!w->op.conn)
		off = n;
	agent_chan_grant(&w->op.chan, AGENT_STDOUT, off);
	return off;
}

/* Everything that came was looked at: the answer is complete, or not. */
static void walk_over(struct walk *w)
{
	const char *why = "the file helper's answer is not complete";
	enum api_error e = files_helper_result(&w->helper, &w->op, &w->end, &why);

	if (e == API_OK && (!w->complete || w->reader.len > 0))
		e = API_IO;
	if (e != API_OK)
		walk_fail(w, e, why);
	else if (w->op.conn)
		walk_finish(w);
	op_free(&w->op);
}

/* Goes on with what waits. */
static void walk_pump(struct walk *w)
{
	if (w->kept.len)
		buf_consume(&w->kept, walk_feed(w, buf_head(&w->kept), w->kept.len));
	buf_trim(&w->kept, WALK_PIECE);
	if (w->over && w->kept.len == 0)
		walk_over(w);
}

static size_t walk_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct walk *w = walk_of_chan(c);
	size_t used = 0;

	if (stream == AGENT_STDERR) {
		files_helper_keep(&w->helper, &w->op, p, n);
		return n;
	}
	w->op.s->report->work.bytes_out += n;
	if (w->kept.len == 0)
		used = walk_feed(w, p, n);
	if (used < n && buf_append(&w->kept, p + used, n - used) < 0) {
		walk_fail(w, API_INTERNAL, "no memory for the answer");
		op_close_chan(&w->op);
	}
	return n;
}

static void walk_end(struct agent_chan *c, const struct agent_end *end)
{
	struct walk *w = walk_of_chan(c);

	w->over = true;
	w->end = *end;
	walk_pump(w);
}

static void walk_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct walk *w = walk_of_chan(c);

	walk_fail(w, files_error(code), text);
	op_free(&w->op);
}

static const struct agent_chan_ops walk_chan_ops = {
    .data = walk_data,
    .end = walk_end,
    .error = walk_error,
};

/* ---- the operation ---- */

/* Comes also when nothing waits, and when the answer is still being put together. */
static void walk_drained(struct op *op)
{
	walk_pump(walk_of(op));
}

static void walk_abandon(struct op *op)
{
	buf_free(&walk_of(op)->kept);
	op_close_chan(op);
}

static void walk_free(struct op *op)
{
	struct walk *w = walk_of(op);

	buf_free(&w->out);
	buf_free(&w->kept);
	buf_free(&w->problems.text);
	buf_free(&w->encoded.text);
	free(w);
}

static const struct op_class walk_op_class = {
    .drained = walk_drained,
    .abandon = walk_abandon,
    .free = walk_free,
};

struct walk *walk_new(struct conn *c, const struct walk_class *cls)
{
	struct walk *w = malloc(sizeof(*w));

	if (!w) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return NULL;
	}
	*w = (struct walk){.cls = cls};
	op_init(&w->op, &walk_op_class, c);
	buf_init(&w->out, WALK_OUT_MAX);
	buf_init(&w->kept, AGENT_WINDOW);
	json_out_init(&w->json, &w->out);
	list_init(&w->problems);
	list_init(&w->encoded);
	json_object_begin(&w->json, NULL);
	return w;
}

void walk_start(struct walk *w, const char *const argv[])
{
	int rc;

	if (w->cls->array)
		json_array_begin(&w->json, w->cls->array);
	rc = files_helper_open(&w->op, &walk_chan_ops, argv, AGENT_EXEC_NO_STDIN);
	if (rc < 0) {
		files_refuse(w->op.conn, rc);
		op_free(&w->op);
	}
}
