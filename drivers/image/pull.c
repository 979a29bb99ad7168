/*
 * pull: an image comes into the store. `sbx-worker image`. All is made in a directory of the store
 * that has no name for anybody; if we die, our lock on it goes, and the next one removes it.
 */
#include "drivers/image/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/image/credentials.h"
#include "drivers/image/pull_int.h"
#include "drivers/image/tree.h"
#include "drivers/image/trim.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

static const char *const stage_names[PULL_STAGES] = {
    [PULL_RESOLVING] = "resolving",
    [PULL_FETCHING] = "fetching",
    [PULL_UNPACKING] = "unpacking",
    [PULL_KEEPING] = "keeping",
};

const char *pull_stage_name(enum pull_stage stage)
{
	return stage < PULL_STAGES ? stage_names[stage] : "?";
}

void pull_tell(struct pull *p, enum pull_stage stage, uint64_t done, uint64_t total)
{
	p->progress = (struct pull_progress){.stage = stage, .done = done, .total = total};
	if (p->order->progress)
		p->order->progress(p->order->ctx, &p->progress);
}

static int find_programs(struct pull *p, struct err *err)
{
	if (jail_find("skopeo", p->skopeo, sizeof(p->skopeo)) < 0)
		return err_set(err, ENOENT,
		    "images are pulled by skopeo, which is not installed: apt install skopeo");
	if (jail_find("umoci", p->umoci, sizeof(p->umoci)) < 0)
		return err_set(err, ENOENT,
		    "images are unpacked by umoci, which is not installed: apt install umoci");
	return 0;
}

int image_pull_probe(struct err *err)
{
	return find_programs(&(struct pull){0}, err);
}

/* A directory below ours. */
static int make_dir(
    struct pull *p, const char *name, uid_t uid, char out[STORE_PATH], struct err *err)
{
	(void)snprintf(out, STORE_PATH, "%s/%s%s", p->store.path, p->place, name);
	if (mkdir(out, 0700) < 0 || (uid && chown(out, uid, uid) < 0))
		return err_sys(err, errno, "make %s", out);
	return 0;
}

/* Also the time to look what others have left. */
static int begin(struct pull *p, struct err *err)
{
	FD_SCOPED int names = -1;
	int rc = image_store_open(p->site->state_dir, true, &p->store, err);

	if (rc < 0)
		return rc;
	names = image_store_lock(&p->store, clock_now_ns() + PULL_LOCK_NS);
	if (names < 0)
		return err_sys(err, -names, "lock %s", p->store.path);
	rc = image_sweep(&p->store);
	if (rc < 0)
		return err_sys(err, -rc, "look through %s", p->store.path);
	p->lock = image_store_begin(&p->store, p->place, err);
	if (p->lock < 0)
		return p->lock;
	fd_close(&names);
	(void)image_empty_gone(&p->store); /* if not, the next one does */
	rc = make_dir(p, "/rootfs", 0, p->root, err);
	if (rc == 0 && chmod(p->root, 0755) < 0)
		rc = err_sys(err, errno, "set the mode of %s", p->root);
	return rc == 0 ? make_dir(p, "/load", p->order->uid, p->load, err) : rc;
}

