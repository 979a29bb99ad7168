/* api_make: POST /v1/boxes, and the answer when the pool has decided. Runs in sbxd; holds no state:
 * what is under way is in making.c. */
#include "supervisor/api_make.h"

#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/digest.h"
#include "lib/fault.h"
#include "supervisor/api_acquire.h"
#include "supervisor/api_box.h"
#include "supervisor/api_spec.h"
#include "supervisor/client.h"
#include "supervisor/idempotency.h"
#include "supervisor/image_wait.h"
#include "supervisor/making.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define MILLI 1000U
#define MIB_PER_GB 1024U

/* ---- keys ---- */

static void reply_made(struct client *c, const char *location, const struct buf *body)
{
	char extra[96];

	(void)snprintf(extra, sizeof(extra), "Location: %s\r\n", location);
	client_reply_json_more(c, 201, body, extra);
}

/* True when c was answered, or waits for the answer of a request like it. */
static bool repeat(
    struct sbxd *s, struct client *c, const char *key, const uint8_t digest[DIGEST_LEN])
{
	struct idempotent *known;
	struct making *m;

	known = idempotency_find(s->idempotency, client_uid(c), key, loop_now(s->loop));
	if (!known)
		return false;
	m = known->done ? NULL : making_by_key(s, known);
	if (!digest_equal(known->digest, digest, DIGEST_LEN))
		client_reply_error(
		    c, API_KEY_REUSED, "this Idempotency-Key was sent with another request before");
	else if (known->done)
		reply_made(c, known->location, &known->body);
	else if (!m || making_join(m, c) < 0)
		client_reply_error(c, API_INTERNAL, "out of memory");
	return true;
}

/* ---- asking ---- */

static int choose_spec(const struct sbxd *s, const struct client *c, const struct make_request *r,
    struct pool_spec *spec, enum api_error *e, struct err *err)
{
	int rc = api_spec_choose(s, c, r->image, spec, e, err);

	if (rc < 0)
		return rc;
	if (r->cpus)
		spec->cpus_milli = (uint32_t)r->cpus * MILLI;
	if (r->memory_mib)
		spec->memory_mib = (uint32_t)r->memory_mib;
	if (r->disk_gb)
		spec->disk_mib = (uint32_t)r->disk_gb * MIB_PER_GB;
	*e = API_INTERNAL;
	rc = api_spec_digest(spec);
	return rc < 0 ? err_set(err, -rc, "SHA-256 is not to be had") : 0;
}

/* All that is drawn: it is found by nothing that anybody could derive. */
static int draw(struct sbxd *s, struct pool_request *q)
{
	uint8_t random[8];

	if (digest_draw(&s->random, random, sizeof(random)) < 0 ||
	    digest_draw(&s->random, q->id.digest, sizeof(q->id.digest)) < 0 ||
	    digest_draw(&s->random, &q->lease_id, sizeof(q->lease_id)) < 0)
		return -EIO;
	digest_hex(random, sizeof(random), q->id.token);
	return 0;
}

/* 0, then the client waits; or -errno with *e and *err. body: what the texts of *r are part of. */
static int begin(struct sbxd *s, struct client *c, const struct make_request *r, json_t *body,
    struct idempotent *key, enum api_error *e, struct err *err)
{
	struct pool_request q = {
	    .want = POOL_WANT_MADE,
	    .uid = client_uid(c),
	    .anonymous = true,
	    .no_user = true,
	    .name = r->name,
	};
	struct making *m;
	int rc = choose_spec(s, c, r, &q.spec, e, err);

	if (rc < 0)
		return rc;
	*e = API_INTERNAL;
	rc = draw(s, &q);
	if (rc < 0)
		return err_set(err, -rc, "no random bytes to be had");
	rc = making_begin(s, q.uid, q.id.token, r, key, &m);
	if (rc == -EMSGSIZE) {
		*e = API_TOO_LARGE;
		return err_set(err, -rc, "\"env\": all variables of a box together are too long");
	}
	if (rc == 0) {
		rc = making_join(m, c);
		if (rc < 0)
			making_drop(m);
	}
	if (rc < 0)
		return err_set(err, -rc, "out of memory");
	FAULT_POINT("sbxd.make.begun");
	q.req = m->req;
	image_wait_acquire(s, &q, body);
	return 0;
}

