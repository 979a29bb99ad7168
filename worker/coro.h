/*
 * coro: a function that can stop in the middle and go on later, on a stack of its own. sbx-worker
 * only.
 *
 * For code that is not ours and wants its input by calling for it, where the loop has it only bit
 * by bit: the worker has no threads, and its system call filter does not let it make any. Within
 * one process only one coroutine runs at a time; none resumes another.
 */
#ifndef SBXD_WORKER_CORO_H
#define SBXD_WORKER_CORO_H

#include <stdbool.h>

struct coro;

typedef void coro_fn(void *arg);

/* fn is called with the first coro_resume(). NULL when there is no memory. */
struct coro *coro_create(coro_fn *fn, void *arg);

/* Runs it until it suspends itself or returns. False: it has returned, and is not to be resumed. */
bool coro_resume(struct coro *c);

/* From within: coro_resume() returns true, and this call returns with the next one. */
void coro_suspend(struct coro *c);

/*
 * One that was never resumed, or has returned: what is suspended may hold things that only its own
 * stack knows of, and is brought to its end first. NULL does nothing.
 */
void coro_free(struct coro *c);

#endif
