/* progress_stream: how far something is, as an answer that goes on. Runs in sbxd; when sbxd dies,
 * the answer breaks off, which its client can tell from one that has ended. */
#include "supervisor/progress_stream.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/loop.h"
#include "supervisor/api_images.h"
#include "supervisor/client.h"

struct progress_stream {
	struct client_stream stream;
	struct sbxd *s;
	void (*gone)(struct sbxd *s, uint64_t ctx);
	struct ctl_progress progress;
	bool news;
	bool over;
	struct buf last; /* the last line */
	struct json_out out;
};

static int put_progress(const struct progress_stream *p, struct buf *out)
{
	struct json_out j;

	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "status", p->progress.stage);
	json_put_uint(&j, "done_bytes", p->progress.done);
	if (p->progress.total)
		json_put_uint(&j, "total_bytes", p->progress.total);
	else
		json_put_null(&j, "total_bytes");
	json_object_end(&j);
	return json_out_error(&j) ? -1 : buf_puts(out, "\n");
}

static enum stream_next fill(struct client_stream *st, struct buf *out, bool overdue)
{
	struct progress_stream *p = LOOP_OWNER(st, struct progress_stream, stream);

	if (p->over)
		return buf_append(out, buf_head(&p->last), p->last.len) < 0 ? STREAM_BROKEN
									    : STREAM_END;
	if (!p->news && !overdue)
		return STREAM_IDLE;
	p->news = false;
	return put_progress(p, out) < 0 ? STREAM_BROKEN : STREAM_IDLE;
}

static void on_gone(struct client_stream *st)
{
	struct progress_stream *p = LOOP_OWNER(st, struct progress_stream, stream);

	p->gone(p->s, progress_stream_ctx(p));
	progress_stream_free(p);
}

struct progress_stream *progress_stream_new(
    struct sbxd *s, void (*gone)(struct sbxd *s, uint64_t ctx))
{
	struct progress_stream *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->s = s;
	p->gone = gone;
	p->stream = (struct client_stream){.fill = fill, .gone = on_gone};
	buf_init(&p->last, IMAGE_JSON_MAX);
	return p;
}

uint64_t progress_stream_ctx(const struct progress_stream *p)
{
	return (uint64_t)(uintptr_t)p;
}

struct progress_stream *progress_stream_of(uint64_t ctx)
{
	return (void *)(uintptr_t)ctx;
}

void progress_stream_free(struct progress_stream *p)
{
	if (!p)
		return;
	buf_free(&p->last);
	free(p);
}

bool progress_stream_begin(
    struct progress_stream *p, struct client *c, const struct ctl_progress *now)
{
	if (now)
		p->progress = *now;
	p->news = now != NULL;
	return client_stream_begin(c, "application/x-ndjson", &p->stream);
}

void progress_stream_tell(struct progress_stream *p, const struct ctl_progress *progress)
{
	p->progress = *progress;
	p->news = true;
	client_stream_pump(&p->stream);
}

struct json_out *progress_stream_last(struct progress_stream *p)
{
	json_out_init(&p->out, &p->last);
	json_object_begin(&p->out, NULL);
	return &p->out;
}

void progress_stream_end(struct progress_stream *p)
{
	json_object_end(&p->out);
	if (json_out_error(&p->out) || buf_puts(&p->last, "\n") < 0)
		buf_clear(&p->last);
	p->over = true;
	client_stream_end(&p->stream);
}

void progress_stream_fail(struct progress_stream *p, enum api_error error, const char *text)
{
	const struct api_error_info *info = api_error_info(error);
	struct json_out *j = progress_stream_last(p);

	json_object_begin(j, "error");
	json_put_string(j, "message", text);
	json_put_string(j, "type", info->type);
	json_put_string(j, "code", info->code);
	json_put_string(j, "reason", info->reason);
	json_object_end(j);
	progress_stream_end(p);
}
