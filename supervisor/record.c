/* record: the flight recorder. Runs in sbxd; what is in the ring outlives it. */
#include "supervisor/record.h"

#include <bsd/string.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "shm/ring.h"
#include "shm/slot.h"
#include "supervisor/client.h"
#include "supervisor/making.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_link.h"

static struct shm_event event_now(enum shm_event_kind kind, const char *why)
{
	struct shm_event ev = {
	    .kind = kind,
	    .time_ns = clock_now_ns(),
	    .wall_ms = clock_wall_ms(),
	    .slot = SHM_NONE,
	};

	(void)strlcpy(ev.reason, why, sizeof(ev.reason));
	return ev;
}

/* Of its worker, or of the one that has just ended: the table shows that until it is published
 * again. */
static int32_t worker_pid_of(const struct sbxd *s, uint32_t slot, uint64_t generation)
{
	const struct slot_sup *shown = &s->parts[slot];

	if (shown->generation != generation)
		return 0;
	return s->workers[slot] ? (int32_t)worker_pid(s->workers[slot]) : shown->worker_pid;
}

static void name_box(const struct sbxd *s, struct shm_event *ev, uint32_t slot, uint64_t generation,
    uid_t uid, const char token[SHM_TOKEN_LEN])
{
	ev->slot = slot;
	ev->generation = generation;
	ev->owner_uid = uid;
	if (slot != SHM_NONE)
		ev->pid = worker_pid_of(s, slot, generation);
	memcpy(ev->token, token, sizeof(ev->token));
}

/* What some events are counted as. */
static const uint8_t event_counters[EVENT_KINDS] = {
    [EVENT_CHECK_FAILED] = COUNTER_CHECK_FAILURES,
    [EVENT_EVICT] = COUNTER_EVICTIONS,
    [EVENT_WORKER_CRASH] = COUNTER_WORKER_CRASHES,
    [EVENT_QUARANTINE] = COUNTER_QUARANTINES,
    [EVENT_START] = COUNTER_STARTS,
    [EVENT_STOP] = COUNTER_STOPS,
};

void record_action(struct sbxd *s, const struct pool_action *a)
{
	struct shm_event ev = event_now((enum shm_event_kind)a->event, a->text);
	const struct client *c = a->req ? making_client(s, a->req) : NULL;
	struct log_ctx ctx = c ? client_log_ctx(c) : (struct log_ctx){0};

	ev.from = a->from;
	ev.to = a->to;
	ev.code = a->code;
	/* As it was when the pool decided: the box may be no more. */
	name_box(s, &ev, a->slot, a->generation, a->uid, a->token);
	if (c)
		(void)strlcpy(ev.request_id, client_request_id(c), sizeof(ev.request_id));
	(void)ring_append(&s->seg, &ev);
	if (a->event == EVENT_EVICT && a->code == POOL_EVICT_IDLE)
		publish_count(s, COUNTER_IDLE_CLOSES);
	else if (event_counters[a->event])
		publish_count(s, (enum shm_counter)event_counters[a->event]);
	ctx.box = a->token[0] ? a->token : NULL;
	if (a->event != EVENT_STATE && a->event != EVENT_RELEASE)
		log_line(LOG_INFO, &ctx, "%s: %s", ring_kind_name(a->event), a->text);
}

void record_lease(
    struct sbxd *s, const struct pool_action *a, const struct pool_box *b, const struct client *c)
{
	struct shm_event ev = event_now(EVENT_LEASE, slot_source_name(a->source));
	struct log_ctx ctx = c ? client_log_ctx(c) : (struct log_ctx){0};

	name_box(s, &ev, b->slot, b->generation, b->uid, b->token);
	if (c)
		(void)strlcpy(ev.request_id, client_request_id(c), sizeof(ev.request_id));
	(void)ring_append(&s->seg, &ev);
	ctx.box = b->token;
	log_line(LOG_DEBUG, &ctx, "acquired: %s, after %llu us", slot_source_name(a->source),
	    (unsigned long long)(a->waited / NS_PER_US));
}

void record_recovery(struct sbxd *s, uint32_t slot)
{
	const struct pool_box *b = pool_box_at(s->pool, slot);
	struct shm_event ev =
	    event_now(EVENT_LOCK_RECOVERY, "its holder died; the slot was repaired");

	name_box(s, &ev, slot, b->generation, b->uid, b->token);
	(void)ring_append(&s->seg, &ev);
	publish_count(s, COUNTER_LOCK_RECOVERIES);
	log_info("slot %u: %s", slot, ev.reason);
}

void record_self(struct sbxd *s, enum shm_event_kind kind, const char *why)
{
	struct shm_event ev = event_now(kind, why);

	ev.pid = (int32_t)getpid();
	(void)ring_append(&s->seg, &ev);
}
