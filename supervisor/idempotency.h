/*
 * idempotency: what was answered to requests with an Idempotency-Key, so that one that is sent
 * again has the same answer and no further effect.
 *
 * A key is its uid's own. It is known for IDEMPOTENCY_LIFETIME, unless its uid has used many since;
 * in sbxd's memory only: a successor knows none. Pure: no I/O, no clock.
 */
#ifndef SBXD_SUPERVISOR_IDEMPOTENCY_H
#define SBXD_SUPERVISOR_IDEMPOTENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/clock.h"
#include "lib/digest.h"

#define IDEMPOTENCY_LIFETIME (24 * 3600 * NS_PER_S)
#define IDEMPOTENCY_KEY_MAX 128U /* bytes */
#define IDEMPOTENCY_PER_UID 256U
#define IDEMPOTENCY_ALL 2048U

struct idempotency;

/* One key. The caller reads it. */
struct idempotent {
	uint8_t digest[DIGEST_LEN]; /* of the request */
	bool done;
	struct buf body; /* done: the answer, a success, and its Location */
	char location[64];
};

/* NULL without memory. */
struct idempotency *idempotency_create(void);
void idempotency_free(struct idempotency *t);

/* The request of that key, under way or done; NULL when it is not known. */
struct idempotent *idempotency_find(
    struct idempotency *t, uid_t uid, const char *key, uint64_t now);

/*
 * A request of a key that is not known begins. The oldest that is done makes room. NULL: no memory,
 * or as many as there may be are under way.
 */
struct idempotent *idempotency_begin(struct idempotency *t, uid_t uid, const char *key,
    const uint8_t digest[DIGEST_LEN], uint64_t now);

/* It was answered. Without memory for the answer it is forgotten. */
void idempotency_done(struct idempotency *t, struct idempotent *i, const char *location,
    const void *body, size_t len);

/* It had no effect: it may be tried again. */
void idempotency_forget(struct idempotency *t, struct idempotent *i);

uint32_t idempotency_count(const struct idempotency *t);

#endif
