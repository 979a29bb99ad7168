/*
 * pool_past: the boxes that are gone, as far as they are remembered: whoever returns a lease of one
 * is told so, and not that there never was one. Runs in sbxd; a successor reads them in the flight
 * recorder.
 */
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "supervisor/pool_int.h"

#define PAST_BUCKETS 4096U

struct past_box {
	TAILQ_ENTRY(past_box) link;
	LIST_ENTRY(past_box) hash_link;
	uid_t uid;
	char token[SHM_TOKEN_LEN];
};
LIST_HEAD(past_bucket, past_box);

struct pool_past {
	TAILQ_HEAD(, past_box) order; /* the one that is forgotten next first */
	struct past_bucket buckets[PAST_BUCKETS];
	struct past_box boxes[POOL_PAST];
	uint32_t used; /* so many of them, from the first */
};

struct pool_past *pool_past_create(void)
{
	struct pool_past *t = calloc(1, sizeof(*t));

	if (t)
		TAILQ_INIT(&t->order);
	return t;
}

static struct past_bucket *bucket_of(struct pool_past *t, uid_t uid, const char *token)
{
	uint32_t hash = hash32(HASH32_START, &uid, sizeof(uid));

	return &t->buckets[hash32(hash, token, strlen(token)) % PAST_BUCKETS];
}

static struct past_box *find(struct pool_past *t, uid_t uid, const char *token)
{
	struct past_box *b;

	LIST_FOREACH (b, bucket_of(t, uid, token), hash_link) {
		if (b->uid == uid && !strcmp(b->token, token))
			break;
	}
	return b;
}

/* One that is free, or the one that has been gone for the longest. */
static struct past_box *take(struct pool_past *t)
{
	struct past_box *b;

	if (t->used < POOL_PAST)
		return &t->boxes[t->used++];
	b = TAILQ_FIRST(&t->order);
	LIST_REMOVE(b, hash_link);
	TAILQ_REMOVE(&t->order, b, link);
	return b;
}

void pool_past_add(struct pool *p, uid_t uid, const char *token)
{
	struct pool_past *t = p->past;
	struct past_box *b;

	if (*token == '\0')
		return; /* it was nobody's */
	b = find(t, uid, token);
	if (b) {
		TAILQ_REMOVE(&t->order, b, link);
	} else {
		b = take(t);
		b->uid = uid;
		(void)strlcpy(b->token, token, sizeof(b->token));
		LIST_INSERT_HEAD(bucket_of(t, uid, token), b, hash_link);
	}
	TAILQ_INSERT_TAIL(&t->order, b, link);
}

bool pool_past_has(const struct pool *p, uid_t uid, const char *token)
{
	return find(p->past, uid, token) != NULL;
}
