/*
 * janitor_prepare: what boxes of an image need, made before the first of them: by the driver that
 * is configured, or by the first that can. If the janitor dies meanwhile, it is asked again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "drivers/image/root.h"
#include "lib/fd.h"
#include "worker/janitor_int.h"

static int janitor_prepare_with(const struct driver *driver, const struct driver_site *site,
    const char *image, bool asked_for, struct janitor_answer *answer, struct err *err)
{
	struct ctl_done *done = &answer->done;
	struct driver_site with_root = *site;
	struct driver_facts facts = {0};
	struct image_root root = {.hold = -1};
	int rc = driver->probe(site, &facts, err);

	if (rc == 0 && facts.only_if_asked && !asked_for)
		rc = err_set(err, ENODEV, "only %s is possible here, which must be asked for%s%s",
		    facts.isolation, facts.why_asked[0] ? ": " : "", facts.why_asked);
	if (rc == 0 && site->busy)
		site->busy(site->busy_ctx); /* what follows has its own time */
	if (rc == 0 && driver->rooted)
		rc = image_root_get(site->state_dir, image, &root, err);
	if (rc == 0) {
		with_root.root = root.path[0] ? root.path : NULL;
		rc = driver->prepare(&with_root, image, err);
	}
	if (rc == 0) {
		done->pauses = driver->pause != NULL;
		(void)snprintf(done->driver, sizeof(done->driver), "%s", driver->name);
		(void)snprintf(done->isolation, sizeof(done->isolation), "%s", facts.isolation);
		(void)snprintf(done->warning, sizeof(done->warning), "%s", facts.warning);
		answer->fd = fd_take(&root.hold);
		answer->tail = root.config;
		root.config = (struct buf){0};
	}
	image_root_free(&root);
	return rc;
}

static int janitor_find(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 1;
}

/* Of a driver that could not, nothing of its trial stays; but what it keeps for boxes that an
 * earlier supervisor made with it is theirs. */
static void janitor_take_back(const struct driver *driver, const struct driver_site *site)
{
	struct err err;

	if (driver->list(site, janitor_find, NULL) == 0)
		(void)driver->finish(site, &err); /* why it could not is what is told */
}

/* One more that could not, and why. */
static void note_passed(struct err *all, const struct driver *driver, const struct err *why)
{
	char text[2 * sizeof(all->text) + 32];

	(void)snprintf(text, sizeof(text), "%s%s%s: %s", all->text, all->text[0] ? "; " : "",
	    driver->name, why->text);
	(void)err_set(all, why->code, "%s", text); /* a cut text is still a text */
}

/* The first driver that takes such an image and can make boxes of it here. */
static int janitor_prepare_any(const struct driver_site *site, const char *image,
    struct janitor_answer *answer, struct err *err)
{
	const struct driver *driver;
	struct err passed = {0};
	int rc;

	for (unsigned int n = 0; (driver = driver_at(n)); n++) {
		struct err one = {0};

		if (!driver->takes(image))
			continue;
		if (site->busy)
			site->busy(site->busy_ctx);
		rc = janitor_prepare_with(driver, site, image, false, answer, &one);
		if (rc == 0 ||
		    (rc == -ENODATA && driver->rooted)) { /* it could, once it is there */
			(void)snprintf(
			    answer->done.passed, sizeof(answer->done.passed), "%s", passed.text);
			return rc == 0 ? 0 : err_set(err, ENODATA, "%s", one.text);
		}
		janitor_take_back(driver, site);
		note_passed(&passed, driver, &one);
	}
	if (!passed.code)
		return err_set(err, EINVAL, "no driver knows an image \"%s\"", image);
	return err_set(err, passed.code, "%s", passed.text);
}

int janitor_prepare(const struct driver_site *site, const union ctl_body *body,
    struct janitor_answer *answer, struct err *err)
{
	const struct ctl_prepare *order = &body->prepare;
	const struct driver *driver = NULL;
	int rc;

	if (!strcmp(order->site.driver, DRIVER_AUTO))
		return janitor_prepare_any(site, order->image, answer, err);
	rc = janitor_driver(&order->site, &driver, err);
	return rc == 0 ? janitor_prepare_with(driver, site, order->image, true, answer, err) : rc;
}
