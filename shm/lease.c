/*
 * lease: leases in the shared table. sbxd writes them; if it dies in the middle of one, that lease
 * was not given yet, or is still held.
 */
#include "shm/lease.h"

#include "lib/fault.h"

void lease_publish(
    struct shm_slot *slot, uint32_t place, uint64_t id, uint64_t cookie, uint64_t expires_ns)
{
	struct shm_lease *l = &slot->leases[place];

	if (atomic_load_explicit(&l->id, memory_order_relaxed) == id)
		return; /* a lease never changes */
	atomic_store_explicit(&l->id, 0, memory_order_release);
	atomic_store_explicit(&l->cookie, cookie, memory_order_release);
	atomic_store_explicit(&l->expires_ns, expires_ns, memory_order_release);
	FAULT_POINT("lease-publish");
	atomic_store_explicit(&l->id, id, memory_order_release);
}

void lease_clear(struct shm_slot *slot, uint32_t place)
{
	if (atomic_load_explicit(&slot->leases[place].id, memory_order_relaxed))
		atomic_store_explicit(&slot->leases[place].id, 0, memory_order_release);
}

bool lease_read(const struct shm_slot *slot, uint32_t place, struct lease_copy *out)
{
	const struct shm_lease *l = &slot->leases[place];
	struct lease_copy copy = {.id = atomic_load_explicit(&l->id, memory_order_acquire)};

	if (copy.id == 0)
		return false;
	copy.cookie = atomic_load_explicit(&l->cookie, memory_order_acquire);
	copy.expires_ns = atomic_load_explicit(&l->expires_ns, memory_order_acquire);
	if (atomic_load_explicit(&l->id, memory_order_relaxed) != copy.id)
		return false; /* it ended while we looked */
	*out = copy;
	return true;
}
