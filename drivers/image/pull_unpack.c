/*
 * pull_unpack: umoci: a root out of layers. `sbx-worker image`.
 *
 * Layers are hostile: links that lead elsewhere, device nodes, names with "..", files without end.
 * umoci resolves all names in the root that it makes; and should it be wrong about that, its jail
 * shows it nothing else to write to. What it made is then cleaned in another jail, and only
 * measured from outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/image/pull_int.h"
#include "drivers/image/tree.h"
#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"

#define ROOT_IN_JAIL "/work/rootfs"
#define MEASURE_STEP (64ULL << 20)

/* ---- how far it is ---- */

/* What has been taken of the disk since, by anybody: costs nothing to ask. */
static uint64_t taken(const struct pull *p)
{
	struct statvfs fs;
	uint64_t bytes = 0;

	if (fstatvfs(p->lock, &fs) < 0)
		return 0;
	if (fs.f_bfree < p->free_blocks)
		bytes += (p->free_blocks - fs.f_bfree) * fs.f_frsize;
	if (fs.f_ffree < p->free_inodes)
		bytes += (p->free_inodes - fs.f_ffree) * TREE_ENTRY;
	return bytes;
}

static int tick(void *ctx, struct err *err)
{
	struct pull *p = ctx;
	uint64_t most = p->order->settings.cache_bytes;
	uint64_t bytes = taken(p);
	struct image_tree t;

	pull_tell(p, PULL_UNPACKING, bytes, 0);
	if (bytes <= most || bytes < p->measure_at)
		return 0;
	/* Others may have taken it: only now it is worth a walk. */
	if (image_tree_measure(p->root, &t) == 0 && t.size > most)
		return err_set(err, EFBIG,
		    "the image takes more than images.cache_mib (%llu) unpacked",
		    (unsigned long long)(most >> 20));
	p->measure_at = bytes + MEASURE_STEP;
	return 0;
}

/* ---- in the jail ---- */

struct scrub {
	const char *working_dir;
	int out;
};

/* The working directory is there for commands, as other engines have it. What cannot be made is
 * not: a command says so. */
static void make_working_dir(const char *path)
{
	const struct open_how how = {
	    .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	FD_SCOPED int root = open(ROOT_IN_JAIL, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char done[NOTE_DIR_MAX + 1] = "";
	char name[256];

	while (*path) {
		size_t len = strcspn(path, "/");
		FD_SCOPED int dir = -1;

		if (len > 0 && len < sizeof(name)) {
			(void)snprintf(name, sizeof(name), "%.*s", (int)len, path);
			dir = (int)syscall(
			    SYS_openat2, root, done[0] ? done : ".", &how, sizeof(how));
			if (dir < 0 || !strcmp(name, ".."))
				return;
			(void)mkdirat(dir, name, 0755); /* most are there */
			(void)strncat(done, "/", sizeof(done) - strlen(done) - 1);
			(void)strncat(done, name, sizeof(done) - strlen(done) - 1);
		}
		path += len + (path[len] == '/');
	}
}

static int scrub_in_jail(void *ctx)
{
	const struct scrub *s = ctx;
	struct image_tree t;
	int rc;

	(void)umask(022);
	make_working_dir(s->working_dir);
	rc = image_tree_scrub(ROOT_IN_JAIL, &t);
	if (rc == 0 && write(STDOUT_FILENO, &t, sizeof(t)) == (ssize_t)sizeof(t))
		return 0;
	(void)dprintf(STDERR_FILENO, "clean what was unpacked: %s\n", strerror(rc ? -rc : EIO));
	return 1;
}

static int scrub(struct pull *p, struct err *err)
{
	struct scrub s = {.working_dir = p->note.working_dir};
	struct jail_spec spec = {
	    .fn = scrub_in_jail,
	    .ctx = &s,
	    .binds = {{p->root, ROOT_IN_JAIL, true}},
	};
	struct image_tree t;
	struct buf out;
	int rc;

	buf_init(&out, sizeof(t) + 1);
	rc = image_run(&spec, "unpacking", &out, &p->watch, err);
	if (rc == 0 && out.len != sizeof(t))
		rc = err_set(err, EIO, "what was unpacked could not be looked through");
	if (rc == 0) {
		memcpy(&t, buf_head(&out), sizeof(t));
		p->note.size = t.size;
		p->note.files = t.entries;
		if (t.devices)
			log_warn("image %s: %llu device nodes are left out", p->order->reference,
			    (unsigned long long)t.devices);
	}
	buf_free(&out);
	return rc;
}

static int run_umoci(struct pull *p, struct err *err)
{
	const char *rootless = geteuid() ? "--rootless" : NULL;
	const char *argv[] = {p->umoci, "raw", "unpack", "--image", "/source/oci:image",
	    rootless ? rootless : ROOT_IN_JAIL, rootless ? ROOT_IN_JAIL : NULL, NULL};
	struct jail_spec spec = {
	    .argv = argv,
	    .binds = {{p->root, ROOT_IN_JAIL, true}, {p->load, "/source", false}},
	};
	struct statvfs fs;

	if (fstatvfs(p->lock, &fs) == 0) {
		p->free_blocks = fs.f_bfree;
		p->free_inodes = fs.f_ffree;
	}
	p->measure_at = 0;
	p->watch.tick = tick;
	p->watch.ctx = p;
	return image_run(&spec, "umoci", NULL, &p->watch, err);
}

int pull_unpack(struct pull *p, struct err *err)
{
	int rc;

	pull_tell(p, PULL_UNPACKING, 0, 0);
	rc = run_umoci(p, err);
	p->watch.tick = NULL;
	return rc == 0 ? scrub(p, err) : rc;
}
