/*
 * restore: reads the table of a dead supervisor into the pool. Runs in sbxd at its start; dying
 * here leaves the table as it was, to the next one.
 *
 * What stands in a slot's first two pages was written by a supervisor and by nobody else, so it is
 * believed, after repair_check_sup() has found it whole. Whether a worker lives is the kernel's
 * word.
 */
#include "supervisor/restore.h"

#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/lease.h"
#include "shm/repair.h"
#include "shm/ring.h"
#include "shm/slot.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_adopt.h"

static uint32_t read_leases(
    const struct sbxd *s, uint32_t slot, uint32_t span, struct pool_lease_restored out[POOL_LEASES])
{
	struct lease_copy l;
	uint32_t n = 0;

	for (uint32_t i = 0; i < span; i++) {
		if (lease_read(&s->seg.slots[slot], i, &l))
			out[n++] = (struct pool_lease_restored){
			    .id = l.id,
			    .cookie = l.cookie,
			    .expires = l.expires_ns,
			    .place = (uint16_t)i,
			};
	}
	return n;
}

/* A box that was saved once has the name of its first generation still. */
static uint64_t machine_of(const struct slot_sup *part)
{
	const char *last = strrchr(part->name, '-');
	uint64_t n = last ? strtoull(last + 1, NULL, 16) : 0;

	return n > 0 && n < part->generation ? n : part->generation;
}

static void fill_restored(uint32_t slot, const struct slot_sup *part, struct pool_restored *r)
{
	*r = (struct pool_restored){
	    .slot = slot,
	    .state = part->state,
	    .generation = part->generation,
	    .machine = machine_of(part),
	    .uid = part->owner_uid,
	    .flags = part->flags,
	    .spec.memory_mib = part->memory_mib,
	    .spec.cpus_milli = part->cpus_milli,
	    .spec.disk_mib = part->disk_mib,
	    .spec.pids_max = part->pids_max,
	    .source = part->source,
	    .acquires = part->acquires,
	    .saves = part->saves,
	    .created = part->created_ns,
	    .state_since = part->state_ns,
	    .parked = part->parked_ns,
	    .leased = part->leased_ns,
	};
	memcpy(r->token, part->token, sizeof(r->token));
	memcpy(r->identity, part->identity, sizeof(r->identity));
	memcpy(r->user, part->user, sizeof(r->user));
	memcpy(r->thread, part->thread, sizeof(r->thread));
	memcpy(r->name, part->box_name, sizeof(r->name));
	memcpy(r->spec.image, part->image, sizeof(r->spec.image));
	memcpy(r->spec.digest, part->spec_digest, sizeof(r->spec.digest));
	memcpy(r->last_error, part->last_error, sizeof(r->last_error));
}

/* One slot that is in use. True when its worker lives. */
static bool restore_slot(struct sbxd *s, uint32_t slot)
{
	const struct slot_sup *part = &s->parts[slot];
	struct pool_lease_restored leases[POOL_LEASES];
	struct pool_restored r;
	int pidfd = -1;

	fill_restored(slot, part, &r);
	r.leases = leases;
	r.lease_count = read_leases(s, slot, part->lease_span, leases);
	if (part->worker_pid > 0)
		pidfd = proc_open_exact(part->worker_pid, part->worker_start);
	if (pidfd >= 0)
		r.has_worker = worker_adopt(
		    s, slot, part->generation, part->worker_pid, part->worker_start, pidfd);
	pool_restore(s->pool, loop_now(s->loop), &r);
	FAULT_POINT("sbxd.restore.slot");
	return r.has_worker;
}

/* Nobody can tell what it was; so nothing may use it again. */
static void restore_unsound(struct sbxd *s, uint32_t slot)
{
	struct slot_sup *part = &s->parts[slot];
	bool given = part->generation < atomic_load(&s->seg.header->next_generation);
	struct pool_restored r = {
	    .slot = slot,
	    .state = SLOT_QUARANTINED,
	    .generation = given ? part->generation : 0,
	    .last_error = "what the last supervisor left here is not whole",
	};

	log_error("slot %u is quarantined: %s", slot, r.last_error);
	if (part->state >= SLOT_STATES) /* so it was not counted */
		atomic_fetch_add(&s->seg.header->state_count[SLOT_FREE], 1);
	*part = (struct slot_sup){
	    .generation = r.generation,
	    .state = part->state < SLOT_STATES ? part->state : SLOT_FREE,
	    .index_next = SHM_NONE,
	    .warm_prev = SHM_NONE,
	    .warm_next = SHM_NONE,
	};
	pool_restore(s->pool, loop_now(s->loop), &r);
}

/* A torn part has been published whole by segment_attach(), or was not to be saved. */
static bool read_part(struct sbxd *s, uint32_t slot)
{
	struct slot_sup *part = &s->parts[slot];

	if (slot_read_sup(&s->seg.slots[slot], part) < 0) {
		slot_salvage_sup(&s->seg.slots[slot], part);
		return false;
	}
	return repair_check_sup(part, s->seg.slot_count) == 0 &&
	       part->generation < atomic_load(&s->seg.header->next_generation);
}

/* The boxes that the last supervisors closed, as far as the flight recorder still has it. */
static void restore_past(struct sbxd *s)
{
	uint64_t next = ring_oldest(&s->seg);
	struct shm_event ev;
	uint64_t lost = 0;

	while (ring_follow(&s->seg, &next, &ev, &lost)) {
		if (ev.kind != EVENT_STATE || ev.to != SLOT_CLOSING)
			continue;
		ev.token[sizeof(ev.token) - 1] = '\0';
		pool_past_add(s->pool, ev.owner_uid, ev.token);
	}
}

uint32_t restore_boxes(struct sbxd *s)
{
	uint32_t alive = 0;

	restore_past(s);
	for (uint32_t i = 0; i < s->seg.slot_count; i++) {
		if (!read_part(s, i))
			restore_unsound(s, i);
		else if (s->parts[i].state != SLOT_FREE && restore_slot(s, i))
			alive++;
	}
	pool_restored_all(s->pool, loop_now(s->loop));
	workers_give_up_silent(s);
	return alive;
}
