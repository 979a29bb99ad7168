/*
 * janitor: the privileged helper of sbxd that does, one after the other, what drivers must do
 * outside of any worker: prepare, clean up after dead boxes, sweep, finish.
 */
#ifndef SBXD_WORKER_JANITOR_H
#define SBXD_WORKER_JANITOR_H

#include "lib/buf.h"
#include "wire/control.h"

/* Serves sbxd on CTL_FD_CONTROL until that ends. Exit status of the process. */
int janitor_main(void);

/* What an order is answered. */
struct janitor_answer {
	struct ctl_done done;
	int fd;		 /* to go with it, owned; -1 none */
	struct buf tail; /* owned */
};

/*
 * Does what one message asks and fills *answer, to be freed. prepared: the memfd that came with it,
 * else -1. A message of another kind is answered with EBADMSG.
 */
void janitor_handle(const struct ctl_msg *msg, int prepared, struct janitor_answer *answer);
void janitor_answer_free(struct janitor_answer *answer);

#endif
