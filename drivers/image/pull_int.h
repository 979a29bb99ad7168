/* pull_int: what the steps of a pull have in common. */
#ifndef SBXD_DRIVERS_IMAGE_PULL_INT_H
#define SBXD_DRIVERS_IMAGE_PULL_INT_H

#include "drivers/image/manifest.h"
#include "drivers/image/pull.h"

#define PULL_PROGRAM 64
#define PULL_LOCK_NS (30 * NS_PER_S) /* for names to be changed by others */

struct pull {
	const struct driver_site *site;
	const struct pull_order *order;
	struct image_store store;
	char skopeo[PULL_PROGRAM];
	char umoci[PULL_PROGRAM];
	struct image_watch watch;
	struct buf auth;	       /* credentials, until all is fetched; empty: none */
	char place[16];		       /* our directory in the store; "" none yet */
	int lock;		       /* of it */
	char load[STORE_PATH];	       /* in it: where the layout is copied to */
	char root[STORE_PATH];	       /* in it: what becomes the image's root */
	char source[IMAGE_DIGEST_LEN]; /* of the manifest that the registry has; "" unknown */
	struct image_manifest manifest;
	struct image_note note;
	struct pull_progress progress;
	uint64_t free_blocks; /* of the disk when unpacking began, and its inodes */
	uint64_t free_inodes;
	uint64_t measure_at; /* bytes less on the disk at which the root is measured */
	uint64_t moved_at;   /* when bytes last came */
};

/* pull_fetch.c: reads what is to be had into p->source and p->manifest; copies it to p->load. 0 or
 * -errno with *err. */
int pull_resolve(struct pull *p, struct err *err);
int pull_fetch(struct pull *p, struct err *err);

/* pull_layout.c: reads what was copied into p->note, checked against its digests. */
int pull_read_layout(struct pull *p, struct err *err);

/* pull_unpack.c: makes p->root of it. */
int pull_unpack(struct pull *p, struct err *err);

/* Tells whoever ordered it. */
void pull_tell(struct pull *p, enum pull_stage stage, uint64_t done, uint64_t total);

#endif
