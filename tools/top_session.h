/*
 * top_session: one run of sbxtop, without its terminal: the table, the model of it, the list.
 */
#ifndef SBXD_TOOLS_TOP_SESSION_H
#define SBXD_TOOLS_TOP_SESSION_H

#include "tools/top_options.h"
#include "tools/top_replay.h"
#include "tools/top_rows.h"
#include "tools/top_table.h"

struct top_session {
	struct top_table table;
	struct top_model *model;
	struct top_rows rows;
	struct top_layout layout;
	double interval; /* seconds */
	bool shows_all;	 /* of each box, whatever the layout says */
	bool replaying;
	struct top_replay replay;
};

/*
 * Prepares what the options and the settings ask for, and takes the first snapshot. 0; -ENOENT when
 * there is no table yet, which a later refresh may find; or -errno with *err. To be closed in any
 * case.
 */
int top_session_open(struct top_session *s, const struct top_options *o,
    const struct top_settings *set, struct err *err);
void top_session_close(struct top_session *s);

/* A new snapshot, of whatever table there is by now; in a replay, what was so an interval later. 0
 * or -errno with *err; the list is then as before. */
int top_session_refresh(struct top_session *s, struct err *err);

/* In a replay: so many events on, or back. 0 or -ENOMEM with *err. */
int top_session_step(struct top_session *s, long by, struct err *err);

#endif
