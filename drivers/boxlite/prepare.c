/*
 * prepare: can BoxLite be had, the image, and the end of it all. Janitor. If it dies half-way, the
 * next prepare() goes on, and finish() removes all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "drivers/boxlite/boxlite.h"
#include "drivers/record.h"
#include "lib/fault.h"
#include "lib/image_ref.h"

#define PROBE_OPEN_MS 8000
#define PROBE_LIST_MS 5000
#define PULL_MS (30U * 60 * 1000) /* a large image over a slow line */
#define CLOSE_MS 2000

bool boxlite_takes(const char *image)
{
	struct image_ref ref;

	return image_ref_parse(image, &ref, &(struct err){0}) == 0 &&
	       ref.kind == IMAGE_KIND_REGISTRY;
}

static int ignore_name(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 0;
}

/* A server is asked for something, else its address could be anybody's. */
static int probe_server(struct link *l, const struct driver_site *site, struct err *err)
{
	struct eng_name body = {.time_ms = PROBE_LIST_MS};
	struct eng_done done = {0};
	struct err why = {0};
	int rc;

	(void)snprintf(body.name, sizeof(body.name), "sbxd-%s-", site->instance);
	rc = link_order(l,
	    &(struct link_order){
		.type = ENG_LIST,
		.body = &body,
		.time_ms = PROBE_LIST_MS,
		.fd = -1,
		.name = ignore_name,
	    },
	    &done, &why);
	if (rc < 0)
		return err_set(err, why.code,
		    "%s (see whether boxlite.url, boxlite.api_key and boxlite.path_prefix are the "
		    "server's)",
		    why.text);
	return 0;
}

/* Where the library would make its files, were it in use: somewhere else, and gone afterwards. */
static int probe_run(
    const struct driver_site *site, const struct place *place, struct link *l, struct err *err)
{
	char home[PLACE_LEN] = "";
	struct eng_done done = {0};
	int rc;

	if (!place->remote)
		(void)snprintf(home, sizeof(home), "%.200s/boxlite-%.31s.trial", site->runtime_dir,
		    site->instance);
	rc = link_open_library(l, &site->options, home, PROBE_OPEN_MS, &done, err);
	if (rc == 0 && place->remote)
		rc = probe_server(l, site, err);
	link_close(l, CLOSE_MS);
	if (home[0])
		(void)record_remove_tree(AT_FDCWD, home);
	return rc;
}

int boxlite_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err)
{
	struct driver_facts found = {.isolation = "microvm-kvm"};
	struct place place;
	struct link l;

	if (place_fill(site, &site->options, &place, err) < 0 || link_open(&l, err) < 0)
		return -err->code;
	if (probe_run(site, &place, &l, err) < 0)
		return -err->code;
	if (place.remote)
		(void)snprintf(found.isolation, sizeof(found.isolation), "remote");
	(void)snprintf(found.warning, sizeof(found.warning),
	    "BoxLite has no limit of processes: pids_max is not kept");
	*facts = found;
	return 0;
}

/* Into a home directory without a box, which each box's home is then made from. */
static int prepare_image(
    const struct driver_site *site, const struct place *place, const char *image, struct err *err)
{
	struct eng_image body = {.time_ms = PULL_MS};
	struct eng_done done = {0};
	char home[PLACE_LEN];
	struct link l;
	int rc;

	if (place_image(place, image, home) < 0)
		return err_set(err, ENAMETOOLONG, "the paths of images are too long");
	(void)snprintf(body.image, sizeof(body.image), "%s", image);
	rc = link_open(&l, err);
	if (rc < 0)
		return rc;
	l.busy = site->busy;
	l.busy_ctx = site->busy_ctx;
	rc = link_open_library(&l, &site->options, home, PROBE_OPEN_MS, &done, err);
	if (rc == 0)
		rc = link_order(&l,
		    &(struct link_order){
			.type = ENG_PULL,
			.body = &body,
			.time_ms = PULL_MS,
			.fd = -1,
		    },
		    &done, err);
	link_close(&l, CLOSE_MS);
	return rc;
}

static int check_image(const struct place *place, const char *image, struct err *err)
{
	struct stat st;

	if (!*image || !strcmp(image, "host"))
		return err_set(err, EINVAL,
		    "image \"%s\": BoxLite cannot show the host: give an image of a registry, as "
		    "python:3.12-slim, or a directory with an OCI image",
		    image);
	if (image[0] != '/')
		return 0;
	if (place->remote)
		return err_set(err, EINVAL,
		    "image %s: a BoxLite server has no directories of this host", image);
	if (stat(image, &st) < 0)
		return err_sys(err, errno, "image %s", image);
	return S_ISDIR(st.st_mode) ? 0 : err_sys(err, ENOTDIR, "image %s", image);
}

int boxlite_prepare(const struct driver_site *site, const char *image, struct err *err)
{
	struct place place;
	int rc = place_fill(site, &site->options, &place, err);

	if (rc == 0)
		rc = check_image(&place, image, err);
	if (rc == 0)
		rc = place_make(&place, err);
	FAULT_POINT("driver.boxlite.prepare.made");
	if (rc == 0 && !place.remote && image[0] != '/')
		rc = prepare_image(site, &place, image, err);
	FAULT_POINT("driver.boxlite.prepare.pulled");
	return rc == 0 ? driver_options_save(site, "boxlite.", NULL, err) : rc;
}

int boxlite_finish(const struct driver_site *site, struct err *err)
{
	struct place place;

	if (place_fill(site, &site->options, &place, err) < 0)
		return -err->code;
	return place_in_use(&place) ? place_remove(&place, err) : 0;
}
