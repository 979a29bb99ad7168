/*
 * images: what the driver prepared for each image in use. Runs in sbxd; when sbxd dies its
 * successor has the images prepared anew, and live boxes need theirs no more: their workers hold
 * what they are made of.
 */
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/image_job.h"
#include "supervisor/images_int.h"
#include "supervisor/janitor_link.h"
#include "supervisor/sbxd.h"

#define IMAGES_MAX 64 /* each holds a descriptor, and a directory of the driver's */

static const struct ctl_done no_memory = {.code = ENOMEM, .text = "no memory to prepare the image"};

struct image *image_find(const struct sbxd *s, const char *name)
{
	struct image *i;

	TAILQ_FOREACH (i, &s->images, link) {
		if (!strcmp(i->name, name))
			return i;
	}
	return NULL;
}

/* Whoever needs it from now on has it prepared anew. */
static void image_forget(struct image *i)
{
	TAILQ_REMOVE(&i->s->images, i, link);
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
	fd_close(&i->hold);
	buf_free(&i->config);
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

/* Whether it failed because of what the image is, or because of what the driver is. */
static enum api_error prepare_error(int32_t code)
{
	static const struct {
		int32_t code;
		enum api_error error;
	} errors[] = {
	    {0, API_OK},
	    {EINVAL, API_IMAGE_PULL_FAILED},
	    {ENOENT, API_IMAGE_PULL_FAILED},
	    {ENODATA, API_IMAGE_PULL_FAILED}, /* pulled, and removed before it was prepared */
	    {ENOTDIR, API_IMAGE_PULL_FAILED},
	    {EACCES, API_IMAGE_PULL_FAILED},
	    {ELOOP, API_IMAGE_PULL_FAILED},
	    {ENAMETOOLONG, API_IMAGE_PULL_FAILED},
	    {ENOSPC, API_NO_SPACE},
	    {EDQUOT, API_NO_SPACE},
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == code)
			return errors[i].error;
	}
	return API_BOOT_FAILED;
}

/* Whoever waits is told; one that is not ready is forgotten. */
static void image_settle(struct image *i, const struct ctl_done *done, enum api_error error)
{
	struct sbxd *s = i->s;
	struct image_wait *w;

	if (done->code == 0) {
		i->state = IMAGE_READY;
	} else {
		if (!i->pulled || error != API_IMAGE_PULL_FAILED) /* else its pull has said so */
			log_error("image %s: %s", i->name, done->text);
		image_forget(i);
	}
	/* As long as anybody is in the list, whoever is told cannot bring its end about. */
	while ((w = TAILQ_FIRST(&i->waiting))) {
		w->fn(s, w->ctx, i->state == IMAGE_READY ? i->prepared : -1, done, error);
		TAILQ_REMOVE(&i->waiting, w, link);
		free(w);
	}
	if (i->state != IMAGE_READY)
		image_free(i);
}

static int image_prepare(struct image *i);

/* What it is about when nothing comes of the driver that was taken instead. */
static void add_passed(const struct image *i, struct ctl_done *done)
{
	size_t len = strlen(done->text);

	if (i->passed[0])
		(void)snprintf(done->text + len, sizeof(done->text) - len,
		    " (driver auto passed over %s)", i->passed);
}

static void on_pulled(
    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	struct image *i = (void *)(uintptr_t)ctx;
	struct ctl_done failed = *done;

	(void)s;
	(void)result;
	i->pulled = true;
	i->state = IMAGE_PREPARING;
	add_passed(i, &failed);
	if (done->code)
		image_settle(i, &failed, image_job_error(done->code));
	else if (image_prepare(i) < 0)
		image_settle(i, &no_memory, API_INTERNAL);
}

/* It is not in the store: 0 when it is on its way there. */
static int image_pull(struct image *i)
{
	const struct image_hook hook = {.ctx = (uint64_t)(uintptr_t)i, .done = on_pulled};
	int rc = image_job_order(i->s, CTL_IMAGE_PULL, i->name, &hook);

	if (rc == 0)
		i->state = IMAGE_PULLING;
	return rc;
}

