/*
 * program: what the files of sbx-boxlite share.
 *
 * START HERE. Three threads: the loop, which is everything of ours; the drain thread, in which the
 * library's callbacks run; the call thread, which calls the library. The latter two tell the loop
 * through the inbox and touch nothing else. main.c reads orders and serves them one at a time;
 * order.c has one function for each, straight code that waits by letting the loop turn (ask.c);
 * relay.c is between the stream and the agent in the box; shell*.c is what serves when there can be
 * no agent in the box.
 *
 * Each wait ends with its order's time. A library that does not answer until then is given up
 * together with this process: the driver sees it end, and what is left is removed by name.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_PROGRAM_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_PROGRAM_H

#include <pthread.h>

#include "drivers/boxlite/engine.h"
#include "drivers/boxlite/errors.h"
#include "drivers/boxlite/program/abi.h"
#include "drivers/boxlite/program/caller.h"
#include "drivers/boxlite/program/inbox.h"
#include "drivers/boxlite/program/relay.h"
#include "drivers/driver.h"
#include "lib/loop.h"

struct shell;

struct program {
	struct loop *loop;
	struct inbox *inbox;
	struct caller *caller;
	struct loop_watch inbox_watch;

	struct loop_watch control;
	bool hung_up; /* the driver is gone */
	bool ordered; /* `order` is to be served */
	struct eng_msg order;
	uint8_t packet[ENG_MSG_MAX]; /* what order's tail is in */
	uint64_t deadline_ns;	     /* of the order that is being served */

	struct blx_api api;
	struct driver_options options; /* malloc()ed; holds secrets */
	struct blx_runtime *runtime;
	bool remote;
	bool detach; /* the box outlives its worker */
	pthread_t drain;

	uint64_t tickets;
	bool answered;
	struct note *answer; /* to the newest ticket, once answered */

	char name[64];
	struct blx_box *box;   /* NULL: none is in hand */
	struct blx_box *spent; /* of a box that is removed: it goes with this process */
	bool started;	       /* it runs, as far as we know */
	bool plain;	       /* the server makes boxes without a command of their own only */
	struct blx_exec *exec; /* the agent's command */
	struct relay relay;
	struct blx_exec *mkdir; /* makes directories, for a moment */
	bool workspace;		/* the box has the directory where commands begin */
	struct shell *shell;	/* serves in the agent's place */
	bool ran;		/* exec has ended */
	int exit_code;
	char errors[INBOX_TEXT]; /* the last words of its standard error */
};

/* ---- main.c ---- */

/* Lets the loop turn until *flag, or the order's time is over. 0 or -ETIMEDOUT. */
int program_await(struct program *p, const bool *flag);

/* Lets it turn once. 0, or -ETIMEDOUT when the order's time is over. */
int program_turn(struct program *p);

/* Waits so long, at most to the order's deadline. */
void program_pause(struct program *p, uint64_t ns);

/* The library hangs in `what`, of which it said `before` when it was asked before (empty: nothing):
 * tells the driver and ends. */
void program_stuck(struct program *p, const char *what, const char *before)
    __attribute__((noreturn));

/* ---- ask.c ---- */

/* What a call of the library came to. */
struct answer {
	int code; /* BoxLite's */
	bool flag;
	void *handle;
	int64_t number;
	char text[INBOX_TEXT]; /* BoxLite's message */
	struct note *note;     /* free() it; NULL when there are no bytes */
};

/* Something to be asked of the library: `call` runs in the call thread. */
struct ask {
	struct call call; /* first */
	struct program *p;
	const char *what; /* for messages: "start the box" */
	/* Calls it: with ask_ticket() as context where an answer comes later. BoxLite's code. */
	int (*post)(struct ask *a, struct blx_error *error);
	bool later;	  /* its answer comes through a callback */
	const char *text; /* for post() */
	const void *arg;
	uint64_t ticket;
	int code; /* post()'s */
	char why[INBOX_TEXT];
};

/* Asks, and asks again while the error is one that may pass and there is time. 0, or -errno with
 * *err; *out is filled in any case. */
int ask(struct program *p, struct ask *a, struct answer *out, struct err *err);

/* Call thread: the context of a callback, which that takes back. */
void *ask_ticket(struct ask *a);

/* Callbacks, by what they bring. */
void ask_on_done(struct blx_error *error, void *ctx);
void ask_on_box(struct blx_box *box, struct blx_error *error, void *ctx); /* as if created */
void ask_on_got(struct blx_box *box, bool created, struct blx_error *error, void *ctx);
void ask_on_exit(int code, void *ctx); /* of a command: answer->number */
void ask_on_info(struct blx_info *info, struct blx_error *error, void *ctx);
void ask_on_list(struct blx_info_list *list, struct blx_error *error, void *ctx);
void ask_on_metrics(struct blx_metrics *metrics, struct blx_error *error, void *ctx);
void ask_on_pulled(struct blx_pulled *pulled, struct blx_error *error, void *ctx);

/* Fills *done from what failed. */
void ask_fail(const struct answer *a, const struct err *err, struct eng_done *done);

/* ---- order.c, start.c, take.c ---- */

/* Serves p->order and answers it. */
void order_serve(struct program *p);

int order_start(struct program *p, struct eng_done *done, struct err *err);

/* The box in hand is removed: nothing is asked of it any more. */
void program_spend_box(struct program *p);

/* Takes the running box of that name in hand. 0; -ENOENT: there is none; -ESHUTDOWN: it does not
 * run; or -errno; *got is filled in any case. */
int take_box(struct program *p, const char *name, struct answer *got, struct err *err);

/* Removes the box in hand, or the one of that name. 0, also when there is none; or -errno. */
int order_remove_box(struct program *p, const char *name, struct eng_done *done, struct err *err);

/* ---- open.c ---- */
int order_open(struct program *p, struct eng_done *done, struct err *err);

#endif
