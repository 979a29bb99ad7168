/*
 * paths: where sbxd and its clients find each other: directories, socket, configuration, shared
 * memory.
 */
#ifndef SBXD_LIB_PATHS_H
#define SBXD_LIB_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/err.h"

#define PATHS_LEN 256
#define PATHS_SOCKET_LEN 108 /* sun_path */
#define PATHS_INSTANCE_LEN 32
#define PATHS_INSTANCE_DEFAULT "default"

/* All absolute and NUL-terminated. */
struct paths {
	char runtime_dir[PATHS_LEN];
	char state_dir[PATHS_LEN];
	char config_file[PATHS_LEN];
	char socket[PATHS_SOCKET_LEN];
	char shm_name[64];
	bool shared_tmp; /* runtime_dir is /tmp/sbxd-UID: anybody could have made it before us */
};

/* What decides. All pointers are the caller's. */
struct paths_query {
	uid_t uid;
	const char *instance;	 /* NULL: PATHS_INSTANCE_DEFAULT */
	const char *runtime_dir; /* NULL: the default for uid and instance */
	const char *state_dir;	 /* likewise */
	char *const *env;	 /* for XDG_* and HOME; NULL is empty */
	const char *home;	 /* used when HOME is not in env; may be NULL */
};

/*
 * Fills *out by INTERFACE.md "Where things are". An instance other than the default one has its own
 * directories: sbxd-NAME in place of sbxd. Creates nothing. 0, -EINVAL (bad instance name) or
 * -ENAMETOOLONG with *err.
 */
int paths_resolve(const struct paths_query *q, struct paths *out, struct err *err);

/* True for [a-z0-9][a-z0-9-]{0,30}. */
bool paths_instance_valid(const char *name);

/* "/sbxd-UID-INSTANCE" into out. 0 or -ENAMETOOLONG. */
int paths_shm_name(char *out, size_t size, uid_t uid, const char *instance);

#endif
