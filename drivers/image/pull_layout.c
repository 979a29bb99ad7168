/*
 * pull_layout: what skopeo copied is read. `sbx-worker image`. The files are those of another user:
 * nothing is followed, and what has a digest must have that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/image/pull_int.h"
#include "lib/clock.h"
#include "lib/fd.h"

static int read_plain(int dirfd, const char *path, struct buf *out)
{
	struct open_how how = {
	    .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	FD_SCOPED int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	struct stat st;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size >= (off_t)MANIFEST_MAX)
		return -EFBIG;
	while (n > 0)
		n = buf_read_fd(out, fd, 65536);
	return n < 0 ? (int)n : 0;
}

/* A blob of the layout. */
static int read_blob(int layout, const char *digest, struct buf *out, struct err *err)
{
	char path[IMAGE_DIGEST_LEN + 16];
	char found[IMAGE_DIGEST_LEN];
	int rc;

	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", strchr(digest, ':') + 1);
	rc = read_plain(layout, path, out);
	if (rc == 0)
		rc = manifest_digest(buf_head(out), out->len, found);
	if (rc < 0)
		return err_sys(err, -rc, "read %.19s... of the image", digest);
	if (strcmp(found, digest) != 0)
		return err_set(err, EBADMSG, "%.19s... of the image is something else", digest);
	return 0;
}

static int read_manifest(struct pull *p, int layout, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, MANIFEST_MAX);
	rc = read_plain(layout, "index.json", &text);
	if (rc < 0)
		rc = err_sys(err, -rc, "read the copied layout");
	else
		rc = manifest_parse_layout(buf_head(&text), text.len, p->note.id, err);
	buf_clear(&text);
	if (rc == 0)
		rc = read_blob(layout, p->note.id, &text, err);
	if (rc == 0)
		rc = manifest_parse(buf_head(&text), text.len, &p->manifest, err);
	if (rc == 0 && !p->manifest.config[0])
		rc = err_set(err, EINVAL, "the image's manifest names no configuration");
	buf_free(&text);
	return rc;
}

int pull_read_layout(struct pull *p, struct err *err)
{
	char path[STORE_PATH + 8];
	struct buf text;
	FD_SCOPED int layout = -1;
	int rc;

	(void)snprintf(path, sizeof(path), "%s/oci", p->load);
	layout = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (layout < 0)
		return err_sys(err, errno, "open the copied layout");
	rc = read_manifest(p, layout, err);
	if (rc < 0)
		return rc;
	buf_init(&text, MANIFEST_MAX);
	rc = read_blob(layout, p->manifest.config, &text, err);
	if (rc == 0)
		rc = manifest_parse_config(buf_head(&text), text.len, &p->note, err);
	buf_free(&text);
	p->note.made_wall_ms = clock_wall_ms();
	return rc;
}
