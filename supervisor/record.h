/*
 * record: the flight recorder: what sbxd writes into the ring of the shared table, and says in its
 * log.
 */
#ifndef SBXD_SUPERVISOR_RECORD_H
#define SBXD_SUPERVISOR_RECORD_H

#include "supervisor/pool.h"

struct client;
struct sbxd;

/* A POOL_RECORD action. Counts what it stands for. */
void record_action(struct sbxd *s, const struct pool_action *a);

/* A lease was given: ties the request's id to the box. c: who asked, NULL when it is gone. */
void record_lease(
    struct sbxd *s, const struct pool_action *a, const struct pool_box *b, const struct client *c);

/* The scope lock of `slot` was recovered from a dead holder. */
void record_recovery(struct sbxd *s, uint32_t slot);

/* Something about sbxd itself. */
void record_self(struct sbxd *s, enum shm_event_kind kind, const char *why);

#endif
