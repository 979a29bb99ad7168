/*
 * record: traces of boxes on the host, by name: DIR/boxes/NAME holds "pid start" of a box's first
 * process. For drivers that have no other place where the name is written.
 */
#ifndef SBXD_DRIVERS_RECORD_H
#define SBXD_DRIVERS_RECORD_H

#include "drivers/driver.h"

/* Leaves, reads and removes DIR/boxes/NAME. 0 or -errno: -EEXIST when it is there already; removing
 * what is not there is 0. */
int record_write(const char *dir, const char *name, pid_t pid, uint64_t start);
int record_read(const char *dir, const char *name, pid_t *pid, uint64_t *start);
int record_remove(const char *dir, const char *name);

/* A growable set of box names. */
struct record_names {
	char (*names)[DRIVER_NAME_LEN]; /* owned */
	size_t count;
	size_t cap;
};

/* Adds a name unless it is there. 0 or -ENOMEM. */
int record_names_add(struct record_names *set, const char *name);

/* Adds the entries of the directory that are names of this instance; takes no notice of a missing
 * directory. 0 or -errno. */
int record_names_add_dir(
    struct record_names *set, const struct driver_site *site, int dirfd, const char *path);
void record_names_free(struct record_names *set);

/* Removes a directory and all below it, without following links or crossing mounts. 0 or -errno. */
int record_remove_tree(int dirfd, const char *name);

#endif
