/* agent_link_int: what agent_link.c (receiving) and agent_chan.c (channels, sending) share. */
#ifndef SBXD_WORKER_AGENT_LINK_INT_H
#define SBXD_WORKER_AGENT_LINK_INT_H

#include "worker/agent_link.h"

/* Ends the link: ops->broken() is called, once. */
void link_break(struct agent_link *l, int code, const char *why);

/* The open channel of that number, or NULL. */
struct agent_chan *link_find_chan(struct agent_link *l, uint32_t id);

/* Writes what is queued, and wakes channels that wait for room. */
void link_flush(struct agent_link *l);

/* -EBADMSG when the guest gives more than it could have used up. */
int chan_add_credit(struct agent_chan *c, uint32_t n);

#endif
