/* template_build: templates on their way. Runs in sbxd; when sbxd dies the process that makes one
 * sees its control socket end, and what it was making goes with the next start. */
#include "supervisor/template_build.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "supervisor/image_job.h"
#include "supervisor/images.h"
#include "supervisor/sbxd.h"

struct template_making {
	LIST_ENTRY(template_making) link;
	struct pool_spec spec;
	struct template_hook hook;
	bool left; /* nobody waits any more */
};

static void end(struct sbxd *s, struct template_making *b, enum api_error error, const char *text,
    const json_t *result)
{
	LIST_REMOVE(b, link);
	if (!b->left)
		b->hook.done(s, b->hook.ctx, error, text, result);
	free(b);
}

static void on_built(
    struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	struct template_making *b = (void *)(uintptr_t)ctx;

	/* What is not there when it is made is no template that was asked for. */
	end(s, b, done->code == ENOENT ? API_BOOT_FAILED : template_error(done->code), done->text,
	    result);
}

static void on_progress(struct sbxd *s, uint64_t ctx, const struct ctl_progress *p)
{
	const struct template_making *b = (void *)(uintptr_t)ctx;

	if (!b->left && b->hook.progress)
		b->hook.progress(s, b->hook.ctx, p);
}

static void on_ready(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done, enum api_error error)
{
	struct template_making *b = (void *)(uintptr_t)ctx;
	struct image_config image = {.hold = -1};
	const struct image_hook hook = {.ctx = ctx, .progress = on_progress, .done = on_built};
	struct image_build build = {.spec = &b->spec, .prepared = prepared};
	int rc;

	if (prepared < 0) {
		end(s, b, error, done->text, NULL);
		return;
	}
	(void)image_config_of(s, b->spec.image, &image); /* it is prepared */
	build.hold = image.hold;
	rc = image_job_build(s, &build, &hook);
	if (rc < 0)
		end(s, b, template_error(-rc), "too many templates are to be made", NULL);
}

/* Preparing tells nothing by itself, and may be a pull. */
static void tell_preparing(struct sbxd *s, const struct template_making *b)
{
	struct ctl_progress p = {.stage = "preparing"};

	if (!b->hook.progress)
		return;
	(void)image_job_progress(s, b->spec.image, &p);
	b->hook.progress(s, b->hook.ctx, &p);
}

void template_build(struct sbxd *s, const struct pool_spec *spec, const struct template_hook *hook)
{
	struct template_making *b = calloc(1, sizeof(*b));

	if (!b) {
		hook->done(s, hook->ctx, API_INTERNAL, "out of memory", NULL);
		return;
	}
	b->spec = *spec;
	b->hook = *hook;
	LIST_INSERT_HEAD(&s->template_builds, b, link);
	tell_preparing(s, b);
	image_need(s, b->spec.image, on_ready, (uint64_t)(uintptr_t)b);
}

void template_build_unhook(struct sbxd *s, uint64_t ctx)
{
	struct template_making *b;

	LIST_FOREACH (b, &s->template_builds, link)
		b->left |= b->hook.ctx == ctx;
}

void template_builds_free(struct sbxd *s)
{
	struct template_making *b;

	while ((b = LIST_FIRST(&s->template_builds))) {
		LIST_REMOVE(b, link);
		free(b);
	}
}
