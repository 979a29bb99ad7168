/*
 * bench_turn: one turn, and what scenarios do around it.
 */
#ifndef SBXD_TOOLS_BENCH_TURN_H
#define SBXD_TOOLS_BENCH_TURN_H

#include "tools/bench_client.h"
#include "tools/bench_plan.h"

/* A box by its name and generation: which of the scope's boxes it was. */
struct bench_box {
	char id[64];
	char lease[64];
	json_int_t generation;
};

/*
 * Turn i of the plan. *r is filled whatever happens, and *box (may be NULL) with the box that it
 * had,
 * "" for none. Returns 0, or the -errno of what failed first; -EIO for an answer or a command that
 * is not as it should be.
 */
int bench_turn(struct bench_client *cl, const struct bench_plan *p, uint32_t i, struct bench_row *r,
    struct bench_box *box);

/* A turn that is not tried: *r says so. */
void bench_turn_refuse(
    const struct bench_plan *p, uint32_t i, const char *why, struct bench_row *r);

/* Waits until that warm box is gone. 0, -ETIMEDOUT after the idle timeout and half a minute, or
 * -errno, with *err. */
int bench_await_idle_close(struct bench_client *cl, const struct bench_plan *p,
    const struct bench_box *box, struct err *err);

/* Kills the first process of a warm box, as if it had crashed. Says so on stderr, also when there
 * is no such box. */
void bench_inject_fault(struct bench_client *cl, const struct bench_box *box);

/* A box that is in use all the time: its acquire, and whether it is still the same. 0 or -errno. */
int bench_hold(
    struct bench_client *cl, const struct bench_plan *p, struct bench_box *box, struct err *err);
int bench_hold_check(struct bench_client *cl, const struct bench_box *box, struct err *err);

#endif