/* key "": none. */
static void make(struct sbxd *s, struct client *c, const struct make_request *r, json_t *body,
    const char *key, const uint8_t digest[DIGEST_LEN])
{
	struct idempotent *known = NULL;
	struct err err = {0};
	enum api_error e;

	if (*key)
		known = idempotency_begin(
		    s->idempotency, client_uid(c), key, digest, loop_now(s->loop));
	if (*key && !known) {
		client_reply_error(
		    c, API_TOO_MANY, "too many requests with an Idempotency-Key are under way");
		return;
	}
	if (begin(s, c, r, body, known, &e, &err) == 0)
		return;
	if (known)
		idempotency_forget(s->idempotency, known);
	client_reply_error(c, e, err.text);
}

void api_make_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const struct digest_part part = {call->body, call->body_len};
	const char *key = call->head->idempotency_key;
	uint8_t digest[DIGEST_LEN];
	struct make_request r;
	enum api_error e = API_MALFORMED;
	struct err err = {0};
	json_t *body;

	if (strlen(key) > IDEMPOTENCY_KEY_MAX) {
		client_reply_error(
		    c, API_INVALID_ARGUMENT, "Idempotency-Key: at most 128 bytes are expected");
		return;
	}
	if (call->body_len == 0) { /* BoxLite's specification requires it */
		client_reply_error(
		    c, API_MALFORMED, "a body is needed: a JSON object, {} at least");
		return;
	}
	if (digest_sha256(&part, 1, digest) < 0) {
		client_reply_error(c, API_INTERNAL, "no digest to be had");
		return;
	}
	if (*key && repeat(s, c, key, digest))
		return;
	body = json_parse_object(call->body, call->body_len, &err);
	if (!body || make_request_take(body, &r, &e, &err) < 0)
		client_reply_error(c, e, err.text);
	else
		make(s, c, &r, body, key, digest);
	json_decref(body);
}

/* ---- answers ---- */

struct answer {
	struct sbxd *s;
	const char *location;
	const struct json_out *body;
	const struct pool_action *refusal;
};

static void answer_made(struct client *c, void *ctx)
{
	const struct answer *a = ctx;

	if (json_out_error(a->body))
		client_reply_error(c, API_INTERNAL, "the answer does not fit memory");
	else
		reply_made(c, a->location, a->body->b);
}

void api_made(struct sbxd *s, struct making *m, const struct pool_box *b)
{
	char location[64];
	struct json_out j;
	struct buf out;
	struct answer a = {.s = s, .location = location, .body = &j};

	publish_count(s, COUNTER_CREATES);
	(void)snprintf(location, sizeof(location), "/v1/boxes/%s", b->token);
	buf_init(&out, API_BOX_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	api_put_box(&j, s, m->uid, b);
	json_object_end(&j);
	if (m->key && json_out_error(&j) == 0)
		idempotency_done(s->idempotency, m->key, location, buf_head(&out), out.len);
	else if (m->key)
		idempotency_forget(s->idempotency, m->key);
	FAULT_POINT("sbxd.make.kept");
	making_answer(s, m, answer_made, &a);
	buf_free(&out);
}

static void answer_refused(struct client *c, void *ctx)
{
	const struct answer *a = ctx;

	api_refused(a->s, c, a->refusal);
}

void api_not_made(struct sbxd *s, struct making *m, const struct pool_action *a)
{
	struct answer answer = {.s = s, .refusal = a};

	if (m->key)
		idempotency_forget(s->idempotency, m->key);
	making_answer(s, m, answer_refused, &answer);
}
