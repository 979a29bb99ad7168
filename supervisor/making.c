/* making: boxes on their way into being. Runs in sbxd; if it dies, its successor closes what is
 * half made. */
#include "supervisor/making.h"

#include <bsd/string.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/client.h"
#include "supervisor/idempotency.h"
#include "supervisor/image_wait.h"
#include "supervisor/sbxd.h"

#define MAKING_INDEX UINT32_MAX /* no client has it: no making has a client's number */

struct making_client {
	LIST_ENTRY(making_client) link;
	uint64_t req;
};

/* It is in no list any more. */
static void making_free(struct making *m)
{
	struct making_client *w;

	while ((w = LIST_FIRST(&m->clients))) {
		LIST_REMOVE(w, link);
		free(w);
	}
	buf_free(&m->env);
	free(m);
}

void making_drop(struct making *m)
{
	LIST_REMOVE(m, link);
	making_free(m);
}

void makings_free(struct sbxd *s)
{
	struct making *m;

	while ((m = LIST_FIRST(&s->makings)))
		making_drop(m);
}

/* ---- the environment ---- */

static int put_configured(struct buf *b, const struct config_environment *env, json_t *own)
{
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < env->len; at += strlen(env->data + at) + 1) {
		const char *entry = env->data + at;

		if (!json_object_getn(own, entry, strcspn(entry, "=")))
			rc = buf_append(b, entry, strlen(entry) + 1);
	}
	return rc;
}

static int put_own(struct buf *b, json_t *own)
{
	const char *name;
	json_t *value;
	int rc = 0;

	json_object_foreach(own, name, value)
	{
		if (rc == 0)
			rc = buf_puts(b, name);
		if (rc == 0)
			rc = buf_puts(b, "=");
		if (rc == 0)
			rc = buf_append(b, json_string_value(value), json_string_length(value) + 1);
	}
	return rc;
}

/* ---- beginning ---- */

int making_begin(struct sbxd *s, uid_t uid, const char *token, const struct make_request *r,
    struct idempotent *key, struct making **out)
{
	struct making *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->req = ++s->makings_begun << 32 | MAKING_INDEX;
	m->uid = uid;
	m->key = key;
	LIST_INIT(&m->clients);
	LIST_INSERT_HEAD(&s->makings, m, link);
	(void)strlcpy(m->token, token, sizeof(m->token));
	(void)strlcpy(m->user, r->user ? r->user : "", sizeof(m->user));
	(void)strlcpy(m->working_dir, r->working_dir ? r->working_dir : "", sizeof(m->working_dir));
	buf_init(&m->env, CTL_TAIL_MAX);
	rc = put_configured(&m->env, &s->config.environment, r->env);
	if (rc == 0)
		rc = put_own(&m->env, r->env);
	if (rc == 0)
		*out = m;
	else
		making_drop(m);
	return rc == -ENOBUFS ? -EMSGSIZE : rc;
}

int making_join(struct making *m, struct client *c)
{
	struct making_client *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->req = client_req(c);
	LIST_INSERT_HEAD(&m->clients, w, link);
	client_wait(c);
	return 0;
}

/* ---- finding ---- */

struct making *making_by_req(const struct sbxd *s, uint64_t req)
{
	struct making *m;

	LIST_FOREACH (m, &s->makings, link) {
		if (m->req == req)
			break;
	}
	return m;
}

struct making *making_by_token(const struct sbxd *s, uid_t uid, const char *token)
{
	struct making *m;

	LIST_FOREACH (m, &s->makings, link) {
		if (m->uid == uid && !strcmp(m->token, token))
			break;
	}
	return m;
}

struct making *making_by_key(const struct sbxd *s, const struct idempotent *key)
{
	struct making *m;

	LIST_FOREACH (m, &s->makings, link) {
		if (m->key == key)
			break;
	}
	return m;
}

struct client *making_client(const struct sbxd *s, uint64_t req)
{
	const struct making *m = (uint32_t)req == MAKING_INDEX ? making_by_req(s, req) : NULL;
	const struct making_client *w = m ? LIST_FIRST(&m->clients) : NULL;

	return client_by_req(s->clients, w ? w->req : req);
}

/* ---- the end ---- */

/* The client's place in a making, or NULL. */
static struct making_client *find_client(const struct sbxd *s, uint64_t req, struct making **of)
{
	struct making *m;
	struct making_client *w = NULL;

	LIST_FOREACH (m, &s->makings, link) {
		LIST_FOREACH (w, &m->clients, link) {
			if (w->req == req)
				break;
		}
		if (w)
			break;
	}
	*of = m;
	return w;
}

void making_client_gone(struct sbxd *s, uint64_t req)
{
	struct making *m = NULL;
	struct making_client *w = find_client(s, req, &m);

	if (!w)
		return;
	LIST_REMOVE(w, link);
	free(w);
	if (m->key || !LIST_EMPTY(&m->clients))
		return;
	pool_client_gone(s->pool, loop_now(s->loop), m->req);
	image_wait_gone(s, m->req);
	making_drop(m);
}

void making_answer(
    struct sbxd *s, struct making *m, void (*fn)(struct client *c, void *ctx), void *ctx)
{
	struct making_client *w;

	LIST_REMOVE(m, link); /* who is answered may ask again, at once */
	while ((w = LIST_FIRST(&m->clients))) {
		struct client *c = client_by_req(s->clients, w->req);

		LIST_REMOVE(w, link);
		free(w);
		if (c)
			fn(c, ctx);
	}
	making_free(m);
}
