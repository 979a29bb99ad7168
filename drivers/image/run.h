/*
 * run: a jail's whole life, with bounds: how long, how much it may say, and what shall be looked at
 * meanwhile. `sbx-worker image`.
 */
#ifndef SBXD_DRIVERS_IMAGE_RUN_H
#define SBXD_DRIVERS_IMAGE_RUN_H

#include "drivers/image/jail.h"
#include "lib/buf.h"

#define RUN_TICK_MS 200

/* What bounds all programs of one order. */
struct image_watch {
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	int hangup;	      /* when this polls as hung up, nobody wants it any more; -1 none */
	/* Called every RUN_TICK_MS; a failure (with *err) ends the program. May be NULL. */
	int (*tick)(void *ctx, struct err *err);
	void *ctx;
};

/*
 * Runs it to its end; spec's out and err are set here. out: takes what it prints, at most as much
 * as it has room for; NULL: nobody wants that. 0; -errno with *err: -EPIPE nobody wants it any
 * more, -ETIMEDOUT, -ENOSPC, or what `name` said when it failed.
 */
int image_run(struct jail_spec *spec, const char *name, struct buf *out,
    const struct image_watch *watch, struct err *err);

/* The reason in what a program said last: its last message, without time and level. Into out. */
void image_run_reason(const char *said, char *out, size_t size);

#endif
