/*
 * agent_link_int: what agent_link.c (receiving), agent_frame.c (what is no data), agent_pipe.c
 * (data that is only passed on), agent_pour.c (the same towards the guest) and agent_chan.c
 * (channels, sending) share.
 */
#ifndef SBXD_WORKER_AGENT_LINK_INT_H
#define SBXD_WORKER_AGENT_LINK_INT_H

#include "worker/agent_link.h"

/* Ends the link: ops->broken() is called, once. */
void link_break(struct agent_link *l, int code, const char *why);

/* The open channel of that number, or NULL. */
struct agent_chan *link_find_chan(struct agent_link *l, uint32_t id);

/* Writes what is queued, and wakes channels that wait for room. */
void link_flush(struct agent_link *l);

/* Ends a hold; what was left unread is read from the loop. */
void link_release(struct agent_link *l);

/* Deals with what has been read, as far as it is complete and wanted. */
void link_parse(struct agent_link *l);

/* agent_frame.c: deals with one whole frame that is not data. */
void link_dispatch(struct agent_link *l, const struct agent_head *h, const uint8_t *payload);

/* agent_pipe.c: whether data is to go through the pipe now; reading that way; what is in it on to
 * its channel; the pipe's end. */
bool link_may_pipe(const struct agent_link *l);
void link_poll_pipe(struct agent_link *l);
void link_pump_pipe(struct agent_link *l);
void link_close_pipe(struct agent_link *l);

/* agent_pour.c: puts more of the poured frame on the stream; the pipe's end. */
void link_pour_on(struct agent_link *l);
void link_close_pour(struct agent_link *l);

/* The events that the stream is to be watched for now. 0 or -errno. */
int link_watch(struct agent_link *l);

/* -EBADMSG when the guest gives more than it could have used up. */
int chan_add_credit(struct agent_chan *c, uint32_t n);

#endif
