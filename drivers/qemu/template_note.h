/* template_note: what a template must look like to be whole. */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATE_NOTE_H
#define SBXD_DRIVERS_QEMU_TEMPLATE_NOTE_H

#include "drivers/qemu/plan.h"
#include "drivers/qemu/store.h"

#define TEMPLATE_MEMORY STORE_TEMPLATE_MEMORY
#define TEMPLATE_STATE "state"
#define TEMPLATE_NOTE "note"

struct template_note {
	uint32_t size; /* of this */
	uint32_t tsc_khz;
	uint8_t digest[DIGEST_LEN]; /* what it was made of */
	uint64_t memory[3];	    /* size and time of the last change (s, ns) */
	uint8_t state[DIGEST_LEN];  /* of all of it */
	uint8_t check[DIGEST_LEN];  /* of all of the above */
};

/* Writes what the files look like now. 0 or -errno. */
int template_note_fill(struct template_note *note, const struct qemu_plan *plan,
    const uint8_t digest[DIGEST_LEN], int memory, int state);

/* 0, -EBADMSG: it is damaged, -ESTALE: it was made where time runs at another speed; or -errno. */
int template_note_check(const struct template_note *note, const struct qemu_plan *plan,
    const uint8_t digest[DIGEST_LEN], int memory, int state);

#endif
