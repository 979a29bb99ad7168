/*
 * client_stream: an answer that goes on until its client leaves or there is no more to say. Runs in
 * sbxd; when sbxd dies the connection ends.
 *
 * The next piece is asked for when the socket has taken the last one, so a client that reads slowly
 * costs some KiB and nobody's time.
 */
#include <errno.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "supervisor/client_int.h"

#define STREAM_SILENCE (15 * NS_PER_S) /* then something is said, so that both ends know */
#define STREAM_LOW 4096U	       /* with less than this to send the next piece is asked for */
#define STREAM_PIECE_MAX 16384U

static void on_stream_timer(struct loop *l, struct loop_timer *t);

static void set_stream_timer(struct client *c, uint64_t span)
{
	if (loop_timer_set(
		client_loop(c), &c->timer, loop_now(client_loop(c)) + span, on_stream_timer) < 0)
		log_warn("no memory for a timer: a stream is not timed");
}

static int put_head(struct client *c, const char *content_type)
{
	return http_put_reply(&c->out, &(struct http_reply){
					   .status = 200,
					   .content_type = content_type,
					   .content_length = UINT64_MAX,
					   .until_close = !c->stream->chunked,
					   .keep_alive = c->keep_alive,
					   .request_id = c->request_id,
					   .traceparent = c->traceparent,
					   .extra = "Cache-Control: no-store\r\n",
				       });
}

/* Asks for the next piece and puts it into `out`. */
static enum stream_next next_piece(struct client *c, bool overdue)
{
	struct client_stream *st = c->stream;
	enum stream_next next;
	struct buf piece;
	int rc = 0;

	buf_init(&piece, STREAM_PIECE_MAX);
	next = st->fill(st, &piece, overdue);
	if (piece.len > 0 && st->chunked)
		rc = http_put_chunk(&c->out, buf_head(&piece), piece.len);
	else if (piece.len > 0)
		rc = buf_append(&c->out, buf_head(&piece), piece.len);
	buf_free(&piece);
	return rc < 0 ? STREAM_BROKEN : next;
}

/* True when the socket took all there was. */
static bool send_piece(struct client *c)
{
	struct client_stream *st = c->stream;
	size_t before = c->out.len;
	bool was_blocked = st->blocked;
	ssize_t n = 0;

	while (c->out.len > 0 && n >= 0)
		n = buf_send(&c->out, c->fd);
	st->blocked = n < 0;
	if (n < 0 && n != -EAGAIN && n != -EINTR)
		(void)shutdown(c->fd, SHUT_RDWR); /* it reads no more: EPOLLHUP ends it */
	else if (st->blocked && (!was_blocked || c->out.len < before))
		set_stream_timer(c, CLIENT_WRITE_TIME);
	else if (!st->blocked && (was_blocked || before > 0 || c->timer.pos == 0))
		set_stream_timer(c, STREAM_SILENCE);
	return !st->blocked;
}

/* Says what there is to say now. Never closes the client; only STREAM_END ends the stream. */
static enum stream_next go_on(struct client *c, bool overdue)
{
	enum stream_next next = STREAM_MORE;
	bool all_sent;

	if (c->out.len < STREAM_LOW)
		next = next_piece(c, overdue);
	if (next == STREAM_BROKEN)
		(void)shutdown(c->fd, SHUT_RDWR);
	if (next == STREAM_END)
		return next;
	all_sent = send_piece(c);
	/* What the client sends meanwhile can wait; that it leaves is told. */
	(void)loop_mod(client_loop(c), &c->watch,
	    client_leave_events(c) | (all_sent && next == STREAM_IDLE ? 0 : EPOLLOUT));
	return next;
}

static void end_stream(struct client *c)
{
	if (c->stream->chunked && http_put_chunk(&c->out, NULL, 0) < 0)
		c->keep_alive = false;
	client_drop_stream(c);
	client_answered(c);
}

static void on_stream_timer(struct loop *l, struct loop_timer *t)
{
	struct client *c = LOOP_OWNER(t, struct client, timer);
	struct sbxd *s = c->cs->s;

	(void)l;
	if (c->stream->blocked)
		client_close(c); /* it takes nothing */
	else if (go_on(c, true) == STREAM_END)
		end_stream(c);
	sbxd_settle(s);
}

bool client_stream_begin(struct client *c, const char *content_type, struct client_stream *st)
{
	int rc;

	st->client = c;
	st->chunked = http_in_head(c->http)->takes_chunks;
	st->blocked = false;
	c->stream = st;
	rc = put_head(c, content_type);
	if (rc < 0 || !st->chunked)
		c->keep_alive = false;
	if (rc < 0 || c->head_request) {
		client_drop_stream(c);
		client_answered(c);
		return false;
	}
	if (go_on(c, false) == STREAM_END) {
		end_stream(c);
		return false;
	}
	clients_give_reader(c->cs, &c->http);
	c->state = CLIENT_STREAMING;
	return true;
}

void client_stream_pump(struct client_stream *st)
{
	/* With EPOLLOUT awaited it goes on by itself. */
	if (!(st->client->watch.events & EPOLLOUT))
		(void)go_on(st->client, false);
}

void client_stream_end(struct client_stream *st)
{
	struct client *c = st->client;

	if (!(c->watch.events & EPOLLOUT) && go_on(c, false) == STREAM_END)
		end_stream(c);
}

void client_stream_ready(struct client *c)
{
	if (go_on(c, false) == STREAM_END)
		end_stream(c);
}

void client_stream_cut(struct client *c)
{
	if (c->stream->chunked && http_put_chunk(&c->out, NULL, 0) == 0)
		(void)send_piece(c); /* best effort: it is closed in any case */
}

void client_drop_stream(struct client *c)
{
	struct client_stream *st = c->stream;

	c->stream = NULL;
	if (st)
		st->gone(st);
}
