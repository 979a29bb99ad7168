/*
 * walk_int: what walk.c (the way through a tree) and walk_names.c (what is in a directory) share.
 *
 * A frame is a directory on the way from the root to where we are. Its names are read at once, so
 * that they can be sorted and removed, and lie one after the other in one block of memory that
 * grows and shrinks with the depth: so thousands of directories cost no more pages than the largest
 * of them.
 */
#ifndef SBXD_GUEST_FILES_WALK_INT_H
#define SBXD_GUEST_FILES_WALK_INT_H

#include <stdint.h>
#include <sys/types.h>

#include "guest/files/walk.h"

struct frame {
	int fd; /* -1: closed for now */
	dev_t dev;
	ino_t ino;
	size_t path_len; /* of the directory itself */
	size_t name_len; /* its own name, the end of path */
	size_t first;	 /* of its names, in order[] */
	size_t next;
	size_t end;
	size_t names_len; /* of names[], before its own */
};

struct walk {
	const struct walk_ops *ops;
	void *ctx;

	struct frame *frames;
	size_t depth; /* of frames in use */
	size_t frames_size;
	size_t shallowest; /* frames before it are closed */

	uint8_t *names; /* type, name, NUL; ... */
	size_t names_len;
	size_t names_size;
	uint32_t *order; /* where in names */
	size_t order_len;
	size_t order_size;

	char *path;
	size_t path_size;
};

/* The block with room for `want` elements in all; NULL: no memory, and it is as before. */
void *walk_grow(void *block, size_t *size, size_t want, size_t each);

/* Tells that something was done. */
static inline void walk_step(const struct walk *w)
{
	if (w->ops->step)
		w->ops->step();
}

/* All names of the frame's directory, as far as they can be read. 0 or an errno. */
int walk_read_names(struct walk *w, struct frame *f);

#endif
