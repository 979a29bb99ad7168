/* cpio: archives for an initial file system. Janitor and worker; a half-written one is thrown away
 * by whoever wanted it. */
#include "drivers/qemu/cpio.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPIO_HEAD 110
#define CPIO_ALIGN 4
#define CPIO_END "TRAILER!!!"

void cpio_begin(struct cpio *c, int fd)
{
	*c = (struct cpio){.fd = fd, .ino = 1};
}

static int cpio_write(struct cpio *c, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		ssize_t put = write(c->fd, at, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		at += put;
		n -= (size_t)put;
		c->at += (uint64_t)put;
	}
	return 0;
}

static int cpio_pad(struct cpio *c)
{
	static const char zero[CPIO_ALIGN];
	size_t over = c->at % CPIO_ALIGN;

	return over ? cpio_write(c, zero, CPIO_ALIGN - over) : 0;
}

static int cpio_put_head(struct cpio *c, const char *name, mode_t mode, uint64_t size)
{
	char head[CPIO_HEAD + 1];
	int rc;

	if (size > UINT32_MAX)
		return -EFBIG;
	(void)snprintf(head, sizeof(head),
	    "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", c->ino++, mode, 0U, 0U,
	    1U, 0U, (uint32_t)size, 0U, 0U, 0U, 0U, (uint32_t)strlen(name) + 1, 0U);
	rc = cpio_write(c, head, CPIO_HEAD);
	if (rc == 0)
		rc = cpio_write(c, name, strlen(name) + 1);
	return rc == 0 ? cpio_pad(c) : rc;
}

int cpio_put_dir(struct cpio *c, const char *name, mode_t mode)
{
	return cpio_put_head(c, name, S_IFDIR | mode, 0);
}

int cpio_put_data(struct cpio *c, const char *name, mode_t mode, const void *data, size_t n)
{
	int rc = cpio_put_head(c, name, S_IFREG | mode, n);

	if (rc == 0)
		rc = cpio_write(c, data, n);
	return rc == 0 ? cpio_pad(c) : rc;
}

int cpio_put_file(struct cpio *c, const char *name, mode_t mode, int from)
{
	struct stat st;
	off_t done = 0;
	int rc = fstat(from, &st) < 0
		     ? -errno
		     : cpio_put_head(c, name, S_IFREG | mode, (uint64_t)st.st_size);

	while (rc == 0 && done < st.st_size) {
		ssize_t n = sendfile(c->fd, from, &done, (size_t)(st.st_size - done));

		if (n <= 0)
			rc = n < 0 ? -errno : -EIO; /* it was cut meanwhile */
		else
			c->at += (uint64_t)n;
	}
	return rc == 0 ? cpio_pad(c) : rc;
}

int cpio_end(struct cpio *c)
{
	return cpio_put_head(c, CPIO_END, 0, 0);
}
