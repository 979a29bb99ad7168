/*
 * cgroup_site: where on this host the boxes' cgroups can be. Janitor.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_CGROUP_SITE_H
#define SBXD_DRIVERS_NAMESPACE_CGROUP_SITE_H

#include <stddef.h>

#include "drivers/driver.h"
#include "drivers/namespace/prepared.h"

/* Writes into out which limits cannot be enforced here, and why; "" when all can. */
void cgroup_site_warn(const struct driver_site *site, char *out, size_t size);

/*
 * Makes the instance's parent cgroup in each usable hierarchy, records them in the instance's
 * directory (dirfd), and fills prep->cgroups. A host without any is no error. 0 or -errno.
 */
int cgroup_site_prepare(
    const struct driver_site *site, int dirfd, struct ns_prepared *prep, struct err *err);

/* Calls fn with each recorded parent. 0, fn's first nonzero result, or -errno. */
typedef int cgroup_site_fn(void *ctx, const char *parent);
int cgroup_site_each(int dirfd, cgroup_site_fn *fn, void *ctx);

/* Removes the parents, which are empty, and the record. 0 or -errno. */
int cgroup_site_finish(int dirfd);

#endif
