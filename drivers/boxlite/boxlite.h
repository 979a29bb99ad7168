/*
 * boxlite: the driver of BoxLite's micro-VMs, on this host or on a BoxLite server, and its
 * functions that other files hold. See drivers/driver.h for what each must do.
 *
 * START HERE. The library that drives BoxLite brings threads and an async runtime of its own: it is
 * in a program of its own, sbx-boxlite (program/), one for each box, and the worker stays a static
 * program without threads. engine.h is what the two say to each other; link.c starts it, start.c
 * and boxlite.c are the worker's side of a box, prepare.c and sweep.c the janitor's.
 */
#ifndef SBXD_DRIVERS_BOXLITE_BOXLITE_H
#define SBXD_DRIVERS_BOXLITE_BOXLITE_H

#include <stdbool.h>

#include "drivers/boxlite/link.h"
#include "drivers/boxlite/place.h"
#include "drivers/driver.h"

extern const struct driver driver_boxlite;

/* A box in its worker's hands. */
struct driver_box {
	struct link link;
	bool reaped;
	bool stopping; /* ENG_STOP was sent */
	bool asked;    /* ENG_STATS was sent, and is not answered yet */
	bool shell;    /* there is no agent in it */
	bool outlives; /* it lives on without us, and its agent with it */
	bool remote;
	bool removed;  /* ENG_STOP was answered, and it is gone */
	int stop_code; /* what ENG_STOP was answered: 0 or errno */
	struct driver_stats stats;
};

bool boxlite_takes(const char *image);
int boxlite_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err);
int boxlite_prepare(const struct driver_site *site, const char *image, struct err *err);
int boxlite_list(const struct driver_site *site, driver_list_fn *fn, void *ctx);
int boxlite_adopt(const struct driver_site *site, const char *name, struct err *err);
int boxlite_cleanup(
    const struct driver_site *site, const char *name, pid_t pid, uint64_t start, struct err *err);
int boxlite_finish(const struct driver_site *site, struct err *err);
int boxlite_start(const struct driver_site *site, const struct driver_spec *spec,
    struct driver_box **box, int *stream, struct err *err);

/* Ends the sbx-boxlite that the record of box `name` speaks of, if it lives. 0 or -errno. */
int boxlite_kill_recorded(const struct place *place, const char *name);

/* Makes sure that no box of that name is there, and no home of it: with a library of its own. 0 or
 * -errno with *err. */
int boxlite_remove_box(const struct driver_site *site, const struct place *place,
    const struct driver_options *options, const char *name, struct err *err);

#endif
