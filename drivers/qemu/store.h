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
 *   size-KEY       see template_size.h
 *   KEY.lock       held by whoever makes one of that key
 *   KEY.new        being made, or left by who died of it: removed by who makes it next
 *
 * Disks and templates are large, and there may be many. Who has one open for a machine has a shared
 * lock (flock) on it, which is QEMU's, too: so it is in use exactly as long as a machine has it.
 * Who removes one has the lock exclusively. See store_room.c.
 */
#ifndef SBXD_DRIVERS_QEMU_STORE_H
#define SBXD_DRIVERS_QEMU_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/driver.h"
#include "drivers/qemu/plan.h"

#define STORE_KEY (DIGEST_LEN + 1)  /* 16 bytes of a digest in hex, and a NUL */
#define STORE_NAME 64		    /* of an entry: "template-KEY" */
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

/* The name that the entry has, or would have. 0 or -errno with *err. */
int store_path(const struct driver_site *site, const char *kind, const uint8_t digest[DIGEST_LEN],
    char out[QEMU_PATH], struct err *err);

/* What lies at e->new_path is whole: it gets its name, on the disk. 0 or -errno with *err. */
int store_keep(struct store_entry *e, struct err *err);

/* Removes what lies at e->new_path. */
void store_give_up(struct store_entry *e);

/* Notes that what lies there is in use. */
void store_touch(const char *path);

/* It is damaged: it is not found again. Who has it open goes on with it. */
void store_discard(const char *path);

/* Removes what nobody has used for so many seconds, and no machine has. */
void store_sweep(const struct driver_site *site, long unused_s);

/* Removes what was being made by those who have died of it. */
void store_sweep_dead(const struct driver_site *site);

/* The names that entries begin with; one that is being made is none. */
bool store_is_entry(const char *name, const char *kind);

/* ---- store_room.c: disks and templates, and what of them goes ---- */

/* The file of a template that is locked, and mapped by its machines. */
#define STORE_TEMPLATE_MEMORY "memory"

/*
 * A machine is to have what fd is, which lies at `path`: it is kept as long as this description of
 * it, or a copy, is open. 0, -EIDRM: it was removed meanwhile; or -errno.
 */
int store_hold(int fd, const char *path, uint64_t deadline_ns);

/* A disk or a template. */
struct store_item {
	char name[STORE_NAME];
	bool is_template;
	uint64_t bytes;	  /* of the disk of the host */
	uint32_t holders; /* machines that have it */
	uint64_t used_wall_ns;
};

struct store_census {
	struct store_item *items; /* owned; the one whose last use is longest ago first */
	size_t count;
	uint64_t bytes; /* of all */
};

/* Looks at all there are. 0 or -errno; *out is the caller's to free. */
int store_census_take(const struct driver_site *site, struct store_census *out);
void store_census_free(struct store_census *c);

/* Removes one. 0, -ENOENT, -EBUSY: a machine has it; or -errno. */
int store_take_out(const char *path);

/*
 * Removes what no machine has, the longest unused first, until no more than `most` bytes are left;
 * *left says how many are: more than `most` only when machines have them. 0 or -errno.
 */
int store_make_room(const struct driver_site *site, uint64_t most, uint64_t *left);

/* What a file or a directory of files takes on the disk. */
uint64_t store_bytes(const char *path);

#endif
