/* programs: where sbx-worker and sbx-guest are. */
#ifndef SBXD_SUPERVISOR_PROGRAMS_H
#define SBXD_SUPERVISOR_PROGRAMS_H

#include "lib/err.h"

struct sbxd;

/*
 * Finds sbx-worker (its path into s->worker_path) and opens sbx-guest (s->guest_fd): beside sbxd,
 * or installed in
 * ../libexec/sbxd from there. 0 or -errno with *err.
 */
int programs_find(struct sbxd *s, struct err *err);

#endif
