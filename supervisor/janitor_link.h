/*
 * janitor_link: the janitor as sbxd sees it: the one privileged helper that does what drivers do
 * outside of a box (probe, prepare, clean up), so that sbxd itself never waits for a driver.
 */
#ifndef SBXD_SUPERVISOR_JANITOR_LINK_H
#define SBXD_SUPERVISOR_JANITOR_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "wire/control.h"

struct sbxd;

/* What an answer may bring besides. */
struct janitor_more {
	int *fd; /* to be taken (fd_take()), else it is closed */
	const void *tail;
	size_t tail_len;
};

/* Called once with the answer. done->code is ETIMEDOUT when no answer came, whatever was tried;
 * more is NULL then. */
typedef void janitor_done_fn(
    struct sbxd *s, void *ctx, const struct ctl_done *done, struct janitor_more *more);

/* Starts the janitor process. 0 or -errno with *err. */
int janitor_start(struct sbxd *s, struct err *err);

/* What is to be done; everything is copied. */
struct janitor_order {
	enum ctl_type type;
	const void *body; /* the struct of that type */
	size_t len;
	int fd; /* for CTL_PREPARE, open until fn is called; else -1 */
	janitor_done_fn *fn;
	void *ctx;
};

/*
 * Sends an order: CTL_PREPARE, CTL_CLEANUP, CTL_SWEEP or CTL_FINISH with its struct. Orders are
 * idempotent: a janitor that dies or hangs is replaced, and what it had not answered is sent again,
 * a bounded number of times. fn is always called, later, from the loop. 0 or -ENOMEM.
 */
int janitor_order(struct sbxd *s, const struct janitor_order *order);

/* Ends the janitor process and forgets what it was ordered to do. */
void janitor_stop(struct sbxd *s);

#endif
