/*
 * top_replay: walking back through what a dead sbxd has recorded: each state, lease and counter
 * that the flight recorder tells of is as it was then.
 */
#ifndef SBXD_TOOLS_TOP_REPLAY_H
#define SBXD_TOOLS_TOP_REPLAY_H

#include "tools/top_model.h"

/* Zero: nothing is replayed. */
struct top_replay {
	struct top_box *slots; /* as they are at the end */
	struct reader_summary sum;
	uint64_t started_ns;
	uint64_t heartbeat_ns;
	uint64_t end_ns;
	uint64_t end_wall_ms;
};

/* Begins with a frozen model, at its end. 0 or -ENOMEM. */
int top_replay_begin(struct top_replay *r, const struct top_model *m);
void top_replay_end(struct top_replay *r);

/*
 * Makes the model what it was just after the newest but `back` events; 0: the end; more than there
 * are: before the oldest. What workers report is not recorded, and only known at the end; so are
 * latencies.
 */
void top_replay_seek(const struct top_replay *r, struct top_model *m, size_t back);

/* Goes on by so much time (ns) from where the model is. False at the end. */
bool top_replay_play(const struct top_replay *r, struct top_model *m, uint64_t span);

#endif
