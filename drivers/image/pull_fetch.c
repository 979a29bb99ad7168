/*
 * pull_fetch: skopeo: what an image is, and its copy as a layout of our own. `sbx-worker image`.
 *
 * From a registry the very manifest is copied that was looked at: its tag may go on meanwhile.
 * skopeo checks each blob against its digest. It runs as a user that owns nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "drivers/image/pull_int.h"
#include "drivers/image/tree.h"
#include "drivers/image/trim.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define ARGS_MAX 16
#define SOURCE_MAX 512
#define STALL_NS (60 * NS_PER_S) /* nothing came for so long: it will not go on */
#define UNPACKED_FACTOR 3	 /* packed layers, and the root that is made of them, about */

struct args {
	const char *argv[ARGS_MAX];
	size_t count;
};

static void add(struct args *a, const char *arg)
{
	if (a->count < ARGS_MAX - 1)
		a->argv[a->count++] = arg;
}

/* What skopeo calls it. digest: "" the one that the reference means. */
static void print_source(const struct pull *p, const char *digest, char out[SOURCE_MAX])
{
	const struct image_ref *ref = &p->order->ref;
	const char *d = *digest ? digest : ref->digest;

	if (ref->kind == IMAGE_KIND_OCI)
		(void)snprintf(
		    out, SOURCE_MAX, "oci:/source%s%s", ref->tag[0] ? ":" : "", ref->tag);
	else
		(void)snprintf(out, SOURCE_MAX, "docker://%s%s%s", ref->name, *d ? "@" : ":",
		    *d ? d : ref->tag);
}

static bool without_tls(const struct pull *p)
{
	char registry[IMAGE_PART_LEN];

	image_ref_registry(&p->order->ref, registry);
	return p->order->ref.loopback || image_settings_is_insecure(&p->order->settings, registry);
}

static int run_skopeo(struct pull *p, const char *const *argv, struct buf *out, struct err *err)
{
	bool remote = p->order->ref.kind == IMAGE_KIND_REGISTRY;
	struct jail_spec spec = {
	    .argv = argv,
	    .binds = {{p->load, "/work", true},
		{remote ? NULL : p->order->ref.name, "/source", false}},
	    .network = remote,
	    .uid = remote ? p->order->uid : 0,
	    .auth = &p->auth,
	};

	return image_run(&spec, "skopeo", out, &p->watch, err);
}

/* Reads the manifest that `digest` names, "" the one of the reference. */
static int inspect(
    struct pull *p, const char *digest, char found[IMAGE_DIGEST_LEN], struct err *err)
{
	char source[SOURCE_MAX];
	struct args a = {0};
	struct buf out;
	int rc;

	print_source(p, digest, source);
	add(&a, p->skopeo);
	add(&a, "inspect");
	add(&a, "--raw");
	if (p->order->ref.kind == IMAGE_KIND_REGISTRY && without_tls(p))
		add(&a, "--tls-verify=false");
	if (p->auth.len)
		add(&a, "--authfile=" JAIL_AUTH);
	add(&a, source);
	buf_init(&out, MANIFEST_MAX);
	rc = run_skopeo(p, a.argv, &out, err);
	if (rc == 0 && manifest_digest(buf_head(&out), out.len, found) < 0)
		rc = err_set(err, EIO, "SHA-256 is not to be had");
	if (rc == 0 && *digest && strcmp(found, digest) != 0)
		rc = err_set(err, EBADMSG,
		    "the registry gave another manifest (%.19s...) than was asked for (%.19s...)",
		    found, digest);
	if (rc == 0)
		rc = manifest_parse(buf_head(&out), out.len, &p->manifest, err);
	buf_free(&out);
	return rc;
}

int pull_resolve(struct pull *p, struct err *err)
{
	char chosen[IMAGE_DIGEST_LEN];
	int rc;

	if (p->order->ref.kind == IMAGE_KIND_OCI && access(p->order->ref.name, R_OK | X_OK) < 0)
		return err_sys(err, errno, "image %s", p->order->reference);
	rc = inspect(p, p->order->ref.digest, p->source, err);
	if (rc < 0 || !p->manifest.chosen[0])
		return rc;
	/* The one of a layout is chosen by skopeo, by the same rule. */
	if (p->order->ref.kind == IMAGE_KIND_OCI)
		return 0;
	(void)snprintf(chosen, sizeof(chosen), "%s", p->manifest.chosen);
	rc = inspect(p, chosen, p->source, err);
	if (rc == 0 && p->manifest.chosen[0])
		rc = err_set(err, EINVAL, "the image is an index of indexes");
	return rc;
}

/* When bytes stop coming, it is not the bound of the whole pull that ends it. */
static int tick(void *ctx, struct err *err)
{
	struct pull *p = ctx;
	struct image_tree t;
	uint64_t now = clock_now_ns();

	if (image_tree_measure(p->load, &t) < 0)
		return 0; /* files of it come and go: at the next look */
	if (t.size > p->order->settings.cache_bytes)
		return err_set(err, EFBIG, "the image's layers are larger than images.cache_mib");
	if (t.size != p->progress.done || p->moved_at == 0)
		p->moved_at = now;
	if (now - p->moved_at > STALL_NS)
		return err_set(err, ETIMEDOUT, "nothing came for %llu seconds",
		    (unsigned long long)(STALL_NS / NS_PER_S));
	pull_tell(p, PULL_FETCHING, t.size, p->manifest.bytes);
	return 0;
}

/* Before anything is fetched: images that nobody uses make room on a disk that is too full. */
static int check_room(struct pull *p, struct err *err)
{
	uint64_t bytes = p->manifest.bytes;
	uint32_t count = 0;
	uint64_t freed = 0;
	struct statvfs fs;
	uint64_t room;
	FD_SCOPED int names = -1;

	if (bytes > p->order->settings.cache_bytes)
		return err_set(err, EFBIG,
		    "the image's layers take %llu MiB, and images.cache_mib allows %llu",
		    (unsigned long long)(bytes >> 20),
		    (unsigned long long)(p->order->settings.cache_bytes >> 20));
	if (fstatvfs(p->store.dir, &fs) < 0)
		return 0;
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room / UNPACKED_FACTOR >= bytes)
		return 0;
	names = image_store_lock(&p->store, clock_now_ns() + PULL_LOCK_NS);
	if (names < 0)
		return 0;
	/* All of them: it is an emergency. If it is not enough, the disk says so. */
	(void)driver_trim_all(p->site, 0, &freed, err);
	(void)image_make_room(&p->store, "", 0, &count, &freed);
	fd_close(&names);
	(void)image_empty_gone(&p->store);
	return 0;
}

int pull_fetch(struct pull *p, struct err *err)
{
	char source[SOURCE_MAX];
	struct args a = {0};
	bool remote = p->order->ref.kind == IMAGE_KIND_REGISTRY;
	int rc = check_room(p, err);

	if (rc < 0)
		return rc;
	print_source(p, remote ? p->source : "", source);
	add(&a, p->skopeo);
	add(&a, "--tmpdir=/work");
	add(&a, "copy");
	if (remote && without_tls(p))
		add(&a, "--src-tls-verify=false");
	if (p->auth.len)
		add(&a, "--src-authfile=" JAIL_AUTH);
	add(&a, source);
	add(&a, "oci:/work/oci:image");
	p->watch.tick = tick;
	p->watch.ctx = p;
	p->moved_at = 0;
	pull_tell(p, PULL_FETCHING, 0, p->manifest.bytes);
	rc = run_skopeo(p, a.argv, NULL, err);
	p->watch.tick = NULL;
	return rc;
}
