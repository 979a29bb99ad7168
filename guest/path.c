/*
 * path: client paths. sbx-guest; pure checks and one system call, nothing is lost here.
 */
#include "guest/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Renames elsewhere can spoil a lookup, rarely twice. A file under a lease stays busy for long, and
 * the whole box waits for us. */
#define PATH_AGAIN_MAX 64

bool path_is_valid(const char *path, size_t n)
{
	size_t at = 0;

	if (n == 0 || n > PATH_LEN_MAX || path[0] != '/' || memchr(path, '\0', n) != NULL)
		return false;
	if (n == 1)
		return true;
	while (at < n) {
		const char *part = path + at + 1;
		const char *slash = memchr(part, '/', n - at - 1);
		size_t len = slash != NULL ? (size_t)(slash - part) : n - at - 1;

		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		at += 1 + len;
	}
	return true;
}

int path_openat2(int dir, const char *path, const struct open_how *how)
{
	int again = 0;
	long fd;

	do {
		fd = syscall(SYS_openat2, dir, path, how, sizeof(*how));
	} while (fd < 0 && (errno == EINTR || (errno == EAGAIN && again++ < PATH_AGAIN_MAX)));
	return fd < 0 ? -errno : (int)fd;
}

int path_open(int root_fd, const char *path, int flags, unsigned int mode)
{
	struct open_how how = {
	    .flags = (unsigned int)(flags | O_CLOEXEC),
	    .mode = mode,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	if ((flags & O_PATH) == 0)
		how.flags |= O_NOCTTY | O_NONBLOCK;
	return path_openat2(root_fd, path, &how);
}

int path_open_parent(int root_fd, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_LEN_MAX + 1];
	size_t len = (size_t)(slash - path);

	if (slash[1] == '\0')
		return -EBUSY;
	memcpy(parent, path, len);
	parent[len] = '\0';
	*name = slash + 1;
	return path_open(root_fd, len == 0 ? "/" : parent, O_PATH | O_DIRECTORY, 0);
}

int path_open_regular(int root_fd, const char *path)
{
	struct stat st;
	int fd = path_open(root_fd, path, O_RDONLY, 0);
	int rc = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (rc == 0)
		return fd;
	(void)close(fd); /* was only read */
	return rc;
}

void path_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing was written that could be lost */
	*fd = -1;
}

bool path_is_gone(int err)
{
	return err == ENOENT || err == ENOTDIR || err == ELOOP || err == ENXIO;
}

static const struct {
	int err;
	enum agent_code code;
} codes[] = {
    {ENOENT, AGENT_E_NOT_FOUND},
    {EACCES, AGENT_E_PERMISSION},
    {EPERM, AGENT_E_PERMISSION},
    {EROFS, AGENT_E_PERMISSION},
    {ELOOP, AGENT_E_INVALID_PATH},
    {ENAMETOOLONG, AGENT_E_INVALID_PATH},
    {EXDEV, AGENT_E_INVALID_PATH},
    {EISDIR, AGENT_E_IS_DIRECTORY},
    {ENOTDIR, AGENT_E_NOT_A_DIRECTORY},
    {EINVAL, AGENT_E_INVALID},
    {ENXIO, AGENT_E_INVALID},
    {EFBIG, AGENT_E_TOO_LARGE},
    {EOVERFLOW, AGENT_E_TOO_LARGE},
    {ENOSPC, AGENT_E_NO_SPACE},
    {EDQUOT, AGENT_E_NO_SPACE},
    {EEXIST, AGENT_E_EXISTS},
    {ENOTEMPTY, AGENT_E_NOT_EMPTY},
    {EBUSY, AGENT_E_BUSY},
    {ETXTBSY, AGENT_E_BUSY},
    {EMFILE, AGENT_E_RESOURCES},
    {ENFILE, AGENT_E_RESOURCES},
    {ENOMEM, AGENT_E_RESOURCES},
};

enum agent_code path_code(int err)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].err == err)
			return codes[i].code;
	return AGENT_E_IO;
}

void path_explain(struct text *t, const char *what, const char *path, int err)
{
	text_add(t, what);
	text_add(t, " ");
	text_add_quoted(t, path, 256);
	text_add(t, ": ");
	text_add(t, err == ENOSYS ? "the kernel has no openat2" : strerror(err));
}