/* What came with the answer. */
static int image_take(struct image *i, struct janitor_more *more)
{
	buf_clear(&i->config);
	if (!more)
		return 0;
	i->hold = fd_take(more->fd);
	return buf_append(&i->config, more->tail, more->tail_len);
}

/* Told once: what is prepared after a pull says the same again. */
static void note_passed(struct image *i, const struct ctl_done *done)
{
	if (strcmp(i->passed, done->passed) != 0 && done->passed[0])
		log_info(
		    "driver auto: for image %s these were passed over: %s", i->name, done->passed);
	(void)strlcpy(i->passed, done->passed, sizeof(i->passed));
}

static void on_prepared(
    struct sbxd *s, void *ctx, const struct ctl_done *done, struct janitor_more *more)
{
	const struct ctl_done busy = {.code = EAGAIN, .text = "too many images are to be pulled"};
	struct image *i = ctx;

	note_passed(i, done);
	if (done->code == ENODATA && !i->pulled) {
		if (image_pull(i) < 0)
			image_settle(i, &busy, API_TOO_MANY);
		return;
	}
	if (done->code == 0)
		note_driver(s, done); /* before anybody starts a box of it */
	if (done->code == 0 && image_take(i, more) < 0)
		image_settle(i, &no_memory, API_INTERNAL);
	else
		image_settle(i, done, prepare_error(done->code));
}

static struct image *image_add(struct sbxd *s, const char *name)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->s = s;
	i->prepared = memfd_create("sbxd-prepared", MFD_CLOEXEC);
	i->hold = -1;
	buf_init(&i->config, CTL_TAIL_MAX);
	(void)strlcpy(i->name, name, sizeof(i->name));
	TAILQ_INIT(&i->waiting);
	TAILQ_INSERT_HEAD(&s->images, i, link);
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

bool image_is_idle(const struct image *i)
{
	return i->state == IMAGE_READY && TAILQ_EMPTY(&i->waiting);
}

void image_drop(struct image *i)
{
	image_forget(i);
	image_free(i);
}

/* The one that was needed longest ago makes room for another. */
static bool make_room(struct sbxd *s)
{
	struct image *i;

	TAILQ_FOREACH_REVERSE(i, &s->images, image_list, link)
	{
		if (image_is_idle(i) && strcmp(i->name, s->config.image) != 0)
			break;
	}
	if (i)
		image_drop(i);
	return i != NULL;
}

void image_need(struct sbxd *s, const char *image, image_ready_fn *fn, uint64_t ctx)
{
	struct ctl_done failed = no_memory;
	struct image *i = image_find(s, image);
	bool fresh = !i;

	if (i && i->state == IMAGE_READY) {
		TAILQ_REMOVE(&s->images, i, link);
		TAILQ_INSERT_HEAD(&s->images, i, link);
		fn(s, ctx, i->prepared, &(struct ctl_done){0}, API_OK);
		return;
	}
	if (fresh && s->image_count >= IMAGES_MAX && !make_room(s)) {
		failed.code = EMFILE;
		(void)snprintf(failed.text, sizeof(failed.text), "more than %d images on their way",
		    IMAGES_MAX);
	} else if (fresh) {
		i = image_add(s, image);
	}
	if (i && image_wait_for(i, fn, ctx) == 0 && (!fresh || image_prepare(i) == 0))
		return;
	if (i && fresh)
		image_drop(i);
	fn(s, ctx, -1, &failed, image_job_error(failed.code));
}

bool image_is_ready(const struct sbxd *s, const char *image)
{
	const struct image *i = image_find(s, image);

	return i && i->state == IMAGE_READY;
}

void images_free(struct sbxd *s)
{
	struct image *i;

	while ((i = TAILQ_FIRST(&s->images)))
		image_drop(i);
}
