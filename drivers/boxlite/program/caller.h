/*
 * caller: the one thread that calls the library, so that a call which does not return stops
 * nothing but itself: the loop waits for it only as long as the order it belongs to may take.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_CALLER_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_CALLER_H

#include "drivers/boxlite/program/inbox.h"

/* Something to be called. Embedded in what it is about; alive until its NOTE_CALLED was taken. */
struct call {
	struct call *next;
	void (*fn)(struct call *c);   /* in the call thread */
	void (*then)(struct call *c); /* in the loop, after it; may be NULL */
	bool done;		      /* the loop's: set when NOTE_CALLED comes */
};

struct caller;

/* Starts the thread. NULL with errno. */
struct caller *caller_create(struct inbox *in);

/* The loop: has c->fn called after all that were posted before; then NOTE_CALLED with c as handle.
 */
void caller_post(struct caller *k, struct call *c);

/* Ends the thread after what was posted, and waits for it: not while a call hangs. */
void caller_free(struct caller *k);

#endif
