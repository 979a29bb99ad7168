/*
 * publish: what the shared table shows of the pool. Runs in sbxd; a reader sees each part whole,
 * and a successor finds the last published view.
 */
#include <bsd/string.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "shm/index.h"
#include "shm/lease.h"
#include "shm/slot.h"
#include "shm/warm.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_link.h"

static void publish_part(struct sbxd *s, uint32_t slot)
{
	if (slot != SHM_NONE)
		slot_publish_sup(&s->seg.slots[slot], &s->parts[slot]);
}

static void publish_neighbours(struct sbxd *s, const uint32_t changed[WARM_CHANGED])
{
	for (int i = 0; i < WARM_CHANGED; i++)
		publish_part(s, changed[i]);
}

/* Stock has no token: it is nobody's yet. */
static bool is_indexed(const char *token, uint32_t state)
{
	return token[0] != '\0' && state != SLOT_FREE && state != SLOT_QUARANTINED;
}

static void leave_lists(struct sbxd *s, uint32_t slot, bool leave_index, bool leave_warm)
{
	uint32_t changed[WARM_CHANGED];

	if (leave_index)
		publish_part(s, index_remove(&s->seg, s->parts, slot));
	if (leave_warm) {
		warm_begin(&s->seg);
		warm_remove(&s->seg, s->parts, slot, changed);
		publish_neighbours(s, changed);
		warm_end(&s->seg);
	}
}

static void enter_lists(struct sbxd *s, uint32_t slot, bool enter_index, bool enter_warm)
{
	uint32_t changed[WARM_CHANGED];

	if (enter_index)
		index_insert(&s->seg, s->parts, slot);
	if (enter_warm) {
		warm_begin(&s->seg);
		warm_append(&s->seg, s->parts, slot, changed);
		publish_neighbours(s, changed);
		warm_end(&s->seg);
	}
}

/* Whose it is: stock learns that when it is claimed. */
static void fill_identity(const struct pool_box *b, struct slot_sup *part)
{
	memcpy(part->token, b->token, sizeof(part->token));
	memcpy(part->identity, b->identity, sizeof(part->identity));
	memcpy(part->user, b->user, sizeof(part->user));
	memcpy(part->thread, b->thread, sizeof(part->thread));
	memcpy(part->box_name, b->name, sizeof(part->box_name));
	part->owner_uid = b->uid;
}

static void fill_making(const struct sbxd *s, const struct pool_box *b, struct slot_sup *part)
{
	(void)snprintf(part->name, sizeof(part->name), "sbxd-%s-%u-%llx", s->instance, b->slot,
	    (unsigned long long)b->machine);
	memcpy(part->spec_digest, b->spec.digest, sizeof(part->spec_digest));
	memcpy(part->image, b->spec.image, sizeof(part->image));
	(void)strlcpy(part->driver, s->driver, sizeof(part->driver));
	part->memory_mib = b->spec.memory_mib;
	part->cpus_milli = b->spec.cpus_milli;
	part->disk_mib = b->spec.disk_mib;
	part->pids_max = b->spec.pids_max;
	part->created_ns = b->created;
	part->created_wall_ms = clock_wall_ms();
}

/* With the part itself, so that a daemon that dies at any time leaves a table that agrees with
 * itself. */
static void count_state(const struct sbxd *s, uint32_t from, uint32_t to)
{
	atomic_fetch_sub_explicit(&s->seg.header->state_count[from], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->seg.header->state_count[to], 1, memory_order_relaxed);
}

static void fill_state(const struct sbxd *s, const struct pool_box *b, struct slot_sup *part)
{
	const struct worker *w = s->workers[b->slot];

	if (part->state_ns != b->state_since || part->state != b->state ||
	    ((part->flags ^ b->flags) & SLOT_FLAGS_REST))
		part->updated_wall_ms = clock_wall_ms();
	if (part->state != b->state)
		count_state(s, part->state, b->state);
	part->state = b->state;
	part->state_ns = b->state_since;
	part->parked_ns = b->parked;
	part->leased_ns = b->leased;
	part->flags = b->flags;
	part->waiters = b->waiters;
	part->leases = b->lease_count;
	/* Known when the janitor has prepared the first image: boxes may be on their way before. */
	if (b->state != SLOT_FREE && !*part->isolation) {
		(void)strlcpy(part->isolation, s->isolation, sizeof(part->isolation));
		(void)strlcpy(part->driver, s->driver, sizeof(part->driver));
	}
	part->acquires = b->acquires;
	part->source = b->source;
	part->saves = b->saves;
	part->worker_pid = w ? worker_pid(w) : 0;
	part->worker_start = w ? worker_start_time(w) : 0;
	memcpy(part->last_error, b->last_error, sizeof(part->last_error));
}

