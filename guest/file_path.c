/*
 * file_path: AGENT_PATH: what is done to a name at once: stat, mkdir, remove, rename. sbx-guest.
 * Each is one system call that happens or does not; if we die here PID 1 is dead and the kernel
 * ends the box.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/mux.h"
#include "guest/path.h"

#define PATH_NEW_MODE 0755U

/* A request, taken apart. */
struct path_job {
	uint32_t flags;
	uint32_t mode;
	uint64_t count; /* what END tells */
	char path[PATH_LEN_MAX + 1];
	char other[PATH_LEN_MAX + 1];
};

/* ---- stat ---- */

static int path_stat(struct guest *g, struct channel *c, struct path_job *j)
{
	bool follow = (j->flags & AGENT_PATH_FOLLOW) != 0;
	PATH_SCOPED int fd = path_open(g->root_fd, j->path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
	char link[PATH_LEN_MAX + 1];
	ssize_t len = 0;
	struct agent_stat as;
	struct stat st;

	if (fd < 0)
		return -fd;
	if (fstat(fd, &st) != 0)
		return errno;
	if (S_ISLNK(st.st_mode))
		len = readlinkat(fd, "", link, sizeof(link));
	if (len < 0 && (errno == EACCES || errno == EPERM))
		len = 0; /* one of /proc: it is there, and nobody shall know where it leads */
	if (len < 0 || len == (ssize_t)sizeof(link))
		return len < 0 ? errno : ENAMETOOLONG;
	as = (struct agent_stat){
	    .size = (uint64_t)st.st_size,
	    .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL + (uint64_t)st.st_mtim.tv_nsec,
	    .mode = st.st_mode,
	    .uid = st.st_uid,
	    .gid = st.st_gid,
	    .link_len = (uint32_t)len,
	};
	(void)out_put(
	    &g->out, AGENT_STARTED, 0, c->id, &as, sizeof(as), link, (size_t)len); /* has room */
	return 0;
}

/* ---- mkdir ---- */

static int make_directory(struct guest *g, struct path_job *j, const char *path, uint32_t mode)
{
	const char *name;
	PATH_SCOPED int dir = path_open_parent(g->root_fd, path, &name);

	if (dir < 0)
		return dir == -EBUSY ? EEXIST : -dir; /* "/" is there */
	if (mkdirat(dir, name, mode) != 0)
		return errno;
	j->count++;
	/* The umask is for what nobody has chosen. */
	if ((j->flags & AGENT_PATH_MODE) == 0 || path != j->path)
		return 0;
	return fchmodat(dir, name, mode, 0) == 0 ? 0 : errno;
}

static bool is_directory(struct guest *g, const char *path)
{
	PATH_SCOPED int fd = path_open(g->root_fd, path, O_PATH | O_DIRECTORY, 0);

	return fd >= 0;
}

/* Every directory on the way to the last one. 0 or an errno. */
static int make_parents(struct guest *g, struct path_job *j)
{
	char way[PATH_LEN_MAX + 1];

	for (const char *slash = strchr(j->path + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		int err;

		memcpy(way, j->path, (size_t)(slash - j->path));
		way[slash - j->path] = '\0';
		err = make_directory(g, j, way, PATH_NEW_MODE);
		if (err != 0 && err != EEXIST)
			return err;
	}
	return 0;
}

static int path_mkdir(struct guest *g, struct channel *c, struct path_job *j)
{
	bool parents = (j->flags & AGENT_PATH_PARENTS) != 0;
	uint32_t mode = (j->flags & AGENT_PATH_MODE) != 0 ? j->mode & 07777U : PATH_NEW_MODE;
	int err = make_directory(g, j, j->path, mode);

	(void)c;
	if (err == ENOENT && parents) {
		err = make_parents(g, j);
		if (err == 0)
			err = make_directory(g, j, j->path, mode);
	}
	return err == EEXIST && parents && is_directory(g, j->path) ? 0 : err;
}

/* ---- remove and rename ---- */

static int path_remove(struct guest *g, struct channel *c, struct path_job *j)
{
	const char *name;
	PATH_SCOPED int dir = path_open_parent(g->root_fd, j->path, &name);

	(void)c;
	if (dir < 0)
		return -dir;
	if (unlinkat(dir, name, 0) != 0 &&
	    (errno != EISDIR || unlinkat(dir, name, AT_REMOVEDIR) != 0))
		return errno;
	j->count = 1;
	return 0;
}

static int path_rename(struct guest *g, struct channel *c, struct path_job *j)
{
	unsigned int flags = (j->flags & AGENT_PATH_OVERWRITE) != 0 ? 0 : RENAME_NOREPLACE;
	const char *from;
	const char *to;
	PATH_SCOPED int from_dir = path_open_parent(g->root_fd, j->path, &from);
	PATH_SCOPED int to_dir = path_open_parent(g->root_fd, j->other, &to);

	(void)c;
	if (from_dir < 0 || to_dir < 0)
		return from_dir < 0 ? -from_dir : -to_dir;
	if (syscall(SYS_renameat2, from_dir, from, to_dir, to, flags) != 0)
		return errno;
	j->count = 1;
	return 0;
}

/* ---- the operation ---- */

static const struct path_kind {
	int (*run)(struct guest *g, struct channel *c, struct path_job *j); /* 0 or an errno */
	const char *what;
	uint32_t flags; /* that it knows */
	bool other;	/* it has a second path */
} kinds[AGENT_PATH_OPS] = {
    [AGENT_PATH_STAT] = {path_stat, "cannot look at", AGENT_PATH_FOLLOW, false},
    [AGENT_PATH_MKDIR] = {path_mkdir, "cannot make the directory",
	AGENT_PATH_PARENTS | AGENT_PATH_MODE, false},
    [AGENT_PATH_REMOVE] = {path_remove, "cannot remove", 0, false},
    [AGENT_PATH_RENAME] = {path_rename, "cannot rename", AGENT_PATH_OVERWRITE, true},
};

static void path_fail(struct guest *g, struct channel *c, const struct path_kind *k,
    const struct path_job *j, int err)
{
	enum agent_code code = err == EXDEV ? AGENT_E_CROSS_DEVICE : path_code(err);
	struct text why;

	text_clear(&why);
	text_add(&why, k->what);
	text_add(&why, " ");
	text_add_quoted(&why, j->path, k->other ? 128 : 256);
	if (k->other) {
		text_add(&why, " to ");
		text_add_quoted(&why, j->other, 128);
	}
	text_add(&why, ": ");
	text_add(&why, strerror(err));
	mux_fail(g, c, code, err, &why);
}

/* Checks a path of the request and copies it. False after refusing it. */
static bool path_take(
    struct guest *g, struct channel *c, const uint8_t *bytes, size_t n, char to[PATH_LEN_MAX + 1])
{
	if (!path_is_valid((const char *)bytes, n)) {
		mux_fail_str(g, c, AGENT_E_INVALID_PATH, 0, PATH_INVALID);
		return false;
	}
	memcpy(to, bytes, n);
	to[n] = '\0';
	return true;
}

static int path_open_job(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	const struct path_kind *k;
	struct agent_end end = {.exit_code = 0};
	struct agent_path ap;
	struct path_job j;
	int err;

	if (n < sizeof(ap))
		return -EBADMSG;
	memcpy(&ap, request, sizeof(ap));
	request += sizeof(ap);
	if (ap.op >= AGENT_PATH_OPS || kinds[ap.op].run == NULL || ap.reserved != 0)
		return -EBADMSG;
	k = &kinds[ap.op];
	if ((ap.flags & ~k->flags) != 0 || ap.path_len > n - sizeof(ap) ||
	    ap.other_len != n - sizeof(ap) - ap.path_len || (ap.other_len > 0 && !k->other))
		return -EBADMSG;
	j.flags = ap.flags;
	j.mode = ap.mode;
	j.count = 0;
	if (!path_take(g, c, request, ap.path_len, j.path) ||
	    (k->other && !path_take(g, c, request + ap.path_len, ap.other_len, j.other)))
		return 0;
	err = k->run(g, c, &j);
	if (err != 0) {
		path_fail(g, c, k, &j, err);
		return 0;
	}
	end.bytes = j.count;
	mux_end(g, c, &end);
	return 0;
}

/* It is over before anything else could be asked of it. */
static void path_drop(struct guest *g, struct channel *c)
{
	(void)g;
	(void)c;
}

const struct operation file_path_operation = {
    .open = path_open_job,
    .drop = path_drop,
};
