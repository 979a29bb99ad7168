/*
 * walk: goes through a tree that may change meanwhile, and that somebody may have built to do harm.
 * sbx-files.
 *
 * Symbolic links are never followed, so no loop is endless. However deep the tree is, only
 * WALK_FDS_MAX directories are open at once; one that was closed is found again through ".." and
 * must be the same. What is gone when it is looked at was never there; whatever else cannot be read
 * is reported.
 */
#ifndef SBXD_GUEST_FILES_WALK_H
#define SBXD_GUEST_FILES_WALK_H

#include <stdbool.h>
#include <stddef.h>

#define WALK_FDS_MAX 64U

struct walk_item {
	const char *path; /* relative to the root */
	size_t path_len;
	const char *name; /* its last component */
	size_t name_len;
	size_t depth;	    /* 1: in the root itself */
	unsigned char type; /* DT_*, never DT_UNKNOWN */
	int dir;	    /* the directory that it is in */
};

enum walk_verdict {
	WALK_ON,
	WALK_SKIP, /* a directory: nothing of what is in it */
	WALK_STOP, /* nothing more at all */
};

struct walk_ops {
	/* An entry. Of a directory: before what is in it. */
	enum walk_verdict (*entry)(void *ctx, const struct walk_item *item);
	/* All that is in a directory was seen. NULL: nothing to do. */
	void (*left)(void *ctx, const struct walk_item *item);
	/* The directory at path cannot be read (any further), for the reason of an errno. */
	void (*problem)(void *ctx, const char *path, size_t len, int err);
	/* So much is done as a name is read or looked at, or a directory left. NULL: nobody wants
	 * to know. */
	void (*step)(void);
	bool sorted;	/* by name, byte by byte */
	size_t deepest; /* bytes of the longest path; what is longer is a problem */
};

/* Walks below root, a directory open for reading, which is taken over. 0, or an errno: root itself
 * cannot be read. */
int walk_tree(int root, const struct walk_ops *ops, void *ctx);

#endif
