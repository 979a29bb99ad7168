/*
 * top_act: what sbxtop asks sbxd to do with a box: release it, or kill it. Asked by a child
 * process, so that a service that hangs does not hang the screen.
 */
#ifndef SBXD_TOOLS_TOP_ACT_H
#define SBXD_TOOLS_TOP_ACT_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"
#include "shm/layout.h"

enum top_act_kind {
	ACT_RELEASE, /* all its leases end: it is parked */
	ACT_KILL,    /* it is removed, in use or not */
	ACTS,
};

/* "release" etc. */
const char *top_act_name(enum top_act_kind kind);

/* What is to be done, with which box, of which sbxd. */
struct top_order {
	enum top_act_kind kind;
	uint32_t uid;
	char token[SHM_TOKEN_LEN];
	int32_t supervisor; /* pid: another sbxd behind the socket has other boxes */
	const char *socket; /* NULL: where the instance has it */
	const char *instance;
	char *const *env;
};

/* One order under way; {.fd = -1} is none. */
struct top_act {
	enum top_act_kind kind;
	char token[SHM_TOKEN_LEN];
	pid_t pid;
	int fd; /* readable when it is done; -1: none is under way */
};

/* Begins it. 0, -EBUSY (one is under way) or -errno with *err. */
int top_act_begin(struct top_act *a, const struct top_order *order, struct err *err);

/* When fd is readable: what came of it, as a text. True: it was done. */
bool top_act_end(struct top_act *a, char *text, size_t size);

/* Gives up waiting for it. */
void top_act_abandon(struct top_act *a);

/* Does it here and now, in at most a minute. 0 with what the service said in *text, or -errno with
 * *err. */
int top_act_perform(const struct top_order *order, char *text, size_t size, struct err *err);

#endif
