/*
 * unpack_dest: where a member goes. sbx-files; if it dies, directories that were made stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files/unpack.h"
#include "guest/path.h"

#define DEST_LINKS_MAX 40 /* as the kernel */
#define DEST_NEW_MODE 0755

/* ---- opening, and making what is missing ---- */

/* Opens a directory, as a place. The descriptor or -errno. */
typedef int open_fn(struct unpack *u, const char *path);

static int open_in_box(struct unpack *u, const char *path)
{
	return path_open(u->root, path, O_PATH | O_DIRECTORY, 0);
}

static int open_in_dest(struct unpack *u, const char *name)
{
	return dest_open(u, name, O_PATH | O_DIRECTORY);
}

int dest_open(struct unpack *u, const char *name, int flags)
{
	struct open_how how = {
	    .flags = (unsigned int)(flags | O_CLOEXEC),
	    .resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH,
	};

	/* Nothing leads out of the whole box, and absolute links are common in it. */
	if (strcmp(u->path, "/") == 0)
		how.resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT;
	if (*name == '\0')
		name = ".";
	return path_openat2(u->dest, name, &how);
}

/*
 * Makes and opens the last component of way, whose directory is open as dir. The descriptor,
 * -EEXIST or -errno.
 */
static int make_one(struct unpack *u, int dir, const char *way)
{
	const char *slash = strrchr(way, '/');
	const char *name = slash != NULL ? slash + 1 : way;
	int fd;

	if (mkdirat(dir, name, DEST_NEW_MODE) != 0)
		return -errno;
	if (*way != '/')
		dirs_add(u, way, NULL);
	fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* As open(), and makes what is missing on the way. The descriptor or -errno. */
static int open_making(struct unpack *u, const char *path, open_fn *open)
{
	char way[PATH_LEN_MAX + 1];
	size_t len = strlen(path);
	PATH_SCOPED int above = -1;
	bool made = false; /* above: there is nothing in it, so nobody walks all the way again */
	int fd = open(u, path);

	if (fd != -ENOENT)
		return fd;
	for (size_t i = 1; i <= len; i++) {
		if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
			continue;
		memcpy(way, path, i);
		way[i] = '\0';
		fd = made ? -ENOENT : open(u, way);
		if (fd == -ENOENT) {
			if (above < 0)
				above = open(u, *path == '/' ? "/" : "");
			fd = above < 0 ? above : make_one(u, above, way);
			made = fd >= 0;
			if (fd == -EEXIST)
				fd = open(u, way);
		}
		if (fd < 0)
			return fd;
		path_close(&above);
		above = fd;
	}
	above = -1;
	return fd;
}

/* ---- the destination ---- */

int dest_find(struct unpack *u)
{
	int fd = open_in_box(u, u->path);

	if (fd >= 0) {
		u->dest = fd;
		u->target = UNPACK_DIRECTORY;
		return 0;
	}
	if (fd == -ENOENT || (fd == -ENOTDIR && !u->directory))
		return 0;
	return unpack_fail_errno(u, u->path, -fd);
}

/* Replaces the last component of path by the text of a link. 0 or -errno. */
static int follow(char *path, const char *link, size_t n)
{
	size_t base = link[0] == '/' ? 0 : (size_t)(strrchr(path, '/') - path) + 1;

	if (n == 0 || base + n > PATH_LEN_MAX)
		return n == 0 ? -ENOENT : -ENAMETOOLONG;
	memcpy(path + base, link, n);
	path[base + n] = '\0';
	return 0;
}

/* Opens the directory above path, and copies its last component. 0 or -errno. */
static int find_above(struct unpack *u, char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash + 1;

	if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	if (strlen(name) >= sizeof(u->spot_name))
		return -ENAMETOOLONG;
	memcpy(u->spot_name, name, strlen(name) + 1);
	*slash = '\0';
	path_close(&u->spot_dir);
	u->spot_dir = open_making(u, *path != '\0' ? path : "/", open_in_box);
	*slash = '/';
	return u->spot_dir < 0 ? u->spot_dir : 0;
}

int dest_find_spot(struct unpack *u, struct unpack_spot *spot)
{
	char path[PATH_LEN_MAX + 1];
	char link[PATH_LEN_MAX + 1];
	int rc = -ELOOP;

	memcpy(path, u->path, strlen(u->path) + 1); /* was checked */
	for (int i = 0; u->spot_dir < 0 && i < DEST_LINKS_MAX; i++) {
		ssize_t n;

		rc = find_above(u, path);
		if (rc < 0)
			break;
		n = readlinkat(u->spot_dir, u->spot_name, link, sizeof(link));
		if (n < 0) /* no link, or nothing: using the spot will tell */
			break;
		path_close(&u->spot_dir);
		rc = follow(path, link, (size_t)n);
		if (rc < 0)
			break;
		rc = -ELOOP;
	}
	if (u->spot_dir < 0)
		return unpack_fail_errno(u, u->path, -rc);
	*spot = (struct unpack_spot){.dir = u->spot_dir, .name = u->spot_name};
	return 0;
}

int dest_make(struct unpack *u)
{
	struct unpack_spot spot;
	bool made;
	int fd;

	if (dest_find_spot(u, &spot) < 0)
		return -1;
	made = mkdirat(spot.dir, spot.name, DEST_NEW_MODE) == 0;
	if (!made && errno != EEXIST)
		return unpack_fail_errno(u, u->path, errno);
	fd = openat(spot.dir, spot.name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return unpack_fail_errno(u, u->path, errno);
	u->dest = fd;
	u->target = UNPACK_DIRECTORY;
	if (made)
		dirs_add(u, "", NULL);
	return 0;
}

/* ---- members ---- */

int dest_clean(struct unpack *u, const char *path, const char *called, char *out)
{
	size_t to = 0;

	if (*path == '/')
		return unpack_fail(
		    u, AGENT_E_INVALID_PATH, called, "a name in an archive must not be absolute");
	while (*path != '\0') {
		size_t len = strcspn(path, "/");

		if (len == 2 && memcmp(path, "..", 2) == 0)
			return unpack_fail(u, AGENT_E_INVALID_PATH, called,
			    "a name in an archive must not contain \"..\"");
		if (len > 0 && (len != 1 || path[0] != '.')) {
			if (to > 0)
				out[to++] = '/';
			memcpy(out + to, path, len);
			to += len;
		}
		path += len + (path[len] == '/');
	}
	out[to] = '\0';
	return 0;
}

/* Remembers the file system that dir is on. */
static void note_device(struct unpack *u, int dir)
{
	struct stat st;

	if (fstat(dir, &st) != 0)
		return;
	for (size_t i = 0; i < u->dev_count; i++)
		if (u->devs[i] == st.st_dev)
			return;
	if (u->dev_count == UNPACK_DEVS) { /* the last one has to do without being remembered */
		u->dev_count--;
		(void)syncfs(u->dev_fds[u->dev_count]);
		path_close(&u->dev_fds[u->dev_count]);
	}
	u->devs[u->dev_count] = st.st_dev;
	u->dev_fds[u->dev_count++] = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int dest_open_spot(struct unpack *u, const char *name, struct unpack_spot *spot)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash != NULL ? (size_t)(slash - name) : 0;

	spot->name = slash != NULL ? slash + 1 : name;
	if (u->parent < 0 || strncmp(u->parent_path, name, len) != 0 ||
	    u->parent_path[len] != '\0') {
		path_close(&u->parent);
		memcpy(u->parent_path, name, len);
		u->parent_path[len] = '\0';
		u->parent = open_making(u, u->parent_path, open_in_dest);
		if (u->parent < 0)
			return unpack_fail_errno(u, name, -u->parent);
		note_device(u, u->parent);
	}
	spot->dir = u->parent;
	return 0;
}

void dest_changed(struct unpack *u, const char *name)
{
	size_t len = strlen(name);

	if (u->parent >= 0 && strncmp(u->parent_path, name, len) == 0 &&
	    (u->parent_path[len] == '/' || u->parent_path[len] == '\0'))
		path_close(&u->parent);
}

int dest_sync(struct unpack *u)
{
	for (size_t i = 0; i < u->dev_count; i++) {
		int fd = u->dev_fds[i];

		if (fd >= 0 && syncfs(fd) != 0)
			return unpack_fail_errno(u, u->path, errno);
	}
	return 0;
}
