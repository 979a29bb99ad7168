/*
 * scope_lock: the robust, process-shared mutex of a slot. sbxd tries it, a worker may wait for it.
 * If the holder dies the next taker gets EOWNERDEAD, repairs the slot's record, and only then
 * makes the mutex consistent; if that taker dies during the repair, the one after it starts over.
 */
#include "shm/scope_lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/log.h"

int scope_lock_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return -rc;
	rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!rc)
		rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!rc)
		rc = pthread_mutex_init(m, &attr);
	(void)pthread_mutexattr_destroy(&attr); /* cannot fail on an initialised attr */
	return -rc;
}

bool scope_lock_is_intact(const pthread_mutex_t *m)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	bool intact;

	if (scope_lock_init(&fresh) != 0)
		return false;
	intact = m->__data.__kind == fresh.__data.__kind;
	(void)pthread_mutex_destroy(&fresh); /* nobody holds it */
	return intact;
}

static enum scope_lock_result lock_recover(
    struct shm_page *page, scope_repair_fn *repair, void *ctx)
{
	if (repair(page, ctx) == 0 && pthread_mutex_consistent(&page->scope_lock) == 0)
		return SCOPE_RECOVERED;
	/* Unlocked while inconsistent it is ENOTRECOVERABLE for everybody, for ever. */
	(void)pthread_mutex_unlock(&page->scope_lock);
	return SCOPE_BROKEN;
}

/* rc: what locking the mutex returned. */
static enum scope_lock_result lock_judge(
    struct shm_page *page, int rc, scope_repair_fn *repair, void *ctx)
{
	switch (rc) {
	case 0:
		return SCOPE_LOCKED;
	case EOWNERDEAD:
		return lock_recover(page, repair, ctx);
	case EBUSY:
	case ETIMEDOUT:
		return SCOPE_BUSY;
	default: /* ENOTRECOVERABLE, or what only a damaged mutex gives */
		return SCOPE_BROKEN;
	}
}

/* What glibc stores as the owner of a mutex that was unlocked without being made consistent. */
#define OWNER_NOT_RECOVERABLE (INT_MAX - 1)

int32_t scope_lock_holder(const struct shm_page *page)
{
	const pthread_mutex_t *m = &page->scope_lock;
	/* The word that the kernel knows too: it marks it when the holder dies. */
	uint32_t word = (uint32_t)__atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED);

	if (word & FUTEX_OWNER_DIED)
		return SCOPE_HOLDER_DIED;
	if (word & FUTEX_TID_MASK)
		return (int32_t)(word & FUTEX_TID_MASK);
	if (__atomic_load_n(&m->__data.__owner, __ATOMIC_RELAXED) == OWNER_NOT_RECOVERABLE)
		return SCOPE_HOLDER_BROKEN;
	return SCOPE_HOLDER_NONE;
}

enum scope_lock_result scope_lock_wait(
    struct shm_page *page, uint64_t deadline_ns, scope_repair_fn *repair, void *ctx)
{
	struct timespec until = {
	    .tv_sec = (time_t)(deadline_ns / NS_PER_S),
	    .tv_nsec = (long)(deadline_ns % NS_PER_S),
	};

	if (!scope_lock_is_intact(&page->scope_lock))
		return SCOPE_BROKEN;
	return lock_judge(
	    page, pthread_mutex_clocklock(&page->scope_lock, CLOCK_MONOTONIC, &until), repair, ctx);
}

/*
 * Not pthread_mutex_trylock(): in glibc (2.36) it answers ENOTRECOVERABLE but keeps the mutex
 * locked, so that every later taker finds it busy instead of broken. A lock whose deadline passed
 * in 1970 never sleeps and has no such flaw.
 */
enum scope_lock_result scope_lock_try(struct shm_page *page, scope_repair_fn *repair, void *ctx)
{
	static const struct timespec passed;

	if (!scope_lock_is_intact(&page->scope_lock))
		return SCOPE_BROKEN;
	return lock_judge(page, pthread_mutex_timedlock(&page->scope_lock, &passed), repair, ctx);
}

void scope_unlock(struct shm_page *page)
{
	INVARIANT(pthread_mutex_unlock(&page->scope_lock) == 0);
}
