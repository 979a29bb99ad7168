/* idempotency: keys and answers, oldest first. Runs in sbxd; lost when it ends. */
#include "supervisor/idempotency.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	TAILQ_ENTRY(entry) link;
	struct idempotent known; /* what the caller has */
	uid_t uid;
	uint64_t begun;
	char key[IDEMPOTENCY_KEY_MAX + 1];
};
TAILQ_HEAD(entries, entry);

struct idempotency {
	struct entries entries;
	uint32_t count;
};

#define ENTRY(i) ((struct entry *)(void *)((char *)(i)-offsetof(struct entry, known)))

struct idempotency *idempotency_create(void)
{
	struct idempotency *t = calloc(1, sizeof(*t));

	if (t)
		TAILQ_INIT(&t->entries);
	return t;
}

void idempotency_forget(struct idempotency *t, struct idempotent *i)
{
	struct entry *e = ENTRY(i);

	TAILQ_REMOVE(&t->entries, e, link);
	t->count--;
	buf_free(&e->known.body);
	free(e);
}

void idempotency_free(struct idempotency *t)
{
	struct entry *e;

	if (!t)
		return;
	while ((e = TAILQ_FIRST(&t->entries)))
		idempotency_forget(t, &e->known);
	free(t);
}

uint32_t idempotency_count(const struct idempotency *t)
{
	return t->count;
}

/* One under way is known until it is done. */
static void drop_expired(struct idempotency *t, uint64_t now)
{
	struct entry *e;
	struct entry *next;

	TAILQ_FOREACH_SAFE (e, &t->entries, link, next) {
		if (now < e->begun + IDEMPOTENCY_LIFETIME)
			return;
		if (e->known.done)
			idempotency_forget(t, &e->known);
	}
}

struct idempotent *idempotency_find(struct idempotency *t, uid_t uid, const char *key, uint64_t now)
{
	struct entry *e;

	drop_expired(t, now);
	TAILQ_FOREACH (e, &t->entries, link) {
		if (e->uid == uid && !strcmp(e->key, key))
			return &e->known;
	}
	return NULL;
}

/* Room for one more of that uid: for its own oldest when it has many, else for the oldest of all.
 */
static bool make_room(struct idempotency *t, uid_t uid)
{
	struct entry *e;
	struct entry *own = NULL;
	struct entry *any = NULL;
	uint32_t owns = 0;

	TAILQ_FOREACH (e, &t->entries, link) {
		owns += e->uid == uid;
		if (e->known.done && e->uid == uid && !own)
			own = e;
		if (e->known.done && !any)
			any = e;
	}
	if (owns < IDEMPOTENCY_PER_UID && t->count < IDEMPOTENCY_ALL)
		return true;
	e = owns < IDEMPOTENCY_PER_UID ? any : own;
	if (e)
		idempotency_forget(t, &e->known);
	return e != NULL;
}

struct idempotent *idempotency_begin(struct idempotency *t, uid_t uid, const char *key,
    const uint8_t digest[DIGEST_LEN], uint64_t now)
{
	struct entry *e = make_room(t, uid) ? calloc(1, sizeof(*e)) : NULL;

	if (!e)
		return NULL;
	e->uid = uid;
	e->begun = now;
	(void)strlcpy(e->key, key, sizeof(e->key));
	memcpy(e->known.digest, digest, DIGEST_LEN);
	TAILQ_INSERT_TAIL(&t->entries, e, link);
	t->count++;
	return &e->known;
}

void idempotency_done(
    struct idempotency *t, struct idempotent *i, const char *location, const void *body, size_t len)
{
	buf_init(&i->body, len);
	if (buf_append(&i->body, body, len) < 0) {
		idempotency_forget(t, i);
		return;
	}
	(void)strlcpy(i->location, location, sizeof(i->location));
	i->done = true;
}
