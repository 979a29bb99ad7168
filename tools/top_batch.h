/* top_batch: sbxtop -b and --json: snapshots on stdout. */
#ifndef SBXD_TOOLS_TOP_BATCH_H
#define SBXD_TOOLS_TOP_BATCH_H

#include "tools/top_session.h"

/* Prints the snapshot that the session has, and more as the options ask for. 0 or -errno with *err;
 * a reader that went away is none. */
int top_batch_run(struct top_session *s, const struct top_options *o, struct err *err);

#endif
