/*
 * cgroup: the cgroups of one box, <parent>/<box name> in each hierarchy, and their limits.
 *
 * v1: one hierarchy for each controller. v2: one for all, and the box is cloned into it.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_CGROUP_H
#define SBXD_DRIVERS_NAMESPACE_CGROUP_H

#include <sys/types.h>

#include "drivers/driver.h"
#include "drivers/namespace/prepared.h"

/* A box's cgroups as long as its worker may touch them. Descriptors are owned. */
struct cgroup_set {
	int dirs[NS_CGROUPS]; /* O_PATH, -1 none */
	int cpu;	      /* file with the cpu time used, -1 none */
	int memory;	      /* file with the memory used, -1 none */
	int cpu_v2;	      /* nonzero: `cpu` is cpu.stat of v2 */
};

void cgroup_set_init(struct cgroup_set *set);
void cgroup_set_close(struct cgroup_set *set);

/* Makes the box's cgroup in hierarchy i and sets its limits. 0 or -errno. */
int cgroup_make(const struct ns_prepared *prep, uint32_t i, const struct driver_spec *spec,
    struct cgroup_set *set, struct err *err);

/* Moves a process into the box's cgroup in hierarchy i. 0 or -errno. */
int cgroup_attach(const struct cgroup_set *set, uint32_t i, pid_t pid);

/* Opens what cgroup_read_stats() reads: to be called while still privileged. Missing files are
 * skipped. */
void cgroup_open_stats(const struct ns_prepared *prep, struct cgroup_set *set);
void cgroup_read_stats(const struct cgroup_set *set, struct driver_stats *out);

/* 1 when a live process is in <parent>/<name>, 0 when none is, -ENOENT when it is not there. Or
 * -errno. */
int cgroup_is_used(const char *parent, const char *name);

/*
 * Kills what is in <parent>/<name> until nothing is, then removes it: at most to deadline_ns. 0
 * (also when it is not there), -ETIMEDOUT, -errno.
 */
int cgroup_destroy(const char *parent, const char *name, uint64_t deadline_ns);

#endif
