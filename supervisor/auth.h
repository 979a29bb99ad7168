/*
 * auth: the token of TCP clients. It stands in a file, and whoever sends it is a client of the uid
 * that owns the file: no admin, also when that uid is root.
 */
#ifndef SBXD_SUPERVISOR_AUTH_H
#define SBXD_SUPERVISOR_AUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/digest.h"
#include "lib/err.h"

#define AUTH_TOKEN_MIN 16U
#define AUTH_TOKEN_MAX 512U

/* All zero: no token is right. */
struct auth {
	bool set;
	uid_t uid; /* of who has the token */
	uint8_t digest[DIGEST_LEN];
};

/*
 * Reads the token of the file at path: AUTH_TOKEN_MIN..AUTH_TOKEN_MAX printable ASCII characters
 * without blanks, and perhaps a line end. It must be a regular file that nobody but its owner may
 * read or write; self is our own uid: if that is not root, the owner is self or root. 0, or -errno
 * with *err naming the file and what to mend, and *out as it was.
 */
int auth_load(const char *path, uid_t self, struct auth *out, struct err *err);

enum auth_result {
	AUTH_RIGHT,
	AUTH_MISSING, /* no bearer token was sent */
	AUTH_WRONG,
};

/* Looks at the value of an Authorization header, "" for none. The time taken says nothing of how
 * much of the token was right. */
enum auth_result auth_check(const struct auth *a, const char *authorization);

#endif
