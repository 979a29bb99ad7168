/*
 * prepared: what the janitor's prepare() writes into the memfd and every start() maps.
 *
 * Written by the janitor, once, by one process of the same build: so a plain struct. Everything
 * that can be decided once per instance is decided before it lands here, so that starting a box
 * is only system calls. Lost with the instance; prepare() makes it anew.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_PREPARED_H
#define SBXD_DRIVERS_NAMESPACE_PREPARED_H

#include <linux/filter.h>
#include <stdint.h>

#define NS_MAGIC 0x3153584eU /* "NXS1" */
#define NS_PATH 320
#define NS_LOWERS 2  /* overlay layers that come from the host */
#define NS_BINDS 6   /* host directories bound read-only, on hosts without a merged /usr */
#define NS_CGROUPS 6 /* hierarchies in use */
#define NS_MASKS 32  /* places of /proc */
#define NS_FILTER 1024

#define NS_F_PRIVILEGED 1U /* made by root: own uids for each box */
#define NS_F_USR 2U /* lower[1] is /usr, an overlay of its own; else a layer below lower[0] */
#define NS_F_CLONE_CGROUP 4U /* cgroups[0] is v2: boxes are cloned into it */

enum ns_controller {
	NS_CG_MEMORY = 1,
	NS_CG_PIDS = 2,
	NS_CG_CPU = 4,
	NS_CG_CPUACCT = 8,
	NS_CG_V2 = 16,	 /* one hierarchy for all; the other bits say what is enabled */
	NS_CG_SWAP = 32, /* memory+swap can be limited too */
};

/* A directory that holds the boxes' cgroups of this instance in one hierarchy. */
struct ns_cgroup {
	uint32_t controllers; /* enum ns_controller */
	char parent[NS_PATH];
};

enum ns_mask_kind {
	NS_MASK_FILE,	  /* hidden behind /dev/null */
	NS_MASK_DIR,	  /* hidden behind an empty directory */
	NS_MASK_READONLY, /* visible, not writable */
};

struct ns_mask {
	uint32_t kind; /* enum ns_mask_kind */
	char path[28]; /* below the box's root, without the leading slash */
};

struct ns_prepared {
	uint32_t magic;
	uint32_t size;
	uint32_t flags; /* NS_F_* */
	uint32_t mask_count;
	uint32_t bind_count;
	uint32_t cgroup_count;
	uint32_t filter_len;
	uint32_t reserved;
	char image[NS_PATH];		/* the one that boxes are made of */
	char lower[NS_LOWERS][NS_PATH]; /* [0] our own layer; [1] /usr or the image directory */
	char binds[NS_BINDS][16];
	struct ns_mask masks[NS_MASKS];
	struct ns_cgroup cgroups[NS_CGROUPS];
	struct sock_filter filter[NS_FILTER]; /* last: only filter_len of them are written */
};

#endif
