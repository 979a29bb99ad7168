/* api_acquire: POST /v1/acquire, and the answer when the pool has decided. Runs in sbxd; holds no
 * state. */
#include "supervisor/api_acquire.h"

#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "lib/digest.h"
#include "shm/hist.h"
#include "shm/slot.h"
#include "supervisor/api_box.h"
#include "supervisor/api_spec.h"
#include "supervisor/client.h"
#include "supervisor/image_wait.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define ACQUIRE_JSON_MAX 16384U
#define SECONDS_MAX 31536000.0 /* a year */

/* The request as the client wrote it. */
struct acquire_args {
	const char *user;
	const char *thread;
	const char *image;
	double lease_seconds;
	double wait_seconds;
	bool release_on_disconnect;
};

static int parse_args(json_t *body, struct acquire_args *a, struct err *err)
{
	const struct json_field fields[] = {
	    {.name = "user_id", .type = JSON_FIELD_STRING, .out = &a->user},
	    {.name = "thread_id", .type = JSON_FIELD_STRING, .out = &a->thread},
	    {.name = "image", .type = JSON_FIELD_STRING, .out = &a->image},
	    {.name = "lease_seconds",
		.type = JSON_FIELD_NUMBER,
		.out = &a->lease_seconds,
		.min = 0.001,
		.max = SECONDS_MAX},
	    {.name = "wait_seconds",
		.type = JSON_FIELD_NUMBER,
		.out = &a->wait_seconds,
		.min = 0.001,
		.max = SECONDS_MAX},
	    {.name = "release_on_disconnect",
		.type = JSON_FIELD_BOOL,
		.out = &a->release_on_disconnect},
	};

	return json_take(body, fields, sizeof(fields) / sizeof(fields[0]), err);
}

/* Without a thread the box belongs to this one acquire: its token is drawn, not derived. */
static int choose_identity(struct sbxd *s, const struct acquire_args *a, struct identity *id)
{
	uint8_t random[8];

	if (a->thread)
		return identity_scope(a->user, a->thread, id);
	if (digest_draw(&s->random, random, sizeof(random)) < 0 ||
	    digest_draw(&s->random, id->digest, sizeof(id->digest)) < 0)
		return -EIO;
	digest_hex(random, sizeof(random), id->token);
	return 0;
}

/* body: what the texts of *a are part of. */
static void acquire(struct sbxd *s, struct client *c, const struct acquire_args *a, json_t *body)
{
	struct pool_request r = {
	    .req = client_req(c),
	    .cookie = a->release_on_disconnect ? client_cookie(c) : 0,
	    .uid = client_uid(c),
	    .anonymous = a->thread == NULL,
	    .no_user = a->user == NULL,
	    .user = a->user,
	    .thread = a->thread,
	    .lease_ttl = clock_seconds_to_ns(a->lease_seconds),
	    .wait_limit = clock_seconds_to_ns(a->wait_seconds),
	};
	struct err err = {0};
	enum api_error e;

	if (api_spec_choose(s, c, a->image, &r.spec, &e, &err) < 0) {
		client_reply_error(c, e, err.text);
		return;
	}
	if (choose_identity(s, a, &r.id) < 0 ||
	    digest_draw(&s->random, &r.lease_id, sizeof(r.lease_id)) < 0) {
		client_reply_error(c, API_INTERNAL, "no random bytes or digest to be had");
		return;
	}
	if (a->release_on_disconnect)
		client_mark_tied(c);
	client_wait(c); /* the pool may answer at once: when its actions are performed */
	image_wait_acquire(s, &r, body);
}

void api_acquire(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct acquire_args args = {0};
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);

	if (!body)
		client_reply_error(c, API_MALFORMED, err.text);
	else if (parse_args(body, &args, &err) < 0)
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	else
		acquire(s, c, &args, body);
	json_decref(body);
}

void api_acquire_granted(struct sbxd *s, struct client *c, const struct pool_action *a)
{
	const struct pool_box *b = pool_box_at(s->pool, a->slot);
	char lease[API_LEASE_LEN];
	struct json_out j;
	struct buf out;

	publish_count(s, (enum shm_counter)a->source);
	hist_add(&s->seg.header->hists[a->source], a->waited);
	api_format_lease(a->lease_id, lease);
	buf_init(&out, ACQUIRE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	api_put_box(&j, s, client_uid(c), b);
	json_put_string(&j, "lease_id", lease);
	json_put_string(&j, "source", slot_source_name(a->source));
	json_put_uint(&j, "acquire_us", a->waited / NS_PER_US);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_refused(struct sbxd *s, struct client *c, const struct pool_action *a)
{
	struct api_error_more more = {.retry_after_seconds = a->retry_after};
	struct log_ctx ctx = client_log_ctx(c);

	log_line(LOG_INFO, &ctx, "refused: %s: %s", api_error_info(a->error)->reason, a->text);
	publish_count(s, COUNTER_ACQUIRE_FAILED);
	if (a->error == API_CAPACITY) {
		more.has_pool = 1;
		more.active = pool_count(s->pool, SLOT_ACTIVE);
		more.warm = pool_count(s->pool, SLOT_WARM);
		more.replicas = pool_rules(s->pool)->replicas;
	}
	client_reply_error_more(c, a->error, a->text, &more);
}
