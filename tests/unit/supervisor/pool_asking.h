/*
 * pool_asking: the clients' side of the rig, and what was said so far. Part of pool_testing.h.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_ASKING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_ASKING_H

/* ---- the clients' side ---- */

/* The next request, for user "u" and the thread. */
static inline struct pool_request rig_request(struct rig *r, const char *thread)
{
	struct pool_request q = {.uid = RIG_UID, .user = "u", .thread = thread};

	q.req = ++r->last_req;
	RIG_CHECK(r, q.req < RIG_REQS);
	q.lease_id = 5000 + q.req;
	(void)snprintf(q.spec.image, sizeof(q.spec.image), "host");
	assert_int_equal(identity_scope(q.user, thread, &q.id), 0);
	return q;
}

static inline uint64_t rig_send(struct rig *r, const struct pool_request *q)
{
	pool_acquire(r->pool, r->now, q);
	rig_settle(r);
	return q->req;
}

static inline uint64_t rig_acquire(struct rig *r, const char *thread)
{
	struct pool_request q = rig_request(r, thread);

	return rig_send(r, &q);
}

static inline int rig_outcome(const struct rig *r, uint64_t req)
{
	return r->requests[req].outcome;
}

#define assert_outcome(r, req, expected) assert_int_equal(rig_outcome(r, req), expected)

static inline uint64_t rig_lease(const struct rig *r, uint64_t req)
{
	return r->requests[req].lease;
}

static inline void rig_leave(struct rig *r, uint64_t req)
{
	if (r->requests[req].outcome == WAITING)
		r->requests[req].outcome = GONE;
	pool_client_gone(r->pool, r->now, req);
	rig_settle(r);
}

/* The box of the thread's scope, or NULL. */
static inline const struct pool_box *rig_box(const struct rig *r, const char *thread)
{
	struct identity id;

	assert_int_equal(identity_scope("u", thread, &id), 0);
	return pool_box_find(r->pool, RIG_UID, id.token);
}

/* Its state; SLOT_FREE when there is none. */
static inline uint32_t rig_state(const struct rig *r, const char *thread)
{
	const struct pool_box *b = rig_box(r, thread);

	return b ? b->state : SLOT_FREE;
}

#define assert_state(r, thread, expected) assert_int_equal(rig_state(r, thread), expected)

static inline enum pool_release_result rig_release(
    struct rig *r, const char *thread, uint64_t lease_id)
{
	enum pool_release_result result;
	struct identity id;

	assert_int_equal(identity_scope("u", thread, &id), 0);
	result = pool_release(r->pool, r->now, RIG_UID, id.token, lease_id);
	rig_settle(r);
	return result;
}

static inline int rig_remove(struct rig *r, const char *thread, bool force, uint64_t *req)
{
	struct identity id;
	int rc;

	*req = ++r->last_req;
	RIG_CHECK(r, *req < RIG_REQS);
	assert_int_equal(identity_scope("u", thread, &id), 0);
	rc = pool_remove(r->pool, r->now, RIG_UID, id.token, force, *req);
	r->requests[*req].outcome = GONE; /* no acquire */
	r->requests[*req].removal = rc == 0;
	rig_settle(r);
	return rc;
}

/* A box that was acquired and released. */
static inline const struct pool_box *rig_park(struct rig *r, const char *thread)
{
	uint64_t req = rig_acquire(r, thread);

	assert_int_equal(rig_release(r, thread, rig_lease(r, req)), POOL_RELEASE_WARM);
	return rig_box(r, thread);
}

static inline void rig_shutdown(struct rig *r)
{
	pool_shutdown(r->pool, r->now);
	rig_settle(r);
}

/* ---- what was said so far ---- */

static inline void rig_forget(struct rig *r)
{
	r->log_count = 0;
}

/* Actions of a kind since rig_forget(). */
static inline uint32_t rig_said(const struct rig *r, enum pool_action_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->log_count; i++)
		n += r->log[i].kind == kind;
	return n;
}

static inline uint32_t rig_recorded(const struct rig *r, uint32_t event)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->log_count; i++)
		n += r->log[i].kind == POOL_RECORD && r->log[i].event == event;
	return n;
}

/* The text of the last record of that event. */
static inline const char *rig_record_text(const struct rig *r, uint32_t event)
{
	for (uint32_t i = r->log_count; i-- > 0;) {
		if (r->log[i].kind == POOL_RECORD && r->log[i].event == event)
			return r->log[i].text;
	}
	fail_msg("nothing recorded");
	return NULL;
}

#endif
