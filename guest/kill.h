/*
 * kill: ends the whole trees of commands that were closed, and all there is for AGENT_STOP.
 * sbx-guest.
 *
 * In rounds: look at every process (tree.c), stop those below a closing command until no new one
 * appears, then kill them all, then look again until their shim says that nothing is left. What is
 * stopped cannot fork, so a fork bomb runs out of pids for new processes while ours need none, and
 * what is to end by itself is told as a whole.
 * Rounds are cut into slices, so that other channels go on meanwhile.
 */
#ifndef SBXD_GUEST_KILL_H
#define SBXD_GUEST_KILL_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/tree.h"

struct guest;

enum kill_stage {
	KILL_IDLE = 0,
	KILL_SCAN,   /* looking at processes */
	KILL_SIGNAL, /* stopping or killing what was found */
	KILL_WAIT,   /* letting them die */
};

struct killer {
	enum kill_stage stage;
	bool stopped;	     /* all that was seen is stopped: they are being killed */
	unsigned int rounds; /* of stopping, since the last kill */
	unsigned int kills;  /* since a command began to close: the wait grows */
	uint32_t next;	     /* entry of the tree to signal next */
	bool found_running;
	bool marked_all; /* this round is about everything that descends from us, for a stop */
	uint64_t at;	 /* when to go on */
	struct tree tree;
};

/* A command is closing now, or a stop has begun. */
void kill_begin(struct guest *g);

/* The stop is given up: what belongs to no closing command goes on. */
void kill_cancel(struct guest *g);

/* Lowers *at to when kill_step() has something to do. */
void kill_wait(const struct guest *g, uint64_t *at);

/* One slice of work, if it is time. */
void kill_step(struct guest *g);

/* Kills every process that we may and that is ours: all others in the box as PID 1, else our
 * descendants, and waits until these are gone. */
void kill_everything(struct guest *g);

#endif
