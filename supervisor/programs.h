/* programs: where sbx-worker, sbx-guest and sbx-files are. */
#ifndef SBXD_SUPERVISOR_PROGRAMS_H
#define SBXD_SUPERVISOR_PROGRAMS_H

#include "lib/err.h"

struct sbxd;

/*
 * Finds sbx-worker (its path into s->worker_path), opens sbx-guest (s->guest_fd) and takes a copy
 * of sbx-files (s->helper_fd): beside sbxd, or installed in ../libexec/sbxd from there. 0 or -errno
 * with *err; descriptors stay s's then too.
 */
int programs_find(struct sbxd *s, struct err *err);

#endif
