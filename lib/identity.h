/*
 * identity: who a box belongs to, below its owner's uid. sbxd and sbxctl.
 */
#ifndef SBXD_LIB_IDENTITY_H
#define SBXD_LIB_IDENTITY_H

#include <stdint.h>

#include "lib/digest.h"

#define IDENTITY_TOKEN_LEN 17 /* 16 lowercase hex digits and a NUL */

struct identity {
	/*
	 * The scope token: a name, not a proof. SHA-256 over user, ":" and thread, where the text
	 * None stands for an absent user; other systems compute it too, so that its collisions are
	 * part of it.
	 */
	char token[IDENTITY_TOKEN_LEN];
	/* The proof: different for every (user, thread), the absent user included. */
	uint8_t digest[DIGEST_LEN];
};

/* user NULL: absent. 0, or -EIO with *out untouched. */
int identity_scope(const char *user, const char *thread, struct identity *out);

#endif
