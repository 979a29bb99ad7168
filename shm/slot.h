/*
 * slot: the state machine of a slot, and publishing and reading its two parts without tearing.
 */
#ifndef SBXD_SHM_SLOT_H
#define SBXD_SHM_SLOT_H

#include <stdbool.h>

#include "shm/layout.h"

/* True when the const transition table allows from -> to. States out of range are never allowed. */
bool slot_transition_allowed(uint32_t from, uint32_t to);

/* "warm" etc.; "?" when out of range. */
const char *slot_state_name(uint32_t state);
const char *slot_source_name(uint32_t source);

/* True in every state that counts against replicas: reserved to warm, not closing (it is on its way
 * out). */
bool slot_state_counts(uint32_t state);

#define SLOT_BOX_NAME_MAX 128U

/* What a client may call its box: 1 to 128 of [a-zA-Z0-9._-], first a letter or a digit. */
bool slot_box_name_is_sound(const char *name);

/*
 * Writes the whole supervisor part under its sequence counter. Only sbxd. When the generation
 * changes it is 0 in shared memory until the rest is in place, so that what a writer killed in the
 * middle leaves never mixes two boxes under the name of one.
 */
void slot_publish_sup(struct shm_slot *slot, const struct slot_sup *part);

/* Writes the whole worker part under its sequence counter. Only that slot's worker. */
void slot_publish_work(struct shm_page *page, const struct slot_work *part);

/*
 * Copies a part as it stood at one moment. Bounded: after many tries against a writer that never
 * finishes (it may have died in the middle) returns -EAGAIN and leaves *out untouched.
 */
int slot_read_sup(const struct shm_slot *slot, struct slot_sup *out);
int slot_read_work(const struct shm_page *page, struct slot_work *out);

/* Copies the supervisor part without regard to its counter: what a writer that is dead left there.
 */
void slot_salvage_sup(const struct shm_slot *slot, struct slot_sup *out);

/* Makes an odd sequence counter of a dead writer even again, after its part was rewritten or
 * proven. */
void slot_mend_seq(_Atomic uint32_t *seq);

/* Initialises a fresh slot: number, robust scope lock, everything else zero. 0 or -errno. */
int slot_init(struct shm_slot *slot, uint32_t number);

#endif
