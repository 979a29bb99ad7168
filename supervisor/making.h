/*
 * making: boxes that are being made by POST /v1/boxes: what they are to have beyond what the pool
 * knows, and who waits for them.
 *
 * A making, not a client, is what the pool knows as the request: with an Idempotency-Key it goes on
 * when its client is gone, and others may join it.
 */
#ifndef SBXD_SUPERVISOR_MAKING_H
#define SBXD_SUPERVISOR_MAKING_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "shm/layout.h"
#include "supervisor/make_request.h"
#include "wire/control.h"

struct client;
struct idempotent;
struct making_client;
struct pool_action;
struct sbxd;

struct making {
	LIST_ENTRY(making) link;
	uint64_t req; /* names it in the pool */
	uid_t uid;
	char token[SHM_TOKEN_LEN];
	char user[CTL_USER];
	char working_dir[CTL_WORKING_DIR];
	struct buf env;		/* "K=V\0"...: the configured variables and its own */
	struct idempotent *key; /* NULL without */
	LIST_HEAD(, making_client) clients;
};

/* A new one, in s->makings. 0, -EMSGSIZE (all variables together are too long), -ENOMEM. */
int making_begin(struct sbxd *s, uid_t uid, const char *token, const struct make_request *r,
    struct idempotent *key, struct making **out);

/* Client c waits for it. 0 or -ENOMEM. */
int making_join(struct making *m, struct client *c);

/* It does not come to pass after all; nobody is told. */
void making_drop(struct making *m);

/* The making of that request, of that box, with that key; or NULL. */
struct making *making_by_req(const struct sbxd *s, uint64_t req);
struct making *making_by_token(const struct sbxd *s, uid_t uid, const char *token);
struct making *making_by_key(const struct sbxd *s, const struct idempotent *key);

/* The client that asked for `req`, also when that is a making; NULL when it is gone. */
struct client *making_client(const struct sbxd *s, uint64_t req);

/* A waiting client is gone: without a key, nobody will ask for the box again. */
void making_client_gone(struct sbxd *s, uint64_t req);

/* Calls fn for each who waits, and forgets m. */
void making_answer(
    struct sbxd *s, struct making *m, void (*fn)(struct client *c, void *ctx), void *ctx);

void makings_free(struct sbxd *s);

#endif
