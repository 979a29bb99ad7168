/* pool_scope: the scopes that have a box or are waited for, by owner and token. Runs in sbxd. */
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/log.h"
#include "supervisor/pool_int.h"

uint32_t pool_hash(uid_t uid, const char *text)
{
	return hash32(HASH32_START ^ (uint32_t)uid, text, strlen(text));
}

static struct pool_scope_list *scope_bucket(const struct pool *p, uid_t uid, const char *token)
{
	return &p->scopes[pool_hash(uid, token) & p->hash_mask];
}

struct pool_scope *pool_scope_get(const struct pool *p, uid_t uid, const char *token)
{
	struct pool_scope *s;

	LIST_FOREACH (s, scope_bucket(p, uid, token), hash_link) {
		if (s->uid == uid && !strcmp(s->token, token))
			return s;
	}
	return NULL;
}

struct pool_scope *pool_scope_named(const struct pool *p, uid_t uid, const char *name)
{
	struct pool_scope *s;

	LIST_FOREACH (s, &p->names[pool_hash(uid, name) & p->hash_mask], name_link) {
		if (s->uid == uid && !strcmp(s->name, name))
			break;
	}
	return s;
}

/* From now on `s` is found by that name, if it is one; nobody else has it. */
void pool_scope_name(struct pool *p, struct pool_scope *s, const char *name)
{
	if (!*name)
		return;
	(void)strlcpy(s->name, name, sizeof(s->name));
	LIST_INSERT_HEAD(&p->names[pool_hash(s->uid, s->name) & p->hash_mask], s, name_link);
}

/* Its name is free. */
void pool_scope_unname(struct pool_scope *s)
{
	if (s->name[0])
		LIST_REMOVE(s, name_link);
	s->name[0] = '\0';
}

struct pool_scope *pool_scope_make(
    struct pool *p, uid_t uid, const char *token, const uint8_t identity[32])
{
	struct pool_scope *s = calloc(1, sizeof(*s));

	INVARIANT(s != NULL);
	s->uid = uid;
	(void)strlcpy(s->token, token, sizeof(s->token));
	memcpy(s->identity, identity, sizeof(s->identity));
	TAILQ_INIT(&s->waiters);
	LIST_INSERT_HEAD(scope_bucket(p, uid, token), s, hash_link);
	return s;
}

void pool_scope_drop_if_empty(struct pool_scope *s)
{
	if (!s || s->box || !TAILQ_EMPTY(&s->waiters))
		return;
	pool_scope_unname(s);
	LIST_REMOVE(s, hash_link);
	free(s);
}

const struct pool_box *pool_box_find(const struct pool *p, uid_t uid, const char *token)
{
	const struct pool_scope *s = pool_scope_get(p, uid, token);

	return s ? s->box : NULL;
}
