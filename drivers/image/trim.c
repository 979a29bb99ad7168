/*
 * trim: what is in the store, and what of it goes. `sbx-worker image`; it may die anywhere: what is
 * to go has a name by then under which nobody looks for it, and the next one deletes it.
 */
#include "drivers/image/trim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define GONE_TRIES 1000

enum entry_kind {
	ENTRY_OTHER,
	ENTRY_IMAGE,
	ENTRY_NAME,
	ENTRY_NEW,
	ENTRY_GONE,
};

static enum entry_kind kind_of(const char *name)
{
	static const struct {
		const char *prefix;
		enum entry_kind kind;
	} kinds[] = {
	    {"sha256-", ENTRY_IMAGE},
	    {"ref-", ENTRY_NAME},
	    {"new-", ENTRY_NEW},
	    {"gone-", ENTRY_GONE},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].kind;
	}
	return ENTRY_OTHER;
}

typedef int entry_fn(const struct image_store *s, const char *name, void *ctx);

/* Calls fn for each entry of that kind, until one fails. */
static int each_entry(const struct image_store *s, enum entry_kind kind, entry_fn *fn, void *ctx)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;

	if (!dir) {
		rc = -errno;
		fd_close(&fd);
		return rc;
	}
	for (struct dirent *e = readdir(dir); rc == 0 && e; e = readdir(dir)) {
		if (kind_of(e->d_name) == kind)
			rc = fn(s, e->d_name, ctx);
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

/* ---- looking ---- */

/* True when nobody holds it; then it is held exclusively as long as *fd is open. */
static bool claim(const struct image_store *s, const char *name, int *fd)
{
	*fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	fd_close(fd);
	return false;
}

static int add_image(const struct image_store *s, const char *name, void *ctx)
{
	struct image_census *c = ctx;
	struct image_entry e = {0};
	struct image_note note;
	struct stat st;
	FD_SCOPED int dir = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	FD_SCOPED int lock = -1;
	void *grown;

	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	image_note_init(&note);
	if (image_note_read(dir, &note) == 0 && fstatat(dir, NOTE_FILE, &st, 0) == 0) {
		e.size = note.size;
		e.files = note.files;
		e.made_wall_ms = note.made_wall_ms;
		e.used_wall_ms = (uint64_t)st.st_mtim.tv_sec * 1000;
	}
	image_note_free(&note);
	(void)snprintf(e.id, sizeof(e.id), "%s", name);
	e.id[strcspn(e.id, "-")] = ':';
	e.in_use = !claim(s, name, &lock);
	grown = realloc(c->images, (c->count + 1) * sizeof(*c->images));
	if (!grown)
		return -ENOMEM;
	c->images = grown;
	c->images[c->count++] = e;
	c->size += e.size;
	return 0;
}

static int add_name(const struct image_store *s, const char *file, void *ctx)
{
	struct image_census *c = ctx;
	struct image_name name;
	void *grown;
	bool known = false;

	if (!strcmp(file, "ref.new") || image_store_read_name_file(s, file, &name) < 0)
		return 0;
	for (size_t i = 0; i < c->count && !known; i++)
		known = !strcmp(c->images[i].id, name.id);
	if (!known)
		return 0;
	grown = realloc(c->names, (c->name_count + 1) * sizeof(*c->names));
	if (!grown)
		return -ENOMEM;
	c->names = grown;
	c->names[c->name_count++] = name;
	return 0;
}

static int longest_unused_first(const void *a, const void *b)
{
	const struct image_entry *x = a;
	const struct image_entry *y = b;

	return x->used_wall_ms < y->used_wall_ms ? -1 : x->used_wall_ms > y->used_wall_ms;
}

int image_census_take(const struct image_store *s, struct image_census *out)
{
	struct image_census c = {0};
	int rc = each_entry(s, ENTRY_IMAGE, add_image, &c);

	if (rc == 0)
		rc = each_entry(s, ENTRY_NAME, add_name, &c);
	if (rc < 0) {
		image_census_free(&c);
		return rc;
	}
	if (c.count)
		qsort(c.images, c.count, sizeof(*c.images), longest_unused_first);
	*out = c;
	return 0;
}

void image_census_free(struct image_census *c)
{
	free(c->images);
	free(c->names);
	*c = (struct image_census){0};
}

static int add_bytes(const struct image_store *s, const char *name, void *ctx)
{
	uint64_t *bytes = ctx;
	struct image_note note;
	FD_SCOPED int dir = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	image_note_init(&note);
	if (dir >= 0 && image_note_read(dir, &note) == 0)
		*bytes += note.size;
	image_note_free(&note);
	return 0;
}

int image_store_bytes(const char *state_dir, uint64_t *bytes)
{
	struct err ignored = {0};
	struct image_store s;
	int rc = image_store_open(state_dir, false, &s, &ignored);

	*bytes = 0;
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	rc = each_entry(&s, ENTRY_IMAGE, add_bytes, bytes);
	image_store_close(&s);
	return rc;
}

/* ---- taking out ---- */

/* Under a name that nobody looks for. */
static int put_away(const struct image_store *s, const char *name)
{
	char gone[48];

	for (int i = 0; i < GONE_TRIES; i++) {
		(void)snprintf(gone, sizeof(gone), "gone-%d-%d", (int)getpid(), i);
		if (renameat(s->dir, name, s->dir, gone) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

static int sweep_new(const struct image_store *s, const char *name, void *ctx)
{
	FD_SCOPED int lock = -1;

	(void)ctx;
	return claim(s, name, &lock) ? put_away(s, name) : 0;
}

static int sweep_name(const struct image_store *s, const char *file, void *ctx)
{
	const char *of = ctx; /* an id: names of that image go; NULL: those of none */
	struct image_name name;
	char dir[IMAGE_DIGEST_LEN];
	int rc = image_store_read_name_file(s, file, &name);

	if (rc < 0 && rc != -EBADMSG)
		return rc == -ENOENT ? 0 : rc;
	if (rc == 0 && of && strcmp(name.id, of) != 0)
		return 0;
	if (rc == 0 && !of) {
		image_store_dir_name(name.id, dir);
		if (faccessat(s->dir, dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return 0;
	}
	return unlinkat(s->dir, file, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int image_sweep(const struct image_store *s)
{
	int rc = each_entry(s, ENTRY_NEW, sweep_new, NULL);

	return rc == 0 ? each_entry(s, ENTRY_NAME, sweep_name, NULL) : rc;
}

int image_take_out(const struct image_store *s, const char *id)
{
	char name[IMAGE_DIGEST_LEN];
	char of[IMAGE_DIGEST_LEN];
	FD_SCOPED int lock = -1;
	int rc;

	image_store_dir_name(id, name);
	if (faccessat(s->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!claim(s, name, &lock))
		return -EBUSY;
	/* Its names first: one that names nothing is harmless, and an image without one is not
	 * found by those who look. */
	(void)snprintf(of, sizeof(of), "%s", id);
	rc = each_entry(s, ENTRY_NAME, sweep_name, of);
	FAULT_POINT("image.unnamed");
	return rc == 0 ? put_away(s, name) : rc;
}

int image_make_room(
    const struct image_store *s, const char *keep, uint64_t most, uint32_t *count, uint64_t *bytes)
{
	struct image_census c;
	int rc = image_census_take(s, &c);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < c.count && c.size > most; i++) {
		const struct image_entry *e = &c.images[i];

		if (e->in_use || !strcmp(e->id, keep))
			continue;
		rc = image_take_out(s, e->id);
		if (rc == -EBUSY || rc == -ENOENT) {
			rc = 0;
			continue;
		}
		c.size -= e->size;
		*bytes += e->size;
		++*count;
	}
	if (rc == 0 && c.size > most)
		rc = -ENOSPC;
	image_census_free(&c);
	return rc;
}

/* Several may be at it. */
static int delete_gone(const struct image_store *s, const char *name, void *ctx)
{
	int rc = image_store_discard(s, name);

	(void)ctx;
	return rc == -ENOENT || rc == -ENOTEMPTY ? 0 : rc;
}

int image_empty_gone(const struct image_store *s)
{
	return each_entry(s, ENTRY_GONE, delete_gone, NULL);
}
