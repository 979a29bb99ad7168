/*
 * link: an sbx-boxlite of one's own, and orders to it. Worker and janitor.
 */
#ifndef SBXD_DRIVERS_BOXLITE_LINK_H
#define SBXD_DRIVERS_BOXLITE_LINK_H

#include <stdbool.h>
#include <sys/types.h>

#include "drivers/boxlite/engine.h"
#include "drivers/driver.h"

struct link {
	int control;
	int pidfd;
	pid_t pid;
	uint64_t start;		 /* as proc_start_time() */
	uint64_t seq;		 /* of the newest order */
	void (*busy)(void *ctx); /* may be NULL: called now and then while an order lasts */
	void *busy_ctx;
	char why[200]; /* what the program says that its box died of; empty: nothing */
	uint8_t packet[ENG_MSG_MAX];
};

/* For each ENG_NAME of a list. */
typedef int link_name_fn(void *ctx, const char *name);

/* What is to be done. */
struct link_order {
	enum eng_type type;
	const void *body; /* its time_ms is `time_ms` */
	uint32_t time_ms;
	const struct driver_options *options; /* ENG_OPEN */
	int fd;				      /* ENG_START: the stream; else -1 */
	link_name_fn *name;		      /* ENG_LIST */
	void *ctx;
};

/* Starts the program, which stands beside ours. 0 or -errno with *err; then nothing is left. */
int link_open(struct link *l, struct err *err);

/* Gives an order and waits for its answer. 0 with *done; or -errno with *err: what the answer says,
 * -EPIPE when the program has ended, -ETIMEDOUT when it has said nothing in time. */
int link_order(
    struct link *l, const struct link_order *order, struct eng_done *done, struct err *err);

/* Opens the library: ENG_OPEN. home: "" in remote mode. 0 or -errno. */
int link_open_library(struct link *l, const struct driver_options *options, const char *home,
    uint32_t time_ms, struct eng_done *done, struct err *err);

/* ENG_STATS, ENG_STOP, ENG_REMOVE, ENG_LOOK, ENG_LIST. */
int link_order_name(struct link *l, enum eng_type type, const char *name, uint32_t time_ms,
    struct eng_done *done, struct err *err);

/* ENG_SEQ_DIED, which may come between an order and its answer: keeps what it says. True: it was.
 */
bool link_take_died(struct link *l, const struct eng_msg *msg);

/* Hangs up and waits until the program is gone; it is killed when it takes longer than wait_ms. */
void link_close(struct link *l, uint32_t wait_ms);

/* Reaps it, once its pidfd says that it has ended. *killed: by a signal. 0 or -errno. */
int link_reap(const struct link *l, bool *killed);

#endif
