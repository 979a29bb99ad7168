/*
 * jail: runs a program of the host on bytes that nobody vouches for: in namespaces of its own, on a
 * small root that shows the host's programs read-only and one writable directory. `sbx-worker
 * image`; the jail dies with it.
 */
#ifndef SBXD_DRIVERS_IMAGE_JAIL_H
#define SBXD_DRIVERS_IMAGE_JAIL_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/err.h"

#define JAIL_BINDS 4

struct jail_bind {
	const char *source; /* on the host; NULL ends the list */
	const char *target; /* in the jail: "/NAME" */
	bool writable;
};

struct jail_spec {
	const char *const *argv; /* argv[0] is the program's path on the host, below /usr */
	int (*fn)(void *ctx);	 /* or, with argv NULL, what the jail's process does; exit status */
	void *ctx;
	struct jail_bind binds[JAIL_BINDS];
	bool network; /* it may use the host's; else it has none */
	uid_t uid;    /* whom it runs as, without any privilege; 0: as root of files only */
	const struct buf *auth; /* what it finds in the file JAIL_AUTH; NULL or empty: none */
	int out;		/* its standard output */
	int err;		/* its standard error */
};

#define JAIL_AUTH "/auth.json"

struct jail {
	pid_t pid;
	int pidfd; /* owned */
};

/* Finds a program in the directories where the distribution has them. 0 or -ENOENT. */
int jail_find(const char *name, char *out, size_t size);

/* Starts it. What goes wrong in the jail itself is said on its standard error, with status 125. 0
 * or -errno with *err. */
int jail_start(const struct jail_spec *spec, struct jail *out, struct err *err);

/* Kills all that is left of it, and collects its wait status. */
int jail_end(struct jail *j);

#endif
