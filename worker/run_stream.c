/*
 * run_stream: a command's output as one JSON object a line, as it comes. sbx-worker.
 *
 * Output that the client is too slow for waits in `kept`, at most the stream's window; the guest
 * gets new credit only for what became a line.
 */
#include <string.h>

#include "wire/json.h"
#include "worker/conn.h"
#include "worker/run.h"

#define STREAM_PIECE (48U * 1024U) /* of output in one line */
#define STREAM_LINE_MAX (6U * STREAM_PIECE + 256U)

static const char *const stream_names[RUN_STREAMS] = {"stdout", "stderr"};

static void stream_begin(struct run *r)
{
	if (r->begun)
		return;
	r->begun = true;
	conn_begin(r->op.conn, "application/x-ndjson", UINT64_MAX);
}

/* Sends what stands in `line`, an object, as one chunk. */
static void stream_send_line(struct run *r, const struct json_out *j)
{
	if (json_out_error(j) == 0 && buf_puts(&r->line, "\n") == 0)
		conn_put(r->op.conn, buf_head(&r->line), r->line.len);
	buf_clear(&r->line);
}

static void stream_put_piece(
    struct run *r, unsigned int stream, const uint8_t *p, size_t n, bool text)
{
	struct json_out j;

	r->line.max = STREAM_LINE_MAX;
	json_out_init(&j, &r->line);
	json_object_begin(&j, NULL);
	json_put_string(&j, "stream", stream_names[stream]);
	if (text)
		json_put_bytes(&j, "data", p, n);
	else
		json_put_base64(&j, "data", p, n);
	json_put_string(&j, "encoding", text ? "utf-8" : "base64");
	json_object_end(&j);
	stream_send_line(r, &j);
	run_grant(r, stream, n);
}

/* Makes lines of p. Returns how much; the rest waits for more output, or for the client. */
static size_t stream_emit(struct run *r, unsigned int stream, const uint8_t *p, size_t n)
{
	size_t off = 0;

	while (off < n && conn_queued(r->op.conn) < CONN_OUT_HIGH) {
		size_t piece = n - off < STREAM_PIECE ? n - off : STREAM_PIECE;
		bool incomplete = false;
		size_t valid = utf8_valid_prefix(p + off, piece, &incomplete);

		if (valid == 0 && incomplete && !r->over)
			break; /* the beginning of a character */
		stream_put_piece(r, stream, p + off, valid ? valid : piece, valid != 0);
		off += valid ? valid : piece;
	}
	return off;
}

static void stream_last_line(struct run *r)
{
	struct json_out j;

	r->line.max = STREAM_LINE_MAX;
	json_out_init(&j, &r->line);
	json_object_begin(&j, NULL);
	run_put_end(r, &j);
	json_put_bool(&j, "truncated", false);
	run_put_duration(r, &j);
	json_object_end(&j);
	stream_send_line(r, &j);
	conn_end(r->op.conn);
	op_free(&r->op);
}

/* Goes on with what waits; ends the answer when nothing is left to come. */
static void stream_pump(struct run *r)
{
	size_t left = 0;

	for (unsigned int i = 0; i < RUN_STREAMS; i++) {
		struct buf *kept = &r->streams[i].kept;

		if (kept->len)
			buf_consume(kept, stream_emit(r, i, buf_head(kept), kept->len));
		buf_trim(kept, STREAM_PIECE);
		left += kept->len;
	}
	if (r->over && left == 0)
		stream_last_line(r);
}

static void stream_data(struct run *r, unsigned int stream, const uint8_t *p, size_t n)
{
	struct buf *kept = &r->streams[stream].kept;
	size_t used = 0;

	stream_begin(r);
	if (kept->len == 0)
		used = stream_emit(r, stream, p, n);
	if (used == n)
		return;
	kept->max = AGENT_WINDOW;
	if (buf_append(kept, p + used, n - used) < 0) {
		conn_cut(r->op.conn); /* no memory: the client sees that its answer is cut */
		r->op.cls->abandon(&r->op);
		return;
	}
	if (used == 0)
		stream_pump(r);
}

static void stream_end(struct run *r)
{
	stream_begin(r);
	stream_pump(r);
}

static void stream_lost(struct run *r, enum api_error e, const char *message)
{
	const struct api_error_info *info = api_error_info(e);
	struct json_out j;

	r->line.max = STREAM_LINE_MAX;
	json_out_init(&j, &r->line);
	json_object_begin(&j, NULL);
	json_object_begin(&j, "error");
	json_put_string(&j, "message", message);
	json_put_string(&j, "type", info->type);
	json_put_string(&j, "code", info->code);
	json_put_string(&j, "reason", info->reason);
	json_put_string(&j, "request_id", r->op.conn->request_id);
	json_object_end(&j);
	json_object_end(&j);
	stream_send_line(r, &j);
}

const struct run_mode run_mode_stream = {
    .started = stream_begin,
    .data = stream_data,
    .drained = stream_pump,
    .end = stream_end,
    .lost = stream_lost,
};
