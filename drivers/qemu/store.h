/*
 * store: files that are made once, are never changed, and outlive sbxd: kernels, images,
 * templates. Janitor and workers of any number of instances.
 *
 * An entry is a file or a directory whose name has the digest of all that it was made of. It is
 * made under another name and gets its own when it is whole, on the disk: what is there is whole.
 * What is removed is only forgotten; who has it open goes on with it.
 *
 *   kernel-KEY     the kernel as an ELF image
 *   modules-KEY    its modules, as part of an initial file system
 *   image-KEY      a root directory as a read-only file system
 *   template-KEY/  see template.h
 *   KEY.lock       held by whoever makes one of that key
 *   KEY.new        being made, or left by who died of it: removed by who makes it next
 */
#ifndef SBXD_DRIVERS_QEMU_STORE_H
#define SBXD_DRIVERS_QEMU_STORE_H

#include <stdbool.h>

#include "drivers/driver.h"
#include "drivers/qemu/plan.h"

#define STORE_KEY (DIGEST_LEN + 1)  /* 16 bytes of a digest in hex, and a NUL */
#define STORE_UNUSED_S (30 * 86400) /* after that an entry is removed */

struct store_entry {
	char path[QEMU_PATH];	  /* its own name */
	char new_path[QEMU_PATH]; /* while it is being made */
	int lock;		  /* while it is being made, else -1 */
};

/* The text of a digest for names. */
void store_key(const uint8_t digest[DIGEST_LEN], char out[STORE_KEY]);

/* What a file is, as a number of words that are others when it has changed. 0 or -errno. */
#define STORE_IDENTITY 6
int store_identity(const char *path, uint64_t out[STORE_IDENTITY]);
int store_identity_fd(int fd, uint64_t out[STORE_IDENTITY]);

/*
 * Looks for the entry. 1: it is there. 0: it is not, and the caller is the one to make it, at
 * e->new_path, where nothing is; then store_keep() or store_give_up(). Who comes meanwhile waits,
 * at most to deadline_ns. Or -errno with *err.
 */
int store_get(const struct driver_site *site, const char *kind, const uint8_t digest[DIGEST_LEN],
    uint64_t deadline_ns, struct store_entry *e, struct err *err);

/* What lies at e->new_path is whole: it gets its name, on the disk. 0 or -errno with *err. */
int store_keep(struct store_entry *e, struct err *err);

/* Removes what lies at e->new_path. */
void store_give_up(struct store_entry *e);

/* Notes that what lies there is in use. */
void store_touch(const char *path);

/* It is damaged: it is not found again. */
void store_discard(struct store_entry *e);

/* Removes what nobody has used for so many seconds. */
void store_sweep(const struct driver_site *site, long unused_s);

/* Removes what was being made by those who have died of it. */
void store_sweep_dead(const struct driver_site *site);

#endif
