/*
 * loop: one thread around epoll, with timers.
 *
 * Watches and timers are embedded in their owner's struct; the loop owns neither their memory nor
 * their descriptors. A watch or timer may be removed, and its owner freed, from within any
 * callback.
 */
#ifndef SBXD_LIB_LOOP_H
#define SBXD_LIB_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;
struct loop_watch;
struct loop_timer;

typedef void loop_watch_fn(struct loop *l, struct loop_watch *w, uint32_t events);
typedef void loop_timer_fn(struct loop *l, struct loop_timer *t);

struct loop_watch {
	int fd; /* -1 when not in a loop */
	uint32_t events;
	loop_watch_fn *fn;
};

struct loop_timer {
	uint64_t at; /* CLOCK_MONOTONIC, ns */
	size_t pos;  /* 1-based place in the heap, 0 when not set */
	loop_timer_fn *fn;
};

/* The struct that embeds member m at address p. */
#define LOOP_OWNER(p, type, m) ((type *)(void *)((char *)(p)-offsetof(type, m)))

/* A new loop, or NULL with errno set. */
struct loop *loop_create(void);
void loop_destroy(struct loop *l);

/* Watches fd (which stays the caller's) for EPOLL* events. 0 or -errno. */
int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events, loop_watch_fn *fn)
    __attribute__((warn_unused_result));

/* Changes the events; nothing is done when they are the same. 0 or -errno. */
int loop_mod(struct loop *l, struct loop_watch *w, uint32_t events);

/* Stops watching; does not close. Harmless on a watch that is not in the loop (fd is -1). */
void loop_del(struct loop *l, struct loop_watch *w);

/* Sets or moves a timer; fn runs once, in the loop, at or after `at`. 0 or -ENOMEM. */
int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at, loop_timer_fn *fn)
    __attribute__((warn_unused_result));
void loop_timer_clear(struct loop *l, struct loop_timer *t);

/* Monotonic time, read once per round of callbacks. */
uint64_t loop_now(const struct loop *l);

/* Runs until loop_quit(). 0 or -errno of epoll. */
int loop_run(struct loop *l);

/* One round: waits at most max_wait_ns for something to happen, then runs what is due. 0 or -errno.
 */
int loop_step(struct loop *l, uint64_t max_wait_ns);
void loop_quit(struct loop *l);

#endif
