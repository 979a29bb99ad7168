/*
 * access: who is at the other end of a socket, and which boxes are theirs.
 */
#ifndef SBXD_SUPERVISOR_ACCESS_H
#define SBXD_SUPERVISOR_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "supervisor/pool.h"

struct client;
struct sbxd;

struct peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;     /* for log lines only: it may be another process by now */
	bool admin;    /* root, sbxd's own uid, or a member of admin_group */
	bool by_token; /* it came over TCP: it is nobody until a request brings the token */
};

/* SO_PEERCRED and the peer's groups; over TCP whose the token is. 0 or -errno. */
int access_read_peer(const struct sbxd *s, int fd, struct peer *out);

/* Whose the token is; (uid_t)-1 without one. */
uid_t access_token_uid(const struct sbxd *s);

/* An owner, and a token or the name of a made box, as a box id says them. */
struct box_name {
	uid_t uid;
	char text[SHM_BOX_NAME_LEN];
};

/*
 * Reads a box id: a token or a name (the client's own) or, for admins, after UID and a colon that
 * of another. 0, or -ENOENT for everything that is no id of a box this client may know of; whether
 * such a box exists is not looked at.
 */
int access_box_name(const struct client *c, const char *id, struct box_name *out);

/* The box of that id, or NULL when there is none that this client may know of. */
const struct pool_box *access_find_box(
    const struct sbxd *s, const struct client *c, const char *id);

/* The id under which a client of that uid knows box b: TOKEN, or UID:TOKEN when it is another
 * uid's. */
void access_box_id(uid_t viewer, const struct pool_box *b, char *out, size_t size);

#endif
