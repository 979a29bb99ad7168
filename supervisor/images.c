/*
 * images: what the driver prepared for each image in use. Runs in sbxd; when sbxd dies its
 * successor has the images prepared anew, and live boxes need theirs no more.
 */
#include "supervisor/images.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/janitor_link.h"
#include "supervisor/sbxd.h"

#define IMAGES_MAX 64 /* each holds a descriptor, and a directory of the driver's */

struct image_wait {
	TAILQ_ENTRY(image_wait) link;
	image_ready_fn *fn;
	uint64_t ctx;
};

struct image {
	LIST_ENTRY(image) link;
	struct sbxd *s;
	char name[SHM_IMAGE_LEN];
	int prepared; /* memfd */
	bool ready;
	TAILQ_HEAD(, image_wait) waiting;
};

static struct image *image_find(const struct sbxd *s, const char *name)
{
	struct image *i;

	LIST_FOREACH (i, &s->images, link) {
		if (!strcmp(i->name, name))
			return i;
	}
	return NULL;
}

/* Whoever needs it from now on has it prepared anew. */
static void image_forget(struct image *i)
{
	LIST_REMOVE(i, link);
	i->s->image_count--;
}

static void image_free(struct image *i)
{
	struct image_wait *w;

	while ((w = TAILQ_FIRST(&i->waiting))) {
		TAILQ_REMOVE(&i->waiting, w, link);
		free(w);
	}
	fd_close(&i->prepared);
	free(i);
}

/* Before anybody boots a box of it: with `auto` the first answer says what makes boxes. */
static void note_driver(struct sbxd *s, const struct ctl_done *done)
{
	s->pauses = done->pauses != 0;
	if (*done->driver)
		(void)strlcpy(s->driver, done->driver, sizeof(s->driver));
	(void)strlcpy(s->isolation, done->isolation, sizeof(s->isolation));
}

static void on_prepared(struct sbxd *s, void *ctx, const struct ctl_done *done)
{
	struct image *i = ctx;
	struct image_wait *w;

	i->ready = done->code == 0;
	if (i->ready)
		note_driver(s, done);
	if (!i->ready) {
		log_error("image %s: %s", i->name, done->text);
		image_forget(i);
	}
	while ((w = TAILQ_FIRST(&i->waiting))) {
		TAILQ_REMOVE(&i->waiting, w, link);
		w->fn(s, w->ctx, i->ready ? i->prepared : -1, done);
		free(w);
	}
	if (!i->ready)
		image_free(i);
}

static struct image *image_add(struct sbxd *s, const char *name)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->s = s;
	i->prepared = memfd_create("sbxd-prepared", MFD_CLOEXEC);
	(void)strlcpy(i->name, name, sizeof(i->name));
	TAILQ_INIT(&i->waiting);
	LIST_INSERT_HEAD(&s->images, i, link);
	s->image_count++;
	return i;
}

static int image_prepare(struct image *i)
{
	struct ctl_prepare body = {0};

	if (i->prepared < 0)
		return -EMFILE;
	sbxd_fill_site(i->s, &body.site);
	(void)strlcpy(body.image, i->name, sizeof(body.image));
	return janitor_order(i->s, &(struct janitor_order){
				       .type = CTL_PREPARE,
				       .body = &body,
				       .len = sizeof(body),
				       .fd = i->prepared,
				       .fn = on_prepared,
				       .ctx = i,
				   });
}

static int image_wait_for(struct image *i, image_ready_fn *fn, uint64_t ctx)
{
	struct image_wait *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->ctx = ctx;
	TAILQ_INSERT_TAIL(&i->waiting, w, link);
	return 0;
}

void image_need(struct sbxd *s, const char *image, image_ready_fn *fn, uint64_t ctx)
{
	struct ctl_done failed = {.code = ENOMEM, .text = "no memory to prepare the image"};
	struct image *i = image_find(s, image);
	bool fresh = !i;

	if (i && i->ready) {
		fn(s, ctx, i->prepared, &(struct ctl_done){0});
		return;
	}
	if (fresh && s->image_count >= IMAGES_MAX) {
		failed.code = EMFILE;
		(void)snprintf(
		    failed.text, sizeof(failed.text), "more than %d images in use", IMAGES_MAX);
	} else if (fresh) {
		i = image_add(s, image);
	}
	if (i && image_wait_for(i, fn, ctx) == 0 && (!fresh || image_prepare(i) == 0))
		return;
	if (i && fresh) {
		image_forget(i);
		image_free(i);
	}
	fn(s, ctx, -1, &failed);
}

void images_free(struct sbxd *s)
{
	struct image *i;

	while ((i = LIST_FIRST(&s->images))) {
		image_forget(i);
		image_free(i);
	}
}
