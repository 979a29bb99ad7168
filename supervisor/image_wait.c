/* image_wait: acquires whose image is not there yet. Runs in sbxd; when it dies, their clients'
 * connections end. */
#include "supervisor/image_wait.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fault.h"
#include "lib/log.h"
#include "supervisor/api_acquire.h"
#include "supervisor/api_make.h"
#include "supervisor/client.h"
#include "supervisor/image_job.h"
#include "supervisor/images.h"
#include "supervisor/making.h"
#include "supervisor/sbxd.h"

struct image_wait_entry {
	LIST_ENTRY(image_wait_entry) link;
	struct sbxd *s;
	struct pool_request request;
	json_t *body; /* has the texts of request */
	uint64_t since;
	uint64_t limit;
	struct loop_timer timer;
};

static struct image_wait_entry *find(const struct sbxd *s, uint64_t req)
{
	struct image_wait_entry *w;

	LIST_FOREACH (w, &s->image_waits, link) {
		if (w->request.req == req)
			break;
	}
	return w;
}

static void entry_free(struct image_wait_entry *w)
{
	LIST_REMOVE(w, link);
	loop_timer_clear(w->s->loop, &w->timer);
	json_decref(w->body);
	free(w);
}

/* As the pool would. */
static void refuse(struct sbxd *s, uint64_t req, enum api_error error, const char *text)
{
	struct pool_action a = {.kind = POOL_REFUSE, .req = req, .error = error};
	struct making *m = making_by_req(s, req);
	struct client *c = client_by_req(s->clients, req);

	(void)strlcpy(a.text, text, sizeof(a.text));
	if (m)
		api_not_made(s, m, &a);
	else if (c)
		api_refused(s, c, &a);
}

static void end(struct image_wait_entry *w, enum api_error error, const char *text)
{
	struct sbxd *s = w->s;
	uint64_t req = w->request.req;

	entry_free(w);
	refuse(s, req, error, text);
}

/* The time that it has waited here counts. */
static void go_on(struct image_wait_entry *w)
{
	struct sbxd *s = w->s;
	uint64_t waited = loop_now(s->loop) - w->since;

	if (w->limit)
		w->request.wait_limit = waited < w->limit ? w->limit - waited : 1;
	FAULT_POINT("sbxd.image.there");
	pool_acquire(s->pool, loop_now(s->loop), &w->request); /* it copies the texts */
	entry_free(w);
}

static void on_ready(
    struct sbxd *s, uint64_t req, int prepared, const struct ctl_done *done, enum api_error error)
{
	struct image_wait_entry *w = find(s, req);

	if (!w)
		return; /* who waited has left */
	if (prepared >= 0)
		go_on(w);
	else
		end(w, error, done->text);
}

static void on_timer(struct loop *l, struct loop_timer *t)
{
	struct image_wait_entry *w = LOOP_OWNER(t, struct image_wait_entry, timer);
	struct sbxd *s = w->s;
	struct ctl_progress p;
	char text[200];

	(void)l;
	if (image_job_progress(s, w->request.spec.image, &p))
		(void)snprintf(text, sizeof(text),
		    "the image is still being pulled (%s, %llu of %llu MiB): that goes on, ask "
		    "again",
		    p.stage, (unsigned long long)(p.done >> 20),
		    (unsigned long long)(p.total >> 20));
	else
		(void)snprintf(text, sizeof(text), "the image was not prepared in time");
	end(w, API_TIMEOUT, text);
	sbxd_settle(s);
}

/* Whether the pool can decide by what there is: then no image is needed, or none of a box that is
 * refused. */
static bool is_decided(const struct sbxd *s, const struct pool_request *q)
{
	const struct pool_box *b = pool_box_find(s->pool, q->uid, q->id.token);

	if (s->shutting_down || s->leaving || image_is_ready(s, q->spec.image))
		return true;
	if (q->name && *q->name && pool_box_named(s->pool, q->uid, q->name))
		return true;
	/* A warm one that is of another image makes room for a new one. */
	return b && (b->state != SLOT_WARM || !strcmp(b->spec.image, q->spec.image));
}

void image_wait_acquire(struct sbxd *s, const struct pool_request *q, json_t *body)
{
	struct image_wait_entry *w;

	if (is_decided(s, q)) {
		pool_acquire(s->pool, loop_now(s->loop), q);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		refuse(s, q->req, API_INTERNAL, "out of memory");
		return;
	}
	w->s = s;
	w->request = *q;
	w->body = json_incref(body);
	w->since = loop_now(s->loop);
	w->limit = q->wait_limit ? q->wait_limit : s->config.acquire_timeout_ns;
	LIST_INSERT_HEAD(&s->image_waits, w, link);
	if (w->limit &&
	    loop_timer_set(s->loop, &w->timer, loop_now(s->loop) + w->limit, on_timer) < 0)
		log_warn(
		    "no memory for a timer: the wait for image %s is not timed", q->spec.image);
	image_need(s, q->spec.image, on_ready, q->req);
}

void image_wait_gone(struct sbxd *s, uint64_t req)
{
	struct image_wait_entry *w = find(s, req);

	if (w)
		entry_free(w);
}

void image_waits_end(struct sbxd *s)
{
	struct image_wait_entry *w;

	while ((w = LIST_FIRST(&s->image_waits)))
		end(w, API_SHUTTING_DOWN, "sbxd is shutting down");
}

void image_waits_free(struct sbxd *s)
{
	struct image_wait_entry *w;

	while ((w = LIST_FIRST(&s->image_waits)))
		entry_free(w);
}
