/* alone: ends all else in the box. sbx-guest, before it says anything; if we die here the box is
 * taken over by nobody. */
#include "guest/alone.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define ALONE_SLICE 256U
#define ALONE_ROUNDS 300U	/* of one tick: three seconds */
#define ALONE_TICK_NS 10000000L /* USER_HZ, by which /proc counts, is 100 */
#define ALONE_TICKS_PER_SECOND 100U

/* As /proc/PID/stat says when a process began. */
static uint64_t ticks_now(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &now); /* there is that clock */
	return (uint64_t)now.tv_sec * ALONE_TICKS_PER_SECOND +
	       (uint64_t)(now.tv_nsec / ALONE_TICK_NS);
}

/* 1: something that began by then is still there; 0; -errno. */
static int look_for_older(struct tree *t, uint64_t began)
{
	pid_t self = getpid();
	int rc = tree_begin(t);
	int found = 0;

	if (rc != 0)
		return rc;
	do {
		rc = tree_read(t, ALONE_SLICE);
	} while (rc > 0);
	for (uint32_t i = 0; rc == 0 && !found && i < t->count; i++) {
		const struct tree_entry *e = &t->entries[i];

		found = e->pid != 1 && e->pid != self && e->start <= began && e->state != 'Z' &&
			e->state != 'X';
	}
	tree_end(t);
	return rc < 0 ? rc : found;
}

/*
 * One kill(-1) ends all there are at that moment: nothing can fork its way out of it. But the first
 * process may start others at once, as one that keeps a box alive with sleep does, and we must not
 * wait for those. So: all are killed, once more in a later tick, and waited for are those that
 * began in the first or before; each of them was hit by one of the two.
 */
int alone_make(struct tree *t)
{
	const struct timespec tick = {.tv_nsec = ALONE_TICK_NS};
	uint64_t began;
	int rc = 1;

	if (getppid() != 0)
		return -EXDEV;
	if (kill(-1, SIGKILL) != 0 && errno != ESRCH)
		return -errno;
	began = ticks_now();
	for (unsigned int i = 0; i < ALONE_ROUNDS && rc == 1; i++) {
		do {
			(void)nanosleep(&tick, NULL);
		} while (ticks_now() == began);
		if (i == 0 && kill(-1, SIGKILL) != 0 && errno != ESRCH)
			return -errno;
		rc = look_for_older(t, began);
	}
	return rc == 1 ? -EBUSY : rc;
}
