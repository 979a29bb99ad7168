/*
 * api_events: GET /v1/events: the flight recorder as a stream of server-sent events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html). Runs in sbxd; when it dies its
 * streams end, and the ring has what they would have said.
 *
 * A stream is a place in the ring and holds no record: what its client is too slow for is
 * overwritten, and it is told how much that was.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"
#include "shm/ring.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "wire/json.h"

#define EVENTS_PIECE 4096U /* bytes that are said at a time, and one message more */
#define EVENTS_SCAN 512	   /* records that are looked at for it */
#define EVENTS_RETRY_AFTER 5

struct event_stream {
	struct client_stream stream;
	LIST_ENTRY(event_stream) link; /* of s->event_streams, if it follows */
	const struct sbxd *s;
	uid_t uid;
	bool admin;
	bool follows;
	bool anew;     /* the client's place was in an older ring than this one */
	bool placed;   /* the client knows where it is */
	uint64_t next; /* the record to be looked at */
	uint64_t last; /* the last one to be said */
	uint64_t lost; /* overwritten, and the client was not yet told */
};

static bool may_see(const struct event_stream *e, const struct shm_event *ev)
{
	return e->admin || (ev->owner_uid == e->uid && ev->token[0] != '\0');
}

static int put_record(struct buf *out, const struct shm_event *ev)
{
	struct event_view view;
	struct json_out j;

	event_describe(ev, &view);
	if (buf_printf(out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)ev->seq,
		ring_kind_name(ev->kind)) < 0)
		return -ENOMEM;
	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	for (size_t i = 0; i < view.count; i++) {
		const struct event_field *f = &view.fields[i];

		if (f->text)
			json_put_string(&j, f->name, f->text);
		else
			json_put_int(&j, f->name, f->number);
	}
	json_object_end(&j);
	return json_out_error(&j) ? -ENOMEM : buf_puts(out, "\n\n");
}

/* What comes before record `seq` was overwritten, or was never in this ring. */
static int put_lost(struct event_stream *e, struct buf *out, uint64_t seq)
{
	bool anew = e->anew;
	uint64_t lost = e->lost;

	if (!anew && lost == 0)
		return 0;
	e->anew = false;
	e->lost = 0;
	if (anew)
		return buf_puts(out, "event: lost\ndata: {\"kind\":\"lost\",\"reason\":\"the "
				     "recorder began anew\"}\n\n");
	return buf_printf(out,
	    "id: %llu\nevent: lost\ndata: {\"kind\":\"lost\",\"count\":%llu,"
	    "\"reason\":\"overwritten before it was read\"}\n\n",
	    (unsigned long long)seq - 1, (unsigned long long)lost);
}

/* Where the client is, for when it comes again: an id without data is remembered and not
 * dispatched. */
static int put_place(struct event_stream *e, struct buf *out, const char *comment)
{
	e->placed = true;
	return buf_printf(out, "%sid: %llu\n\n", comment, (unsigned long long)e->next - 1);
}

static enum stream_next fill(struct client_stream *st, struct buf *out, bool overdue)
{
	struct event_stream *e = LOOP_OWNER(st, struct event_stream, stream);
	struct shm_event ev;
	int rc = e->placed ? 0 : put_place(e, out, "");

	for (int i = 0; rc == 0 && i < EVENTS_SCAN && out->len < EVENTS_PIECE; i++) {
		if (e->next > e->last)
			return STREAM_END;
		if (ring_follow(&e->s->seg, &e->next, &ev, &e->lost) == 0) {
			if (overdue && out->len == 0)
				rc = put_place(e, out, ": keep-alive\n");
			return rc == 0 ? STREAM_IDLE : STREAM_BROKEN;
		}
		rc = put_lost(e, out, ev.seq);
		if (rc == 0 && ev.seq <= e->last && may_see(e, &ev))
			rc = put_record(out, &ev);
	}
	return rc == 0 ? STREAM_MORE : STREAM_BROKEN;
}

static void gone(struct client_stream *st)
{
	struct event_stream *e = LOOP_OWNER(st, struct event_stream, stream);

	if (e->follows)
		LIST_REMOVE(e, link);
	free(e);
}

void events_pump(struct sbxd *s)
{
	struct event_stream *e;
	uint64_t newest;

	if (LIST_EMPTY(&s->event_streams))
		return;
	newest = ring_newest(&s->seg);
	if (newest == s->events_pumped)
		return;
	s->events_pumped = newest;
	LIST_FOREACH (e, &s->event_streams, link)
		client_stream_pump(&e->stream);
}

/* ---- the request ---- */

struct events_args {
	bool has_since;
	uint64_t since;
	bool follow;
};

static int parse_seq(const char *text, uint64_t *out)
{
	char *end;
	uint64_t seq;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	seq = strtoull(text, &end, 10);
	if (errno || *end)
		return -EINVAL;
	*out = seq;
	return 0;
}

/* The header is a client that comes again, with the query that it came with first: it counts. */
static int parse_args(const struct http_head *head, struct events_args *a, struct err *err)
{
	int rc = http_query_number(head->query, "since", 10, 0, UINT64_MAX, &a->since, err);

	if (rc < 0)
		return rc;
	a->has_since = rc > 0;
	if (head->last_event_id[0]) {
		if (parse_seq(head->last_event_id, &a->since) < 0)
			return err_set(
			    err, EINVAL, "Last-Event-ID: the number of a record is expected");
		a->has_since = true;
	}
	a->follow = true;
	return http_query_flag(head->query, "follow", &a->follow, err) < 0 ? -EINVAL : 0;
}

/* Each stream is told of every record at once, so that they are counted. */
static bool uid_may_follow(const struct sbxd *s, uid_t uid)
{
	const struct event_stream *e;
	uint32_t streams = 0;

	LIST_FOREACH (e, &s->event_streams, link)
		streams += e->uid == uid;
	return streams < s->config.limits.event_streams;
}

static struct event_stream *event_stream_new(
    const struct sbxd *s, const struct client *c, const struct events_args *a)
{
	struct event_stream *e = calloc(1, sizeof(*e));
	uint64_t newest = ring_newest(&s->seg);

	if (!e)
		return NULL;
	*e = (struct event_stream){
	    .stream = {.fill = fill, .gone = gone},
	    .s = s,
	    .uid = client_uid(c),
	    .admin = client_is_admin(c),
	    .follows = a->follow,
	    .placed = a->has_since,
	    .anew = a->has_since && a->since > newest,
	    .next = a->has_since ? a->since + 1 : newest + 1,
	    .last = a->follow ? UINT64_MAX : newest,
	};
	if (e->anew || (a->has_since && a->since == 0)) /* all there is: that misses nothing */
		e->next = ring_oldest(&s->seg);
	return e;
}

void api_events(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct events_args args = {0};
	struct event_stream *e;
	struct err err = {0};

	if (parse_args(call->head, &args, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
		return;
	}
	if (args.follow && !uid_may_follow(s, client_uid(c))) {
		char text[80];

		(void)snprintf(text, sizeof(text),
		    "uid %u has %u event streams, and may have no more",
		    (unsigned int)client_uid(c), s->config.limits.event_streams);
		client_reply_error_more(c, API_TOO_MANY, text,
		    &(struct api_error_more){.retry_after_seconds = EVENTS_RETRY_AFTER});
		return;
	}
	e = event_stream_new(s, c, &args);
	if (!e) {
		client_reply_error(c, API_INTERNAL, "no memory for a stream");
		return;
	}
	if (e->follows)
		LIST_INSERT_HEAD(&s->event_streams, e, link);
	(void)client_stream_begin(c, "text/event-stream", &e->stream);
}
