/*
 * worker_adopt: workers that outlived another supervisor become ours.
 *
 * A worker that is adopted says CTL_HELLO and then, with CTL_HELD, which client connections are in
 * its hands. Until then acquires for its box wait in the pool.
 */
#ifndef SBXD_SUPERVISOR_WORKER_ADOPT_H
#define SBXD_SUPERVISOR_WORKER_ADOPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ctl_msg;
struct sbxd;
struct worker;

/*
 * Takes over the live process `pid` (takes over pidfd) as the worker of a slot, and connects to it.
 * True: it is in s->workers[slot], connected or not; false: out of memory or descriptors, and it
 * was killed.
 */
bool worker_adopt(
    struct sbxd *s, uint32_t slot, uint64_t gen, pid_t pid, uint64_t start, int pidfd);

/* Tells the pool of the workers that could not be connected to: they are half-made. */
void workers_give_up_silent(struct sbxd *s);

/* CTL_HELLO and CTL_HELD of an adopted worker. NULL, or how it breaks the contract. */
const char *worker_adopt_hello(struct worker *w, const struct ctl_msg *m);
const char *worker_adopt_held(struct worker *w, struct ctl_msg *m);

/* Nothing more will be heard of what it has in its hands: it has said all, or is gone. Idempotent.
 */
void worker_adopt_done(struct worker *w);

#endif
