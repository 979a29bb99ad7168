/* credentials: reads the file of credentials, and leaves nothing of it. `sbx-worker image`. */
#include "drivers/image/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

static int check_file(int fd, const char *path, struct err *err)
{
	uid_t self = geteuid();
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "images.auth_file %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "images.auth_file %s: must be a regular file", path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(err, EPERM,
		    "images.auth_file %s: is its group's or others' too (mode %04o): chmod 600 %s",
		    path, (unsigned int)st.st_mode & 07777, path);
	if (st.st_uid != 0 && st.st_uid != self)
		return err_set(err, EPERM,
		    "images.auth_file %s: belongs to uid %u; it must be of root or of uid %u, who "
		    "runs sbxd",
		    path, (unsigned int)st.st_uid, (unsigned int)self);
	return 0;
}

/* One byte more than it may have, so that more is noticed. */
static int read_all(int fd, struct buf *out)
{
	uint8_t *at = buf_reserve(out, CREDENTIALS_MAX + 1U);
	ssize_t n = at ? 1 : -1;

	if (!at)
		return -ENOMEM;
	while (n > 0 || (n < 0 && errno == EINTR)) {
		n = read(fd, at + out->len, CREDENTIALS_MAX + 1U - out->len);
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
	return n < 0 ? -errno : out->len > CREDENTIALS_MAX ? -EFBIG : 0;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Only its two ends: a parser would leave parts of it in memory, and skopeo has one. */
static int check_text(const struct buf *b, const char *path, struct err *err)
{
	const uint8_t *text = buf_head(b);
	size_t from = 0;
	size_t to = b->len;

	while (from < to && is_blank(text[from]))
		from++;
	while (to > from && is_blank(text[to - 1]))
		to--;
	if (to - from >= 2 && text[from] == '{' && text[to - 1] == '}')
		return 0;
	return err_set(err, EINVAL,
	    "images.auth_file %s: holds no JSON object, as `skopeo login --authfile` writes it",
	    path);
}

int credentials_read(const char *path, struct buf *out, struct err *err)
{
	/* A pipe or a device must not stop us. */
	FD_SCOPED int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct buf b;
	int rc;

	if (fd < 0)
		return err_sys(err, errno, "images.auth_file %s: cannot be opened", path);
	rc = check_file(fd, path, err);
	if (rc < 0)
		return rc;
	buf_init(&b, CREDENTIALS_MAX + 1U);
	rc = read_all(fd, &b);
	if (rc < 0)
		rc = err_sys(err, -rc, "images.auth_file %s: cannot be read", path);
	else
		rc = check_text(&b, path, err);
	if (rc == 0)
		*out = b;
	else
		credentials_free(&b);
	return rc;
}

void credentials_free(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_free(b);
}
