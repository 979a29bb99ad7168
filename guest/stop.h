/*
 * stop: AGENT_STOP: every process of the box but our own ends, and the box stays. sbx-guest.
 *
 * kill.c does the work, in its rounds: with a stop under way all that descends from us is stopped,
 * told to end and let go on, and killed when its time is up. Shims are our own and stay.
 */
#ifndef SBXD_GUEST_STOP_H
#define SBXD_GUEST_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest;

struct stop {
	bool active;
	bool told;	    /* all that was there has SIGTERM */
	unsigned int empty; /* looks that found nothing, in a row */
	uint64_t kill_at;   /* SIGKILL from then on */
	uint64_t nonce;	    /* of the answer */
};

/* A guest's stop(). */
int stop_begin(struct guest *g, const uint8_t *payload, size_t n);

/* There is something to look for. */
bool stop_goes_on(const struct guest *g);

/*
 * Marks all that a stop is about, in the tree that kill.c has just read, where no closing command
 * has marked it. False: nothing is to be done to it now.
 */
bool stop_mark(struct guest *g);

/* Answers when all are gone. */
void stop_step(struct guest *g);

#endif
