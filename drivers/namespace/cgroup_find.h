/*
 * cgroup_find: the cgroup hierarchies of this host and our own place in them. Janitor.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_CGROUP_FIND_H
#define SBXD_DRIVERS_NAMESPACE_CGROUP_FIND_H

#include <stdint.h>

#include "drivers/namespace/prepared.h"

#define CGROUP_HIERARCHIES 16

struct cgroup_hierarchy {
	uint32_t controllers; /* enum ns_controller, of those we use; v2: only NS_CG_V2 */
	char top[NS_PATH];    /* where it is mounted */
	char own[NS_PATH];    /* this process's own directory in it; "" when it is not visible */
};

/* Fills out[] with the hierarchies that hold a controller we use. Their number, or -errno. */
int cgroup_find_all(struct cgroup_hierarchy out[CGROUP_HIERARCHIES]);

/* The same from given texts of /proc/self/mountinfo and /proc/self/cgroup. */
int cgroup_find_parse(
    char *mountinfo, const char *own, struct cgroup_hierarchy out[CGROUP_HIERARCHIES]);

#endif
