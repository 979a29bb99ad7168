/*
 * room: images.cache_mib holds for all that is kept of images. Janitor and worker; holds no state.
 *
 * What can be made anew here goes before what would have to be fetched again.
 */
#include "drivers/qemu/room.h"

#include <errno.h>
#include <stdlib.h>

#include "drivers/image/trim.h"
#include "drivers/qemu/store.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define MIB (1024ULL * 1024ULL)
#define LOCK_NS (5 * NS_PER_S) /* of the names of images */

uint64_t room_limit(const struct driver_options *o)
{
	const char *text = driver_option(o, "images.cache_mib");

	return text ? strtoull(text, NULL, 10) * MIB : 0;
}

/* Images that no box is made of go, until no more than `most` bytes are left. */
static int trim_images(const struct driver_site *site, uint64_t most, struct err *err)
{
	struct image_store s;
	uint32_t count = 0;
	uint64_t freed = 0;
	int lock;
	int rc = image_store_open(site->state_dir, false, &s, err);

	if (rc < 0)
		return rc;
	lock = image_store_lock(&s, clock_now_ns() + LOCK_NS);
	rc = lock < 0 ? lock : image_make_room(&s, "", most, &count, &freed);
	fd_close(&lock);
	if (count)
		(void)image_empty_gone(&s); /* if not, the next one does */
	image_store_close(&s);
	return rc < 0 && rc != -ENOSPC ? err_sys(err, -rc, "make room among the images") : rc;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What machines have. */
static int held_bytes(const struct driver_site *site, uint64_t *out)
{
	struct store_census c = {0};
	uint64_t held = 0;
	int rc = store_census_take(site, &c);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < c.count; i++)
		held += c.items[i].holders ? c.items[i].bytes : 0;
	store_census_free(&c);
	*out = held;
	return 0;
}

int room_make(const struct driver_site *site, uint64_t limit, uint64_t need, struct err *err)
{
	uint64_t images = 0;
	uint64_t left = 0;
	int rc;

	if (limit == 0)
		return 0;
	rc = image_store_bytes(site->state_dir, &images);
	if (rc == 0)
		rc = held_bytes(site, &left);
	/* Nothing goes for what has no room even then. */
	if (rc == 0 && left + need <= limit)
		rc = store_make_room(site, less(limit, images + need), &left);
	if (rc < 0)
		return err_sys(err, -rc, "make room in the state directory");
	if (images + left + need <= limit)
		return 0;
	if (left + need <= limit && images > 0) {
		rc = trim_images(site, limit - left - need, err);
		if (rc != -ENOSPC)
			return rc;
	}
	return err_set(err, EDQUOT,
	    "%llu MiB have no room in images.cache_mib (%llu) beside what boxes use",
	    (unsigned long long)((need + MIB - 1) / MIB), (unsigned long long)(limit / MIB));
}

int room_trim(const struct driver_site *site, uint64_t most, uint64_t *left, struct err *err)
{
	int rc;

	store_sweep_dead(site);
	rc = store_make_room(site, most, left);
	return rc < 0 ? err_sys(err, -rc, "look through the disks and templates") : 0;
}
