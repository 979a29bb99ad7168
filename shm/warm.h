/*
 * warm: the list of warm boxes in the shared table, oldest first. Written by sbxd; read by anybody.
 *
 * As with index: sbxd changes its mirror parts and publishes those that changed. Up to three parts
 * change at a time; `changed` receives their slots, padded with SHM_NONE. list_seq is odd from
 * warm_begin() to warm_end(); the caller publishes the changed parts in between.
 */
#ifndef SBXD_SHM_WARM_H
#define SBXD_SHM_WARM_H

#include "shm/segment.h"

#define WARM_CHANGED 3

void warm_begin(struct segment *s);
void warm_end(struct segment *s);

/* Empties the list, between warm_begin() and warm_end(). */
void warm_clear(struct segment *s);

/* Appends as newest. */
void warm_append(
    struct segment *s, struct slot_sup *parts, uint32_t slot, uint32_t changed[WARM_CHANGED]);

/* Removes from wherever it stands; the slot must be on the list. */
void warm_remove(
    struct segment *s, struct slot_sup *parts, uint32_t slot, uint32_t changed[WARM_CHANGED]);

/* For readers: copies at most max slot numbers, oldest first. Returns the count, -EAGAIN when it
 * kept changing (or its writer died in the middle), -EINVAL when its links make no list. */
int warm_list(const struct segment *s, uint32_t *out, size_t max);

#endif
