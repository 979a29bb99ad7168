/*
 * images: what the driver prepared for each image in use: one memfd, written by the janitor before
 * the first box of that image boots, given to every worker of it. And, of images of the store, what
 * keeps them there: a descriptor with a lock, which every worker gets, too.
 */
#ifndef SBXD_SUPERVISOR_IMAGES_H
#define SBXD_SUPERVISOR_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/api_error.h"
#include "wire/control.h"

struct sbxd;

/* Called once, now or from the loop: prepared is the memfd (still ours), or -1 with *done saying
 * why, and what a client is told. */
typedef void image_ready_fn(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done, enum api_error error);

/*
 * Has `image` prepared unless it is already, then calls fn. Where the driver makes boxes of images
 * of the store and this one is not there, it is pulled: within images.pull_timeout.
 */
void image_need(struct sbxd *s, const char *image, image_ready_fn *fn, uint64_t ctx);

/* It is prepared: image_need() calls at once. */
bool image_is_ready(const struct sbxd *s, const char *image);

/* What a prepared image says of commands; the strings are the image's own. */
struct image_config {
	const char *user;	 /* "": nothing */
	const char *working_dir; /* "": nothing */
	const char *env;	 /* "K=V\0"... */
	size_t env_len;
	int hold; /* keeps it in the store while it is open; -1: it is not of the store */
};

/* False when the image is not prepared. */
bool image_config_of(const struct sbxd *s, const char *image, struct image_config *out);

/* Another image may be what this name means from now on, or what was prepared is gone: who needs it
 * next has it prepared anew. */
void images_renew(struct sbxd *s, const char *image);

/* Images of which there is no box are held no more, the configured one apart: they may go from the
 * store. */
void images_let_go(struct sbxd *s);

/* Forgets all; nobody is called any more. */
void images_free(struct sbxd *s);

#endif
