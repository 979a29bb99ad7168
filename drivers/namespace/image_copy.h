/*
 * image_copy: copies of the host's public files, for the generated /etc.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_IMAGE_COPY_H
#define SBXD_DRIVERS_NAMESPACE_IMAGE_COPY_H

#define IMAGE_COPY_FILES 20000		    /* in one call; the rest is left out */
#define IMAGE_COPY_SIZE (16L * 1024 * 1024) /* a larger file is left out */

/*
 * Copies `name` below src to the same name below dst: a file, a link as it is, or a whole
 * directory. What is missing, no file, compressed (manual pages) or not readable by everybody is
 * left out. 0 or -errno.
 */
int image_copy(int src, int dst, const char *name);

/* Copies every entry of src whose name begins with `prefix`. 0 or -errno. */
int image_copy_prefix(int src, int dst, const char *prefix);

#endif
