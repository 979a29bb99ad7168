/*
 * cpio: archives for an initial file system ("newc"). The kernel takes several one after the other.
 */
#ifndef SBXD_DRIVERS_QEMU_CPIO_H
#define SBXD_DRIVERS_QEMU_CPIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpio {
	int fd;	      /* the caller's */
	uint32_t ino; /* of the next entry */
	uint64_t at;  /* bytes written */
};

/* Begins an archive at the place where fd is. */
void cpio_begin(struct cpio *c, int fd);

/* All return 0 or -errno. */
int cpio_put_dir(struct cpio *c, const char *name, mode_t mode);
int cpio_put_data(struct cpio *c, const char *name, mode_t mode, const void *data, size_t n);

/* All of the file `from`, from its beginning. */
int cpio_put_file(struct cpio *c, const char *name, mode_t mode, int from);
int cpio_end(struct cpio *c);

#endif
