/*
 * relay: the agent's byte stream, between a socket (the worker's end is its stream to the guest)
 * and a command in the box. Both ways it is in pieces (wire/piece.h): one that is wrong ends it.
 *
 * Nothing is read from the socket while the library has not taken what was read before; nothing
 * more is taken from the library than INBOX_OUTPUT_MAX while the socket is full.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_RELAY_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/boxlite/program/caller.h"
#include "drivers/boxlite/program/pieces.h"
#include "lib/buf.h"
#include "lib/loop.h"

#define RELAY_TEXT 160

struct program;

struct relay {
	struct program *p;
	int stream; /* ours; -1: nobody is at its other end any more */
	struct loop_watch watch;
	struct call write; /* while `writing`: the library has not taken `in` yet */
	bool running;	   /* the command can be written to */
	bool writing;
	bool ended;   /* the worker sends no more */
	bool greeted; /* the agent has said HELLO */
	bool broken;  /* what came is no such stream, or nobody takes it: nothing goes through */
	int write_code;
	struct piece_way to; /* the box */
	uint8_t in[PIECE_MAX];
	size_t in_len;
	struct buf out;	      /* decoded, on its way to the worker */
	size_t passing;	      /* bytes of output that are in `out` */
	struct pieces from;   /* the box */
	char why[RELAY_TEXT]; /* of a stream that came wrong; else empty */
};

/* Takes the stream over, and watches it. 0 or -errno. */
int relay_begin(struct relay *r, struct program *p, int stream);

/* The command runs: what the worker sends is for it. */
void relay_run(struct relay *r);

/* Takes output of the command. */
void relay_output(struct relay *r, const uint8_t *bytes, size_t n);

/* Nothing goes through any more; the stream stays open. Returns it: the caller's. */
int relay_give_up(struct relay *r);

/* The same, and the worker is told by the stream's end. Harmless when done already. */
void relay_close(struct relay *r);

#endif
