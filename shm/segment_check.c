/*
 * segment_check: whether a header describes exactly this program's layout. Any process; looks
 * only at private copies, so nothing is lost if we die here.
 */
#include <errno.h>
#include <string.h>

#include "lib/hash.h"
#include "shm/segment_impl.h"

#define AT(type, member) offsetof(struct type, member)

/* What readers and writers must agree on. A member that moves changes the hash. */
static const uint32_t layout[] = {
    sizeof(pthread_mutex_t),
    sizeof(sem_t),
    sizeof(struct shm_header),
    sizeof(struct shm_hist),
    sizeof(struct shm_event),
    sizeof(struct slot_sup),
    sizeof(struct slot_work),
    sizeof(struct shm_lease),
    sizeof(struct shm_page),
    sizeof(struct shm_slot),
    SHM_RING_RECORDS,
    SHM_CONNS,
    SHM_LEASES,
    SLOT_STATES,
    SOURCES,
    COUNTERS,
    HISTS,
    HIST_SUB_BITS,
    HIST_BUCKETS,
    EVENT_KINDS,
    AT(shm_header, supervisor_pid),
    AT(shm_header, supervisor_start),
    AT(shm_header, heartbeat_ns),
    AT(shm_header, next_generation),
    AT(shm_header, supervisor_lock),
    AT(shm_header, boot_slots),
    AT(shm_header, list_seq),
    AT(shm_header, state_count),
    AT(shm_header, waiters),
    AT(shm_header, ring_next),
    AT(shm_header, counters),
    AT(shm_header, hists),
    AT(shm_event, slot),
    AT(shm_event, token),
    AT(shm_event, request_id),
    AT(shm_event, reason),
    AT(slot_sup, state),
    AT(slot_sup, token),
    AT(slot_sup, name),
    AT(slot_sup, identity),
    AT(slot_sup, flags),
    AT(slot_sup, worker_pid),
    AT(slot_sup, worker_start),
    AT(slot_sup, image),
    AT(slot_sup, memory_mib),
    AT(slot_sup, created_ns),
    AT(slot_sup, acquires),
    AT(slot_sup, index_next),
    AT(slot_sup, source),
    AT(slot_sup, user),
    AT(slot_sup, thread),
    AT(slot_sup, box_name),
    AT(slot_sup, last_error),
    AT(slot_work, box_pid),
    AT(slot_work, heartbeat_ns),
    AT(slot_work, exec_total),
    AT(slot_work, memory_bytes),
    AT(slot_work, last_error),
    AT(shm_slot, sup),
    AT(shm_slot, leases),
    AT(shm_slot, page),
    AT(shm_page, scope_lock),
    AT(shm_page, work_seq),
    AT(shm_page, in_flight),
    AT(shm_page, work),
    AT(shm_page, conns),
};

uint64_t segment_layout_hash(void)
{
	uint64_t hash = HASH64_START; /* over whole numbers: other builds did so */

	for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++)
		hash = (hash ^ layout[i]) * HASH64_PRIME;
	return hash;
}

/* The offsets follow from the slot count: anything else was not made by this layout. */
static bool geometry_matches(const struct shm_header *h, const struct segment_plan *plan)
{
	return h->slot_size == sizeof(struct shm_slot) && h->slots_off == plan->slots_off &&
	       h->index_buckets == plan->index_buckets && h->index_off == plan->index_off &&
	       h->ring_records == SHM_RING_RECORDS &&
	       h->ring_record_size == sizeof(struct shm_event) && h->ring_off == plan->ring_off &&
	       h->total_size == plan->total_size;
}

int segment_check_header(
    const struct shm_header *h, uint64_t size, struct segment_plan *plan, struct err *why)
{
	struct segment_plan expected;

	if (atomic_load(&h->magic) != SHM_MAGIC)
		return err_set(why, EINVAL, "not a table of sbxd (wrong magic)");
	if (h->version != SHM_VERSION)
		return err_set(
		    why, EINVAL, "layout version %u, expected %u", h->version, SHM_VERSION);
	if (h->layout_hash != segment_layout_hash() || h->header_size != sizeof(*h))
		return err_set(why, EINVAL,
		    "another build's layout (hash %016llx, expected %016llx)",
		    (unsigned long long)h->layout_hash, (unsigned long long)segment_layout_hash());
	if (h->slot_count == 0 || h->slot_count > SHM_MAX_SLOTS)
		return err_set(why, EINVAL, "%u slots", h->slot_count);
	segment_plan_layout(h->slot_count, &expected);
	if (!geometry_matches(h, &expected))
		return err_set(
		    why, EINVAL, "sizes or offsets do not belong to %u slots", h->slot_count);
	if (size != expected.total_size)
		return err_set(why, EINVAL, "%llu bytes long, expected %llu",
		    (unsigned long long)size, (unsigned long long)expected.total_size);
	if (!memchr(h->instance, '\0', sizeof(h->instance)))
		return err_set(why, EINVAL, "instance name without an end");
	*plan = expected;
	return 0;
}
