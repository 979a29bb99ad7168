/*
 * users: who a command runs as, from the box's own /etc/passwd and /etc/group. sbx-guest.
 *
 * The files belong to the box and may say anything: they are read in bounded lines, no line is
 * trusted to be whole, and no NSS is asked.
 */
#ifndef SBXD_GUEST_USERS_H
#define SBXD_GUEST_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USERS_NAME_MAX 64
#define USERS_PATH_MAX 256
#define USERS_GROUPS 32
#define USERS_LINE_MAX 4096U	       /* a longer line is cut */
#define USERS_FILE_MAX (1024U * 1024U) /* what comes after is not looked at */

struct user {
	uint32_t uid;
	uint32_t gid;
	uint32_t group_count;
	uint32_t groups[USERS_GROUPS]; /* supplementary */
	char name[USERS_NAME_MAX];     /* decimal uid when it has none */
	char home[USERS_PATH_MAX];     /* "/" when not known, "/root" for uid 0 */
	char shell[USERS_PATH_MAX];    /* "/bin/sh" when not known */
};

/*
 * Resolves "", "name", "uid", "name:group" or "uid:gid" (and mixed). "" is uid 0. A uid without a
 * passwd line has gid 0 and no name. root_fd is "/" of the box. 0, -ENOENT: no such user or group;
 * -EINVAL: not a user specification.
 */
int users_resolve(int root_fd, const char *spec, struct user *u);

/* One line of passwd or group, fields split at ':' in place; false when there are too few. */
bool users_split_line(char *line, char **fields, unsigned int want);

/* Fills *u from a passwd line if it is that of `name`, or (name NULL) of `uid`. */
bool users_match_passwd(char *line, const char *name, uint32_t uid, struct user *u);

/* True if the group line is that of `name`; *gid is set. */
bool users_match_group(char *line, const char *name, uint32_t *gid);

/* True if the group line lists `user` as a member; *gid is set. */
bool users_match_member(char *line, const char *user, uint32_t *gid);

#endif
