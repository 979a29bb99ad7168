/*
 * userns: user namespaces and ids. Worker, during start().
 */
#ifndef SBXD_DRIVERS_NAMESPACE_USERNS_H
#define SBXD_DRIVERS_NAMESPACE_USERNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct driver_site;

/*
 * Takes on effective uid and gid `id` but keeps all effective capabilities: a user namespace made
 * now is owned by `id`. userns_resume() goes back to root. The process stays as it was otherwise
 * (dumpable included). 0 or -errno.
 */
struct userns_self {
	int dumpable;
};

int userns_assume(uid_t id, struct userns_self *self);
int userns_resume(const struct userns_self *self);

/*
 * Writes the id maps of the process whose /proc directory is procfd. With base != 0 the box's ids
 * 0 .. DRIVER_BOX_UIDS-1 are base ...; else its id 0 is the caller's own. 0 or -errno.
 */
int userns_write_maps(int procfd, uid_t base);

/* A detached copy of the mount of the directory `path` (submounts left out). Descriptor (caller's)
 * or -errno. */
int userns_clone_layer(const char *path);

/*
 * Makes the detached mount read-only, and its files appear to the user namespace usernsfd as they
 * appear to the host: uid 0 is uid 0. -EINVAL when its file system cannot do that; it is
 * read-only all the same. 0 or -errno.
 */
int userns_map_layer(int mountfd, int usernsfd);

/* Janitor: true when userns_map_layer() can do all of that for what is at `path`. */
bool userns_can_map_layer(const char *path, uid_t base);

/*
 * Janitor: whether pid is in a user namespace that the worker of the slot in the box's name made.
 * What the table says is the word of a worker, which may lie; of a process that cannot be seen,
 * record and cgroup tell as well.
 */
bool userns_is_of_box(const struct driver_site *site, const char *name, pid_t pid);

#endif