/* The part of a new box, or of a slot that is nobody's. */
static void begin_part(const struct sbxd *s, const struct pool_box *b, struct slot_sup *part)
{
	struct shm_header *h = s->seg.header;
	struct slot_sup before = *part;

	/* A successor takes no generation for real that was not announced. */
	if (b->generation >= atomic_load_explicit(&h->next_generation, memory_order_relaxed))
		atomic_store_explicit(&h->next_generation, b->generation + 1, memory_order_release);
	*part = (struct slot_sup){
	    .generation = b->generation,
	    .state = part->state, /* still counted as that */
	    .index_next = SHM_NONE,
	    .warm_prev = SHM_NONE,
	    .warm_next = SHM_NONE,
	};
	if (b->state != SLOT_FREE)
		fill_making(s, b, part);
	if (part->name[0] &&
	    !strcmp(part->name, before.name)) { /* another generation of the same machine */
		memcpy(part->driver, before.driver, sizeof(part->driver));
		memcpy(part->isolation, before.isolation, sizeof(part->isolation));
		part->created_wall_ms = before.created_wall_ms;
	}
}

/*
 * Before the part: a lease that its box does not show is none, and a new box begins without any.
 * Returns the new span of places.
 */
static uint32_t publish_leases(struct sbxd *s, const struct pool_box *b, uint32_t span)
{
	struct shm_slot *slot = &s->seg.slots[b->slot];
	const struct pool_lease *l;

	for (uint32_t i = 0; i < span; i++) {
		if (!(b->places[i / 64] >> (i % 64) & 1))
			lease_clear(slot, i);
	}
	TAILQ_FOREACH (l, &b->leases, link) {
		lease_publish(slot, l->place, l->id, l->cookie, l->expires);
		if (l->place >= span)
			span = l->place + 1U;
	}
	return b->lease_count ? span : 0;
}

void publish_box(struct sbxd *s, const struct pool_box *b)
{
	struct slot_sup *part = &s->parts[b->slot];
	bool fresh = part->generation != b->generation;
	bool indexed = is_indexed(part->token, part->state);
	bool warm = part->state == SLOT_WARM;
	bool to_index = is_indexed(b->token, b->state);
	bool to_warm = b->state == SLOT_WARM;
	uint32_t span;
	/* Or parked anew without having been shown in between: it is the newest now. */
	bool elsewhere = fresh || part->parked_ns != b->parked || part->acquires != b->acquires;

	leave_lists(s, b->slot, indexed && (fresh || !to_index), warm && (elsewhere || !to_warm));
	FAULT_POINT("sbxd.publish.unlisted");
	span = publish_leases(s, b, part->lease_span);
	if (fresh)
		begin_part(s, b, part);
	fill_identity(b, part);
	fill_state(s, b, part);
	part->lease_span = span;
	FAULT_POINT("sbxd.publish.leases");
	enter_lists(s, b->slot, to_index && (fresh || !indexed), to_warm && (elsewhere || !warm));
	publish_part(s, b->slot);
	FAULT_POINT("sbxd.publish.part");
}

void publish_now(struct sbxd *s, const struct pool_box *b)
{
	publish_box(s, b);
	pool_published(s->pool, b);
}

void publish_changed(struct sbxd *s)
{
	struct shm_header *h = s->seg.header;
	const struct pool_box *b;

	while ((b = pool_next_dirty(s->pool)))
		publish_box(s, b);
	atomic_store_explicit(&h->waiters, pool_waiters(s->pool), memory_order_relaxed);
	atomic_store_explicit(&h->replicas, pool_rules(s->pool)->replicas, memory_order_relaxed);
}

void publish_count(struct sbxd *s, enum shm_counter counter)
{
	atomic_fetch_add_explicit(&s->seg.header->counters[counter], 1, memory_order_relaxed);
}

uint64_t publish_counter(const struct sbxd *s, enum shm_counter counter)
{
	return atomic_load_explicit(&s->seg.header->counters[counter], memory_order_relaxed);
}
