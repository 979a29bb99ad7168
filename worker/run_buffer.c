/* run_buffer: a command's output, kept and answered as one JSON object. sbx-worker. */
#include "wire/json.h"
#include "worker/conn.h"
#include "worker/run.h"

#define RUN_JSON_REST 1024U /* everything but the output */

static void buffer_data(struct run *r, unsigned int stream, const uint8_t *p, size_t n)
{
	struct run_stream *s = &r->streams[stream];
	size_t room = r->req.max_output - s->kept.len;
	size_t keep = n < room ? n : room;

	s->kept.max = r->req.max_output;
	/* What does not fit is read all the same: the command is not to hang on it. */
	if (!op_keep(&r->op, keep) || buf_append(&s->kept, p, keep) < 0 || keep < n)
		s->truncated = true;
	run_grant(r, stream, n);
}

/* How much of the output is answered as text; SIZE_MAX: none, it is binary. */
static size_t buffer_text_len(const struct run_stream *s)
{
	bool incomplete = false;
	size_t valid = utf8_valid_prefix(buf_head(&s->kept), s->kept.len, &incomplete);

	if (valid == s->kept.len)
		return valid;
	/* A character that only our own bound has cut does not make text binary. */
	return s->truncated && incomplete ? valid : SIZE_MAX;
}

/* The answer; what it is made of is freed. Returns json_out_error(). */
static int buffer_put(struct run *r, struct buf *out)
{
	static const char *const names[RUN_STREAMS] = {"stdout", "stderr"};
	static const char *const encodings[RUN_STREAMS] = {"stdout_encoding", "stderr_encoding"};
	size_t total = r->streams[0].kept.len + r->streams[1].kept.len;
	size_t text[RUN_STREAMS];
	struct json_out j;

	buf_init(out, 6 * total + RUN_JSON_REST);
	/* At the first try as large as it probably gets: memory that is never touched costs
	 * nothing. */
	(void)buf_reserve(out, total + total / 3 + RUN_JSON_REST / 2);
	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	run_put_end(r, &j);
	for (size_t i = 0; i < RUN_STREAMS; i++) {
		struct buf *kept = &r->streams[i].kept;

		text[i] = buffer_text_len(&r->streams[i]);
		if (text[i] != SIZE_MAX)
			json_put_bytes(&j, names[i], buf_head(kept), text[i]);
		else
			json_put_base64(&j, names[i], buf_head(kept), kept->len);
		buf_free(kept);
	}
	for (size_t i = 0; i < RUN_STREAMS; i++)
		json_put_string(&j, encodings[i], text[i] != SIZE_MAX ? "utf-8" : "base64");
	json_put_bool(&j, "truncated", r->streams[0].truncated || r->streams[1].truncated);
	run_put_duration(r, &j);
	json_object_end(&j);
	return json_out_error(&j);
}

/*
 * Escaped, output is up to six times as long, and the client may take its time: so the answer
 * counts in place of what it was made of. Where it is too long for that, it goes without output.
 */
static bool buffer_may_stay(struct run *r, const struct buf *out)
{
	op_forget(&r->op);
	return out->len <= CONN_OUT_KEEP || conn_keep(r->op.conn, out->len);
}

static void buffer_end(struct run *r)
{
	struct buf out;
	int rc = buffer_put(r, &out);

	if (rc == 0 && !buffer_may_stay(r, &out)) {
		buf_free(&out);
		r->streams[0].truncated = true;
		rc = buffer_put(r, &out);
	}
	if (rc == 0)
		conn_reply(r->op.conn, 200, &out);
	else
		conn_fail(r->op.conn, API_INTERNAL, "no memory for the answer");
	buf_free(&out);
	op_free(&r->op);
}

const struct run_mode run_mode_buffer = {
    .data = buffer_data,
    .end = buffer_end,
};
