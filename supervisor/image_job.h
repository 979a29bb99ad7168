/*
 * image_job: orders about the image store and about templates, each carried out by a process of its
 * own (`sbx-worker image`): a pull takes minutes, and must delay neither sbxd nor the janitor.
 */
#ifndef SBXD_SUPERVISOR_IMAGE_JOB_H
#define SBXD_SUPERVISOR_IMAGE_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/api_error.h"
#include "wire/control.h"

struct image_jobs;
struct pool_spec;
struct sbxd;

/* Who waits for an order, by a number that is its own. */
struct image_hook {
	uint64_t ctx;
	/* How far it is; may be NULL. */
	void (*progress)(struct sbxd *s, uint64_t ctx, const struct ctl_progress *p);
	/*
	 * Called once, later, from the loop: done->code is 0, or why not (ECANCELED: sbxd ends).
	 * result: what the order is answered with, or NULL; only during the call.
	 */
	void (*done)(
	    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result);
};

/* NULL without memory. */
struct image_jobs *image_jobs_create(void);

/*
 * Orders `op` about `image` ("" where it is about none). A pull that is under way already is
 * joined. A few pulls go on at a time, the others wait. 0, -EAGAIN (too many wait) or -ENOMEM.
 */
int image_job_order(
    struct sbxd *s, enum ctl_image_op op, const char *image, const struct image_hook *hook);

/* What a template is to be made for. */
struct image_build {
	const struct pool_spec *spec; /* boxes of it */
	int prepared;		      /* of its image, as image_need() gives it; the caller's */
	int hold;		      /* keeps its image in the store; -1: it is not of the store */
};

/* Orders a template, as image_job_order(); of these fewer may wait. One is made at a time. */
int image_job_build(struct sbxd *s, const struct image_build *build, const struct image_hook *hook);

/* Nobody with that number waits any more. A pull goes on: it was begun, and others will want it. */
void image_job_unhook(struct sbxd *s, uint64_t ctx);

/* How far the pull of that image is; false when there is none. */
bool image_job_progress(const struct sbxd *s, const char *image, struct ctl_progress *out);

/* Orders that what has died on its way goes, and what is past the cache's bound. Nobody waits. */
void image_job_sweep(struct sbxd *s);

/* Ends all; whoever waits is told ECANCELED. Later orders are refused so. */
void image_jobs_cancel(struct sbxd *s);

/* Ends all; nobody is told. */
void image_jobs_free(struct sbxd *s);

/* What a client is told of an order about images, or templates, that failed so. */
enum api_error image_job_error(int32_t code);
enum api_error template_error(int32_t code);

#endif
