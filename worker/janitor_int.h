/* janitor_int: what the files of the janitor share among themselves. */
#ifndef SBXD_WORKER_JANITOR_INT_H
#define SBXD_WORKER_JANITOR_INT_H

#include "drivers/driver.h"
#include "worker/janitor.h"

#define DRIVER_AUTO "auto"

/* One order: 0 with *answer filled, or -errno with *err. */
typedef int janitor_fn(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err);

/* The driver that an order names. 0 or -ENOENT with *err. */
int janitor_driver(const struct ctl_site *wire, const struct driver **out, struct err *err);

/* janitor_prepare.c */
janitor_fn janitor_prepare;

/* janitor_clean.c */
janitor_fn janitor_cleanup;
janitor_fn janitor_sweep;
janitor_fn janitor_finish;

#endif
