/*
 * scope_lock: the robust, process-shared mutex of a slot.
 *
 * Held by whoever is in the middle of a lifecycle transition. A holder that dies leaves it "owner
 * dead": the next taker must validate and repair the slot first, and only then make the mutex
 * consistent. A slot that cannot be repaired is quarantined and its mutex is never made consistent,
 * so nobody ever enters it again.
 */
#ifndef SBXD_SHM_SCOPE_LOCK_H
#define SBXD_SHM_SCOPE_LOCK_H

#include <stdbool.h>

#include "shm/layout.h"

/* 0 or -errno. */
int scope_lock_init(pthread_mutex_t *m);

/*
 * False when it is not the kind of mutex that scope_lock_init() makes. A worker that went bad could
 * have turned the one in its page into another, whose lock and unlock do other things: change our
 * priority, or succeed without owning anything.
 */
bool scope_lock_is_intact(const pthread_mutex_t *m);

/*
 * Repairs the slot whose lock's owner died. Called with the lock held. 0 when the slot may be used
 * again; anything else leaves the mutex inconsistent for ever.
 */
typedef int scope_repair_fn(struct shm_page *page, void *ctx);

enum scope_lock_result {
	SCOPE_LOCKED,	 /* held by the caller now */
	SCOPE_RECOVERED, /* its owner had died; repaired, consistent, held by the caller now */
	SCOPE_BUSY,	 /* somebody alive holds it */
	SCOPE_BROKEN,	 /* repair failed now, or had failed before: quarantine the slot */
};

/* Never waits. */
enum scope_lock_result scope_lock_try(struct shm_page *page, scope_repair_fn *repair, void *ctx);

/* Waits until `deadline_ns` (CLOCK_MONOTONIC); SCOPE_BUSY when it passes. For workers only: sbxd
 * never waits. */
enum scope_lock_result scope_lock_wait(
    struct shm_page *page, uint64_t deadline_ns, scope_repair_fn *repair, void *ctx);

void scope_unlock(struct shm_page *page);

/* What scope_lock_holder() says besides a thread's id. */
#define SCOPE_HOLDER_NONE 0
#define SCOPE_HOLDER_DIED (-1)	 /* its holder died, and nobody has taken it since */
#define SCOPE_HOLDER_BROKEN (-2) /* its repair failed: nobody can take it any more */

/*
 * For readers: who holds it, by a look that takes and writes nothing. The worker of its page can
 * make this say anything.
 */
int32_t scope_lock_holder(const struct shm_page *page);

#endif
