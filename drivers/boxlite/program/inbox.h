/*
 * inbox: what other threads have to tell the loop.
 *
 * The library's callbacks run in the drain thread, its slow calls in the call thread; neither
 * touches anything but this box. The loop is woken by an eventfd, and takes everything out at once.
 * What a command prints is bounded: who brings more than fits waits until the loop has passed it
 * on.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_INBOX_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INBOX_OUTPUT_MAX (1024U * 1024U) /* of output that is not yet passed on */
#define INBOX_TEXT 200

enum note_kind {
	NOTE_CALLED, /* the call thread has done `call` */
	NOTE_ANSWER, /* a callback: the answer to what was queued under `ticket` */
	NOTE_OUTPUT, /* bytes of the agent's standard output */
	NOTE_ERRORS, /* bytes of its standard error */
	NOTE_EXIT,   /* the agent's command has ended: code */
	NOTE_CLOSED, /* the drain thread has ended */
};

struct note {
	struct note *next;
	enum note_kind kind;
	uint64_t ticket;
	int code;	       /* NOTE_ANSWER: BoxLite's; NOTE_EXIT: the exit status */
	bool flag;	       /* NOTE_ANSWER: created; the box runs */
	void *handle;	       /* NOTE_ANSWER: a box, the taker's; NOTE_CALLED: the call */
	int64_t number;	       /* NOTE_ANSWER: memory in bytes */
	char text[INBOX_TEXT]; /* NOTE_ANSWER: BoxLite's message */
	size_t len;
	uint8_t bytes[]; /* len of them */
};

struct inbox;

/* NULL with errno. */
struct inbox *inbox_create(void);

/* When no other thread uses it any more. Frees what was not taken. */
void inbox_free(struct inbox *in);

/* Polls readable while there is something. */
int inbox_fd(const struct inbox *in);

/* Any thread. A note with `len` bytes copied from `bytes`, to be filled and put; NULL: no memory.
 */
struct note *note_new(enum note_kind kind, uint64_t ticket, const void *bytes, size_t len);

/* Any thread. Puts a note (from then on the inbox's), waiting while there is too much output. NULL
 * stands for one that there was no memory for: inbox_lost() is true from then on. */
void inbox_put(struct inbox *in, struct note *n);

/* The loop. All that is there, in order; free() each. */
struct note *inbox_take(struct inbox *in);

/* The loop: so many bytes of output were passed on. */
void inbox_passed(struct inbox *in, size_t n);

bool inbox_lost(struct inbox *in);

#endif
