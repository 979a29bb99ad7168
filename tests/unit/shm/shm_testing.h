/*
 * shm_testing: what the tests of the table share. A test names its segments after its own pid and
 * unlinks them, also after it failed.
 */
#ifndef SBXD_TESTS_SHM_TESTING_H
#define SBXD_TESTS_SHM_TESTING_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/segment.h"
#include "shm/slot.h"

struct table {
	char name[64];
	struct segment seg;
	struct slot_sup *parts; /* the mirror */
};

static inline void table_name(char out[64])
{
	char instance[32];

	(void)snprintf(instance, sizeof(instance), "unit-%d", (int)getpid());
	assert_int_equal(segment_name(out, 64, geteuid(), instance), 0);
}

static inline void table_open(struct table *t, uint32_t slots)
{
	struct err err = {0};

	table_name(t->name);
	(void)segment_unlink(t->name);
	if (segment_create(t->name, "unit", slots, 4, &t->seg, &err) < 0)
		fail_msg("%s", err.text);
	t->parts = calloc(slots, sizeof(*t->parts));
	assert_non_null(t->parts);
}

static inline void table_close(struct table *t)
{
	free(t->parts);
	t->parts = NULL;
	segment_close(&t->seg);
	(void)segment_unlink(t->name);
}

/* A plausible box in `state`; n makes it different from others. */
static inline struct slot_sup part_make(uint32_t state, uint32_t n)
{
	struct slot_sup part = {
	    .generation = n + 1ULL,
	    .state = state,
	    .owner_uid = 1000,
	    .worker_pid = 4242,
	    .worker_start = 77,
	    .parked_ns = 1000ULL * n,
	    .index_next = SHM_NONE,
	    .warm_prev = SHM_NONE,
	    .warm_next = SHM_NONE,
	    .driver = "namespace",
	    .isolation = "namespace",
	    .image = "host",
	    .user = "user",
	    .thread = "thread",
	};

	(void)snprintf(part.token, sizeof(part.token), "%016x", n);
	(void)snprintf(part.name, sizeof(part.name), "sbxd-unit-%u", n);
	memset(part.identity, (int)(n % 255U) + 1, sizeof(part.identity));
	return part;
}

/* Anonymous shared memory, initialised as slot 0. */
static inline struct shm_slot *slot_make(void)
{
	struct shm_slot *slot =
	    mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(slot, MAP_FAILED);
	assert_int_equal(slot_init(slot, 0), 0);
	return slot;
}

static inline void slot_unmap(struct shm_slot *slot)
{
	assert_int_equal(munmap(slot, sizeof(*slot)), 0);
}

/*
 * Runs fn(ctx) in a child, which then dies by SIGKILL with whatever it holds, and waits for it.
 * fn's own exit is a failure.
 */
static inline void die_after(void (*fn)(void *ctx), void *ctx)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		fn(ctx);
		(void)kill(getpid(), SIGKILL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* xorshift64*: the same run every time. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

#endif
