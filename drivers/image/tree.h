/*
 * tree: what is done to whole roots. `sbx-worker image`. No link is followed, and no depth that an
 * image may have costs descriptors or stack.
 */
#ifndef SBXD_DRIVERS_IMAGE_TREE_H
#define SBXD_DRIVERS_IMAGE_TREE_H

#include <stdint.h>

struct image_tree {
	uint64_t size;	  /* bytes of disk, and TREE_ENTRY for each entry */
	uint64_t entries; /* all but the root itself */
	uint64_t devices; /* device nodes that were removed */
};

#define TREE_ENTRY 1024U /* what a name and an inode take, about */

/* Adds up what lies below path; while it is being written to, about. 0 or -errno. */
int image_tree_measure(const char *path, struct image_tree *out);

/*
 * Takes out of an unpacked root what no box must be given: device nodes (one of 0, 0 would hide
 * files of other layers), and attributes by which an overlay steers itself. 0 or -errno.
 */
int image_tree_scrub(const char *path, struct image_tree *out);

/* Removes path and all below it. 0 or -errno; what is not there is 0. */
int image_tree_remove(const char *path);

#endif
