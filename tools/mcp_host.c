/* mcp_host: files of the host, below directories that are allowed. sbx-mcp; a file that it makes
 * has no name before it is complete, and goes with the process.
 *
 * The kernel resolves paths beneath the directory's descriptor: neither ".." nor a link leads out.
 */
#include "tools/mcp_host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"

#define TRIES 16 /* for a name that nobody else has, beside a file that is replaced */

static int open_beneath(int dir_fd, const char *path, uint64_t flags)
{
	const struct open_how how = {
	    .flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd;

	do
		fd = syscall(SYS_openat2, dir_fd, *path ? path : ".", &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN); /* something was renamed meanwhile */
	return fd < 0 ? -errno : (int)fd;
}

/* `path` relative to `dir`; NULL when it is not below it. */
static const char *below(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	while (n > 0 && dir[n - 1] == '/')
		n--;
	if (strncmp(dir, path, n) != 0 || path[n] != '/')
		return NULL;
	return path + n + strspn(path + n, "/");
}

/* The allowed directory that has the path, and the rest of it. */
static int find_dir(const struct mcp *m, const char *path, const char **rest, struct err *err)
{
	char all[180] = "";
	size_t n = 0;

	for (size_t i = 0; i < m->o->host_dir_count; i++) {
		const char *found = below(m->o->host_dirs[i], path);

		if (found && *found) {
			*rest = found;
			return m->host_fds[i];
		}
		if (n < sizeof(all))
			n += (size_t)snprintf(
			    all + n, sizeof(all) - n, "%s%s", i ? ", " : "", m->o->host_dirs[i]);
	}
	return err_set(err, EACCES, "%.60s is not allowed on the host; what is: %.120s", path, all);
}

static int fail_open(int rc, const char *path, struct err *err)
{
	if (rc == -EXDEV)
		return err_set(
		    err, EACCES, "%.150s leads out of the directory that is allowed", path);
	return err_sys(err, -rc, "%.150s on the host", path);
}

int mcp_host_open(const struct mcp *m, const char *path, uint64_t *len, struct err *err)
{
	const char *rest = "";
	int dir_fd = find_dir(m, path, &rest, err);
	FD_SCOPED int fd = -1;
	struct stat st;

	if (dir_fd < 0)
		return dir_fd;
	fd = open_beneath(dir_fd, rest, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail_open(fd, path, err);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "%.150s on the host", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%.150s on the host is no file%s", path,
		    S_ISDIR(st.st_mode) ? " but a directory; pack it first" : "");
	*len = (uint64_t)st.st_size;
	return fd_take(&fd);
}

static bool is_there(const struct mcp_host_file *f)
{
	struct stat st;

	return fstatat(f->dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int refuse_overwrite(const char *name, struct err *err)
{
	return err_set(
	    err, EEXIST, "%.150s is there already on the host; overwrite replaces it", name);
}

int mcp_host_create(const struct mcp *m, const char *path, bool overwrite,
    struct mcp_host_file *out, struct err *err)
{
	const char *rest = "";
	int dir_fd = find_dir(m, path, &rest, err);
	struct mcp_host_file f = {.fd = -1, .dir_fd = -1};
	const char *slash;
	char dir[4096] = "";

	if (dir_fd < 0)
		return dir_fd;
	slash = strrchr(rest, '/');
	f.name = slash ? slash + 1 : rest;
	if ((size_t)(f.name - rest) >= sizeof(dir))
		return err_set(err, ENAMETOOLONG, "host_path is too long");
	memcpy(dir, rest, (size_t)(f.name - rest));
	if (*f.name == '\0' || strcmp(f.name, ".") == 0 || strcmp(f.name, "..") == 0)
		return err_set(err, EINVAL, "%.150s names no file", path);
	f.dir_fd = open_beneath(dir_fd, dir, O_PATH | O_DIRECTORY);
	if (f.dir_fd < 0)
		return fail_open(f.dir_fd, path, err);
	if (!overwrite && is_there(&f)) {
		fd_close(&f.dir_fd);
		return refuse_overwrite(path, err);
	}
	f.fd = openat(f.dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
	if (f.fd < 0) {
		int code = errno;

		fd_close(&f.dir_fd);
		return err_sys(err, code, "cannot make %.150s on the host", path);
	}
	*out = f;
	return 0;
}

static int name_file(const struct mcp_host_file *f, const char *name)
{
	char self[64];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, self, f->dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* A file that is there is replaced at once: the new one first gets a name beside it. */
static int replace_file(const struct mcp_host_file *f)
{
	char name[64];
	int rc = -EEXIST;

	for (int i = 0; i < TRIES && rc == -EEXIST; i++) {
		(void)snprintf(name, sizeof(name), ".sbx-mcp-%d-%d", (int)getpid(), i);
		rc = name_file(f, name);
	}
	if (rc == 0 && renameat(f->dir_fd, name, f->dir_fd, f->name) < 0) {
		rc = -errno;
		(void)unlinkat(f->dir_fd, name, 0); /* nobody else has that name */
	}
	return rc;
}

int mcp_host_finish(struct mcp_host_file *f, bool overwrite, struct err *err)
{
	int rc = name_file(f, f->name);

	if (rc == -EEXIST && !overwrite)
		return refuse_overwrite(f->name, err);
	if (rc == -EEXIST)
		rc = replace_file(f);
	return rc < 0 ? err_sys(err, -rc, "cannot make %.150s on the host", f->name) : 0;
}

void mcp_host_drop(struct mcp_host_file *f)
{
	fd_close(&f->fd);
	fd_close(&f->dir_fd);
}
