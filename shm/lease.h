/*
 * lease: the leases of a box as the shared table keeps them, so that they outlive the supervisor.
 */
#ifndef SBXD_SHM_LEASE_H
#define SBXD_SHM_LEASE_H

#include <stdbool.h>

#include "shm/layout.h"

/* Writes lease number `place` (below SHM_LEASES); id is not 0. Only sbxd. Killed in the middle, it
 * leaves no lease there. */
void lease_publish(
    struct shm_slot *slot, uint32_t place, uint64_t id, uint64_t cookie, uint64_t expires_ns);

/* Ends lease number `place`, if there is one. Only sbxd. */
void lease_clear(struct shm_slot *slot, uint32_t place);

/* A lease as it stands; false when there is none at `place`. */
struct lease_copy {
	uint64_t id;
	uint64_t cookie;
	uint64_t expires_ns;
};
bool lease_read(const struct shm_slot *slot, uint32_t place, struct lease_copy *out);

#endif
