/*
 * store: unpacked images, by digest. Janitor and `sbx-worker image`. If one dies, what it was
 * making has no name that anybody would take it by, and no lock: image_trim() removes it.
 */
#include "drivers/image/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/image/tree.h"
#include "lib/clock.h"
#include "lib/digest.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define LOCK_TRY_MS 5
#define HOLD_WAIT (2 * NS_PER_S) /* somebody looks whether the image is in use: at once over */
#define NAME_KEY 32		 /* hex digits */
#define NAME_TEXT 1024

int image_store_open(const char *state_dir, bool make, struct image_store *out, struct err *err)
{
	struct image_store s = {.dir = -1};
	int n = snprintf(s.path, sizeof(s.path), "%s/images", state_dir);

	if (n < 0 || n >= (int)sizeof(s.path))
		return err_sys(err, ENAMETOOLONG, "state directory %s", state_dir);
	if (make && mkdir(s.path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s", s.path);
	s.dir = open(s.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.dir < 0)
		return err_sys(err, errno, "open %s", s.path);
	*out = s;
	return 0;
}

void image_store_close(struct image_store *s)
{
	fd_close(&s->dir);
}

/* 0, or -ETIMEDOUT when others have it for too long. */
static int lock_fd(int fd, int how, uint64_t deadline_ns)
{
	while (flock(fd, how | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, LOCK_TRY_MS);
	}
	return 0;
}

int image_store_lock(const struct image_store *s, uint64_t deadline_ns)
{
	FD_SCOPED int fd = openat(s->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : lock_fd(fd, LOCK_EX, deadline_ns);

	return rc < 0 ? rc : fd_take(&fd);
}

void image_store_dir_name(const char *id, char out[IMAGE_DIGEST_LEN])
{
	(void)snprintf(out, IMAGE_DIGEST_LEN, "%s", id);
	out[strcspn(out, ":")] = '-'; /* a colon parts the layers of an overlay */
}

/* ---- names ---- */

static int name_file(const char *normal, char out[NAME_KEY + 8])
{
	const struct digest_part part = {normal, strlen(normal)};
	uint8_t digest[DIGEST_LEN];
	char hex[2 * DIGEST_LEN + 1];

	if (digest_sha256(&part, 1, digest) < 0)
		return -EIO;
	digest_hex(digest, sizeof(digest), hex);
	(void)snprintf(out, NAME_KEY + 8, "ref-%.*s", NAME_KEY, hex);
	return 0;
}

/* The next line, which is cut off at its end; NULL when there is none. */
static const char *next_line(char **at)
{
	char *line = *at;
	char *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return line;
}

int image_store_read_name_file(
    const struct image_store *s, const char *file, struct image_name *out)
{
	struct image_name name = {0};
	char text[NAME_TEXT];
	char *at = text;
	ssize_t n = fd_read_file_at(s->dir, file, text, sizeof(text));
	struct {
		char *to;
		size_t size;
	} lines[] = {
	    {name.reference, sizeof(name.reference)},
	    {name.normal, sizeof(name.normal)},
	    {name.id, sizeof(name.id)},
	    {name.source, sizeof(name.source)},
	};

	if (n < 0)
		return (int)n;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *line = next_line(&at);

		if (!line || strlen(line) >= lines[i].size)
			return -EBADMSG;
		memcpy(lines[i].to, line, strlen(line) + 1);
	}
	if (!image_digest_is_sound(name.id))
		return -EBADMSG;
	*out = name;
	return 0;
}

int image_store_read_name(
    const struct image_store *s, const struct image_ref *ref, struct image_name *out)
{
	char normal[IMAGE_NORMAL_LEN];
	char file[NAME_KEY + 8];
	struct image_name name;
	int rc;

	image_ref_print(ref, normal);
	rc = name_file(normal, file);
	if (rc == 0)
		rc = image_store_read_name_file(s, file, &name);
	if (rc == 0 && strcmp(name.normal, normal) != 0)
		rc = -ENOENT;
	if (rc == 0)
		*out = name;
	return rc;
}

int image_store_write_name(const struct image_store *s, const struct image_name *name)
{
	char file[NAME_KEY + 8];
	char text[NAME_TEXT];
	FD_SCOPED int fd = -1;
	int rc = name_file(name->normal, file);
	int n = snprintf(text, sizeof(text), "%s\n%s\n%s\n%s\n", name->reference, name->normal,
	    name->id, name->source);

	if (rc < 0)
		return rc;
	/* Under the lock: it is nobody else's. */
	fd = openat(s->dir, "ref.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)n) != n || fsync(fd) < 0)
		return errno ? -errno : -ENOSPC;
	FAULT_POINT("image.named");
	return renameat(s->dir, "ref.new", s->dir, file) < 0 ? -errno : 0;
}

/* ---- finding ---- */

/* The directory of an image with a shared lock, still of that name. fd or -errno. */
static int hold_image(const struct image_store *s, const char *id)
{
	char name[IMAGE_DIGEST_LEN];
	struct stat held;
	struct stat named;
	FD_SCOPED int fd = -1;
	int rc;

	image_store_dir_name(id, name);
	fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = lock_fd(fd, LOCK_SH, clock_now_ns() + HOLD_WAIT);
	if (rc < 0)
		return rc == -ETIMEDOUT ? -ENOENT : rc; /* it is being removed */
	if (fstat(fd, &held) < 0 || fstatat(s->dir, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    held.st_ino != named.st_ino || held.st_dev != named.st_dev)
		return -ENOENT;
	return fd_take(&fd);
}

static int find_in(
    const struct image_store *s, const struct image_ref *ref, bool use, struct image_found *out)
{
	struct image_name name = {0};
	char dir[IMAGE_DIGEST_LEN];
	int rc = 0;

	if (ref->kind == IMAGE_KIND_ID)
		(void)snprintf(name.id, sizeof(name.id), "%s", ref->digest);
	else
		rc = image_store_read_name(s, ref, &name);
	if (rc < 0)
		return rc;
	out->hold = hold_image(s, name.id);
	if (out->hold < 0)
		return out->hold;
	rc = image_note_read(out->hold, &out->note);
	if (rc < 0)
		return rc;
	if (use) /* only the order of removal depends on it */
		(void)utimensat(out->hold, NOTE_FILE, NULL, 0);
	image_store_dir_name(name.id, dir);
	(void)snprintf(out->root, sizeof(out->root), "%s/%s/rootfs", s->path, dir);
	return 0;
}

static int find(const char *state_dir, const struct image_ref *ref, bool use,
    struct image_found *out, struct err *err)
{
	struct image_store s;
	struct image_found found = {.hold = -1};
	char normal[IMAGE_NORMAL_LEN];
	int rc = image_store_open(state_dir, false, &s, err);

	image_note_init(&found.note);
	if (rc == 0) {
		rc = find_in(&s, ref, use, &found);
		image_store_close(&s);
	}
	if (rc == 0) {
		*out = found;
		return 0;
	}
	fd_close(&found.hold);
	image_note_free(&found.note);
	image_ref_print(ref, normal);
	if (rc == -ENOENT || rc == -EBADMSG)
		return err_set(err, ENODATA, "image %s is not here", normal);
	return err_sys(err, -rc, "look for image %s", normal);
}

int image_store_find(
    const char *state_dir, const struct image_ref *ref, struct image_found *out, struct err *err)
{
	return find(state_dir, ref, true, out, err);
}

int image_store_peek(
    const char *state_dir, const struct image_ref *ref, struct image_found *out, struct err *err)
{
	return find(state_dir, ref, false, out, err);
}

/* ---- making ---- */

int image_store_begin(const struct image_store *s, char name[16], struct err *err)
{
	char path[STORE_PATH];
	FD_SCOPED int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/new-XXXXXX", s->path);
	if (!mkdtemp(path))
		return err_sys(err, errno, "make a directory in %s", s->path);
	(void)snprintf(name, 16, "%s", strrchr(path, '/') + 1);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Whoever sweeps may have been faster: then it is gone, and this fails. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(err, errno, "lock %s", path);
	FAULT_POINT("image.begun");
	return fd_take(&fd);
}

int image_store_commit(
    const struct image_store *s, const char *name, const char *id, struct err *err)
{
	char own[IMAGE_DIGEST_LEN];

	image_store_dir_name(id, own);
	FAULT_POINT("image.commit");
	if (renameat(s->dir, name, s->dir, own) == 0)
		return fsync(s->dir) < 0 ? err_sys(err, errno, "write the image to the disk") : 0;
	if (errno != EEXIST && errno != ENOTEMPTY)
		return err_sys(err, errno, "keep image %s", id);
	return 0; /* somebody else made the same: ours is left to its owner */
}

int image_store_discard(const struct image_store *s, const char *name)
{
	char path[STORE_PATH];

	if (snprintf(path, sizeof(path), "%s/%s", s->path, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return image_tree_remove(path);
}