static bool is_here(const struct image_store *s, const char *id)
{
	char dir[IMAGE_DIGEST_LEN];

	image_store_dir_name(id, dir);
	return faccessat(s->dir, dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The image that the name has already, when it is still the registry's. */
static bool is_present(struct pull *p, char id[IMAGE_DIGEST_LEN])
{
	struct image_name name;

	if (!p->source[0] || image_store_read_name(&p->store, &p->order->ref, &name) < 0 ||
	    strcmp(name.source, p->source) != 0 || !is_here(&p->store, name.id))
		return false;
	(void)snprintf(id, IMAGE_DIGEST_LEN, "%s", name.id);
	return true;
}

static int write_name(struct pull *p, struct err *err)
{
	struct image_name name = {0};
	int rc;

	(void)snprintf(name.reference, sizeof(name.reference), "%s", p->order->reference);
	image_ref_print(&p->order->ref, name.normal);
	(void)snprintf(name.id, sizeof(name.id), "%s", p->note.id);
	(void)snprintf(name.source, sizeof(name.source), "%s", p->source);
	rc = image_store_write_name(&p->store, &name);
	return rc < 0 ? err_sys(err, -rc, "note the name of the image") : 0;
}

/*
 * Room for it among what there is, what is in use apart. What drivers have made of images can be
 * made anew here: it goes before what would have to be fetched again.
 */
static int make_room(struct pull *p, struct err *err)
{
	uint64_t cache = p->order->settings.cache_bytes;
	uint64_t most = cache - p->note.size;
	uint64_t images = 0;
	uint64_t made = 0;
	uint32_t count = 0;
	uint64_t bytes = 0;
	int rc;

	if (p->note.size > cache)
		return err_set(err, EFBIG,
		    "the image takes %llu MiB unpacked, and images.cache_mib allows %llu",
		    (unsigned long long)(p->note.size >> 20), (unsigned long long)(cache >> 20));
	rc = image_store_bytes(p->site->state_dir, &images);
	if (rc == 0)
		rc = driver_trim_all(p->site, most > images ? most - images : 0, &made, err);
	if (rc == 0)
		rc = image_make_room(
		    &p->store, p->note.id, most > made ? most - made : 0, &count, &bytes);
	if (rc == -ENOSPC || (rc == 0 && made > most))
		return err_set(err, ENOSPC,
		    "what boxes are made of leaves no room for another image in "
		    "images.cache_mib (%llu)",
		    (unsigned long long)(cache >> 20));
	return rc < 0 ? err_sys(err, -rc, "make room for the image") : 0;
}

/* All that has no name yet must be on the disk before it gets one. */
static int keep(struct pull *p, bool fresh, struct err *err)
{
	FD_SCOPED int names = -1;
	int rc = 0;

	pull_tell(p, PULL_KEEPING, 0, 0);
	if (fresh) {
		rc = image_tree_remove(p->load);
		if (rc == 0)
			rc = image_note_write(p->lock, &p->note);
		if (rc == 0 && syncfs(p->lock) < 0)
			rc = -errno;
		if (rc < 0)
			return err_sys(err, -rc, "write the image to the disk");
	}
	FAULT_POINT("image.synced");
	names = image_store_lock(&p->store, clock_now_ns() + PULL_LOCK_NS);
	if (names < 0)
		return err_sys(err, -names, "lock %s", p->store.path);
	fresh = fresh && !is_here(&p->store, p->note.id);
	if (fresh)
		rc = make_room(p, err);
	if (rc == 0 && fresh)
		rc = image_store_commit(&p->store, p->place, p->note.id, err);
	FAULT_POINT("image.committed");
	if (rc == 0)
		rc = write_name(p, err);
	return rc;
}

static int steps(struct pull *p, char id[IMAGE_DIGEST_LEN], struct err *err)
{
	bool fresh;
	int rc = find_programs(p, err);

	if (rc == 0 && p->order->ref.kind == IMAGE_KIND_REGISTRY && p->order->settings.auth)
		rc = credentials_read(p->order->settings.auth, &p->auth, err);
	if (rc == 0)
		rc = begin(p, err);
	if (rc == 0)
		rc = pull_resolve(p, err);
	if (rc < 0 || is_present(p, id))
		return rc;
	rc = pull_fetch(p, err);
	credentials_free(&p->auth); /* what unpacks must not have them */
	FAULT_POINT("image.fetched");
	if (rc == 0)
		rc = pull_read_layout(p, err);
	if (rc < 0)
		return rc;
	fresh = !is_here(&p->store, p->note.id);
	if (fresh)
		rc = pull_unpack(p, err);
	FAULT_POINT("image.unpacked");
	if (rc == 0)
		rc = keep(p, fresh, err);
	if (rc == 0)
		(void)snprintf(id, IMAGE_DIGEST_LEN, "%s", p->note.id);
	return rc;
}

int image_pull(const struct driver_site *site, const struct pull_order *order,
    char id[IMAGE_DIGEST_LEN], struct err *err)
{
	struct pull p = {
	    .site = site,
	    .order = order,
	    .store = {.dir = -1},
	    .lock = -1,
	    .watch = {.deadline_ns = clock_now_ns() + order->settings.pull_ns,
		.hangup = order->hangup},
	};
	int rc;

	image_note_init(&p.note);
	pull_tell(&p, PULL_RESOLVING, 0, 0);
	rc = steps(&p, id, err);
	credentials_free(&p.auth);
	image_note_free(&p.note);
	/* Where it became the image there is nothing of that name. */
	if (p.place[0])
		(void)image_store_discard(&p.store, p.place);
	fd_close(&p.lock);
	if (p.store.dir >= 0)
		(void)image_empty_gone(&p.store); /* if not, the next one does */
	image_store_close(&p.store);
	return rc;
}
