/*
 * host_cgroup: the cgroup hierarchies of this host, and the cgroups in them that bear our name.
 * sbxctl.
 */
#ifndef SBXD_TOOLS_HOST_CGROUP_H
#define SBXD_TOOLS_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HOST_CGROUP_MOUNTS 32
#define HOST_CGROUP_PATH 600

struct host_cgroup {
	char dir[256];
	char controllers[256]; /* v1: mount options; v2: cgroup.controllers; blanks around each */
	bool v2;
	bool again; /* a hierarchy of v1 that is mounted somewhere else, too */
};

/* Fills out; returns how many there are. */
size_t host_cgroup_find(struct host_cgroup out[HOST_CGROUP_MOUNTS]);

/* The hierarchy that has a controller, NULL: none. */
const struct host_cgroup *host_cgroup_with(
    const char *controller, const struct host_cgroup *all, size_t count);

/* A cgroup called sbxd-INSTANCE, with the boxes' below it: its path, and the instance. */
typedef void host_cgroup_fn(void *ctx, const char *path, const char *instance);

/* Calls fn for each that belongs to us, or to anybody if we are root. */
void host_cgroup_each(host_cgroup_fn *fn, void *ctx);

/*
 * Who is not in it, nor init, and has a child in it or in one of its boxes' (host_cgroup_held.c): 0
 * nobody, as after a worker's death; -1: it cannot be told.
 */
pid_t host_cgroup_holder(const char *path);

/*
 * Kills what is in the boxes' cgroups below it until nothing is, then removes them and it: at most
 * for some seconds. 0 (also when it is not there) or -errno. Only of an instance that is dead.
 */
int host_cgroup_destroy(const char *path);

#endif
