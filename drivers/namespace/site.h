/*
 * site: what the namespace driver keeps on the host for one instance, by name.
 *
 *   <runtime_dir>/namespace-<instance>/
 *       cgroups      the directories that hold boxes' cgroups, one a line: a later supervisor may
 *                    run in another cgroup and must still find them
 *       boxes/NAME   "pid start" of a box's first process, only where there is no cgroup to find
 *                    it by
 *       image-XXXXXX layers made by prepare(), and image-XXXXXX.made: see layer_note.h
 *   <runtime_dir>/namespace-<instance>.trial/
 *                    the layer of probe()'s trial, while it lasts
 *   <state_dir>/namespace-<instance>/
 *       image-XXXXXX the same as above, where the runtime directory's file system cannot show files
 * to each box as its own (tmpfs before Linux 6.3)
 */
#ifndef SBXD_DRIVERS_NAMESPACE_SITE_H
#define SBXD_DRIVERS_NAMESPACE_SITE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "drivers/driver.h"
#include "drivers/namespace/prepared.h"
#include "drivers/record.h"

/* Writes the path of the instance's directory. 0 or -ENAMETOOLONG. */
int site_dir_path(const struct driver_site *site, char out[NS_PATH]);

/* The same for the one in the state directory. */
int site_state_path(const struct driver_site *site, char out[NS_PATH]);

/* The same for the directory of probe()'s trial. No instance has its name: a dot is in none. */
int site_trial_path(const struct driver_site *site, char out[NS_PATH]);

/* Makes the instance's directory (and boxes/ in it) and opens it. Descriptor (caller's) or -errno.
 */
int site_dir_make(const struct driver_site *site, struct err *err);

/* Opens it if it is there. Descriptor (caller's) or -errno. */
int site_dir_open(const struct driver_site *site);

/* Maps site->prepared read-only; NULL with *err set when it holds nothing of ours. */
const struct ns_prepared *site_prepared_map(const struct driver_site *site, struct err *err);
void site_prepared_unmap(const struct ns_prepared *prep);

/* Leaves, reads and removes boxes/NAME. 0 or -errno: -EEXIST when it is there already; removing
 * what is not there is 0. */
int site_record_write(const struct driver_site *site, const char *name, pid_t pid, uint64_t start);
int site_record_read(const struct driver_site *site, const char *name, pid_t *pid, uint64_t *start);
int site_record_remove(const struct driver_site *site, const char *name);

#endif
