/*
 * image_order_remove: images go from the store. If it dies, what was to go has no name any more,
 * and the next one deletes it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "drivers/image/pull.h"
#include "drivers/image/trim.h"
#include "lib/clock.h"
#include "lib/fd.h"
#include "worker/image_order_int.h"

#define LOCK_NS (20 * NS_PER_S)

struct removal {
	struct image_store store;
	int lock;
};

static int removal_begin(const struct image_job *job, struct removal *r, struct err *err)
{
	int rc = image_store_open(job->site->state_dir, true, &r->store, err);

	if (rc < 0)
		return rc;
	r->lock = image_store_lock(&r->store, clock_now_ns() + LOCK_NS);
	if (r->lock >= 0)
		rc = image_sweep(&r->store);
	else
		rc = r->lock;
	if (rc == 0)
		return 0;
	fd_close(&r->lock);
	image_store_close(&r->store);
	return err_sys(err, -rc, "look through the images");
}

static int removal_end(struct removal *r, int rc, struct err *err)
{
	int emptied;

	fd_close(&r->lock);
	emptied = image_empty_gone(&r->store);
	image_store_close(&r->store);
	if (rc == 0 && emptied < 0)
		return err_sys(err, -emptied, "delete what was removed");
	return rc;
}

static void put_removed(struct json_out *j, const struct image_census *c, const char *id)
{
	for (size_t i = 0; i < c->count; i++) {
		if (!strcmp(c->images[i].id, id))
			json_put_string(j, NULL, id);
	}
}

/* The id that a reference, or a digest, means. */
static int find_id(
    const struct removal *r, const char *text, char id[IMAGE_DIGEST_LEN], struct err *err)
{
	struct image_name name;
	struct image_ref ref;
	int rc = image_ref_parse(text, &ref, err);

	if (rc < 0)
		return rc;
	if (ref.kind == IMAGE_KIND_ID) {
		(void)snprintf(id, IMAGE_DIGEST_LEN, "%s", ref.digest);
		return 0;
	}
	rc = image_store_read_name(&r->store, &ref, &name);
	if (rc < 0)
		return err_set(err, ENOENT, "image not found: %s", text);
	(void)snprintf(id, IMAGE_DIGEST_LEN, "%s", name.id);
	return 0;
}

static int remove_one(
    const struct image_job *job, struct removal *r, uint64_t *bytes, struct err *err)
{
	char id[IMAGE_DIGEST_LEN];
	struct image_census c;
	int rc = find_id(r, job->order->image, id, err);

	if (rc < 0)
		return rc;
	rc = image_census_take(&r->store, &c);
	if (rc < 0)
		return err_sys(err, -rc, "look through the images");
	rc = image_take_out(&r->store, id);
	if (rc == -ENOENT)
		(void)err_set(err, ENOENT, "image not found: %s", job->order->image);
	else if (rc == -EBUSY)
		(void)err_set(
		    err, EBUSY, "image %s is in use: boxes are made of it", job->order->image);
	else if (rc < 0)
		(void)err_sys(err, -rc, "remove image %s", job->order->image);
	for (size_t i = 0; rc == 0 && i < c.count; i++)
		*bytes += strcmp(c.images[i].id, id) ? 0 : c.images[i].size;
	if (rc == 0)
		put_removed(job->result, &c, id);
	image_census_free(&c);
	return rc;
}

int image_order_remove(const struct image_job *job, struct err *err)
{
	struct removal r;
	uint64_t bytes = 0;
	int rc = removal_begin(job, &r, err);

	if (rc < 0)
		return rc;
	json_object_begin(job->result, NULL);
	json_array_begin(job->result, "removed");
	rc = remove_one(job, &r, &bytes, err);
	json_array_end(job->result);
	json_put_uint(job->result, "freed_bytes", bytes);
	json_object_end(job->result);
	return removal_end(&r, rc, err);
}

/* What is not in use goes, one by one: one that resists keeps no other. */
static int prune(const struct image_job *job, struct removal *r, uint64_t *bytes, struct err *err)
{
	struct image_census c;
	int rc = image_census_take(&r->store, &c);

	if (rc < 0)
		return err_sys(err, -rc, "look through the images");
	for (size_t i = 0; i < c.count; i++) {
		if (c.images[i].in_use || image_take_out(&r->store, c.images[i].id) < 0)
			continue;
		json_put_string(job->result, NULL, c.images[i].id);
		*bytes += c.images[i].size;
	}
	image_census_free(&c);
	return 0;
}

int image_order_prune(const struct image_job *job, struct err *err)
{
	struct removal r;
	uint64_t bytes = 0;
	int rc = removal_begin(job, &r, err);

	if (rc < 0)
		return rc;
	json_object_begin(job->result, NULL);
	json_array_begin(job->result, "removed");
	rc = prune(job, &r, &bytes, err);
	json_array_end(job->result);
	json_put_uint(job->result, "freed_bytes", bytes);
	json_object_end(job->result);
	return removal_end(&r, rc, err);
}

static int sweep_images(const struct image_job *job, struct err *err)
{
	struct image_store s;
	struct removal r;
	int rc = image_store_open(job->site->state_dir, false, &s, err);

	if (rc == -ENOENT) { /* nothing was ever pulled */
		*err = (struct err){0};
		return 0;
	}
	if (rc < 0)
		return rc;
	image_store_close(&s);
	rc = removal_begin(job, &r, err);
	return rc == 0 ? removal_end(&r, 0, err) : rc;
}

/* The bound may have been another one when it was kept. */
int image_order_sweep(const struct image_job *job, struct err *err)
{
	struct image_settings settings;
	uint64_t most = UINT64_MAX; /* where nothing is said of it */
	uint64_t images = 0;
	uint64_t left;
	int rc = sweep_images(job, err);

	if (rc < 0)
		return rc;
	image_settings_read(&job->site->options, &settings);
	rc = image_store_bytes(job->site->state_dir, &images);
	if (rc < 0)
		return err_sys(err, -rc, "look through the images");
	if (settings.cache_bytes > 0)
		most = settings.cache_bytes > images ? settings.cache_bytes - images : 0;
	return driver_trim_all(job->site, most, &left, err);
}
