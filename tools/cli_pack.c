/* cli_pack: a directory as a tar archive. sbxctl; it only reads. */
#include "tools/cli_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "tools/cli.h"
#include "tools/cli_pack_links.h"
#include "wire/tar_head.h"

#define DEPTH_MAX 256
#define READ_SIZE 65536U
#define OUT_MAX (4U * 1024U * 1024U) /* more than a head and one read become */

/* A directory that is being read, and how long its name in the archive is. */
struct level {
	DIR *dir; /* owned */
	size_t name_len;
};

struct cli_pack {
	struct cli_pack_links links;
	struct buf out; /* written and not yet asked for */
	struct level levels[DEPTH_MAX];
	size_t depth;
	char name[PATH_MAX]; /* of what is at hand, in the archive; ends in a slash for directories
			      */
	int file;	     /* that is being read, -1 none */
	uint64_t left;	     /* bytes of it that its head has promised */
	size_t pad;	     /* that fill up its last block */
	bool begun;
	bool ended;
	unsigned int skipped;
	struct cli_progress *progress;
};

static void skip(struct cli_pack *p, const char *why)
{
	struct err err;

	(void)err_set(&err, EIO, "left out: %s", why);
	cli_progress_clear(p->progress);
	(void)cli_fail(p->name, &err);
	p->skipped++;
}

int cli_pack_open(
    const char *path, struct cli_progress *progress, struct cli_pack **out, struct err *err)
{
	struct cli_pack *p = calloc(1, sizeof(*p));
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!p || fd < 0) {
		int rc = err_sys(err, p ? errno : ENOMEM, "cannot open %.200s", path);

		fd_close(&fd);
		free(p);
		return rc;
	}
	p->progress = progress;
	p->file = -1;
	buf_init(&p->out, OUT_MAX);
	p->levels[0].dir = fdopendir(fd);
	if (!p->levels[0].dir) {
		fd_close(&fd);
		cli_pack_close(p);
		return err_sys(err, ENOMEM, "cannot open %.200s", path);
	}
	p->depth = 1;
	*out = p;
	return 0;
}

void cli_pack_close(struct cli_pack *p)
{
	if (!p)
		return;
	while (p->depth > 0)
		(void)closedir(p->levels[--p->depth].dir); /* opened for reading only */
	fd_close(&p->file);
	cli_pack_links_free(&p->links);
	buf_free(&p->out);
	free(p);
}

unsigned int cli_pack_skipped(const struct cli_pack *p)
{
	return p->skipped;
}

static int put_entry(struct cli_pack *p, const struct stat *st, const char *target, struct err *err)
{
	const char *before = cli_pack_links_find(&p->links, st, p->name);
	const char *link = target ? target : before;
	struct entry_member m = {
	    .kind = S_ISDIR(st->st_mode) ? ENTRY_DIRECTORY
		    : target		 ? ENTRY_SYMLINK
					 : ENTRY_FILE,
	    .mode = st->st_mode & 07777,
	    .mtime = st->st_mtim.tv_sec,
	    .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
	    .path_len = (uint32_t)strlen(p->name),
	};
	int rc;

	if (!before)
		return err_set(err, ENOMEM, "no memory for an archive");
	if (!target && *before)
		m.kind = ENTRY_HARDLINK;
	m.link_len = (uint32_t)strlen(link);
	m.size = m.kind == ENTRY_FILE ? (uint64_t)st->st_size : 0;
	rc = tar_head_put(&p->out,
	    &(const struct tar_head){.member = &m, .path = p->name, .link = link, .data = m.size});
	if (rc < 0)
		return err_sys(err, -rc, "%.200s", p->name);
	p->left = m.size;
	p->pad = -m.size % TAR_BLOCK;
	return 0;
}

static int put_link(
    struct cli_pack *p, int dirfd, const char *name, const struct stat *st, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);

	if (n < 0) {
		skip(p, strerror(errno));
		return 0;
	}
	target[n] = '\0';
	return put_entry(p, st, target, err);
}

/* Goes into a directory, whose name is p->name. */
static int enter(struct cli_pack *p, int fd, const struct stat *st, struct err *err)
{
	size_t n = strlen(p->name);
	DIR *dir = p->depth < DEPTH_MAX && n + 2 < sizeof(p->name) ? fdopendir(fd) : NULL;

	if (!dir) {
		fd_close(&fd);
		skip(p, "too deep");
		return 0;
	}
	p->name[n++] = '/';
	p->name[n] = '\0';
	p->levels[p->depth++] = (struct level){dir, n};
	return put_entry(p, st, NULL, err);
}

/* The file that was seen, or another that has taken its place; never waits for a fifo. */
static int put_opened(struct cli_pack *p, int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0) {
		skip(p, strerror(errno));
		fd_close(&fd);
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return enter(p, fd, &st, err);
	if (!S_ISREG(st.st_mode)) {
		skip(p, "neither file nor directory nor link");
		fd_close(&fd);
		return 0;
	}
	rc = put_entry(p, &st, NULL, err);
	if (rc == 0 && p->left > 0)
		p->file = fd_take(&fd);
	fd_close(&fd);
	return rc;
}

static int put_name(struct cli_pack *p, struct level *l, const char *name, struct err *err)
{
	int fd = dirfd(l->dir);
	struct stat st;

	if (l->name_len + strlen(name) >= sizeof(p->name)) {
		skip(p, "the name is too long");
		return 0;
	}
	memcpy(p->name + l->name_len, name, strlen(name) + 1);
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		skip(p, strerror(errno));
		return 0;
	}
	if (S_ISLNK(st.st_mode))
		return put_link(p, fd, name, &st, err);
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return put_opened(p, fd, name, err);
	skip(p, "neither file nor directory nor link");
	return 0;
}

/* More of the file at hand. What became shorter meanwhile is filled up with zeros, as its head has
 * said how long it is. */
static int put_content(struct cli_pack *p, struct err *err)
{
	size_t want = p->left < READ_SIZE ? (size_t)p->left : READ_SIZE;
	ssize_t n = p->file < 0 ? 0 : buf_read_fd(&p->out, p->file, want);
	int rc = 0;

	if (n <= 0 && p->file >= 0) {
		skip(p, n < 0 ? strerror((int)-n) : "it became shorter while it was read");
		fd_close(&p->file);
	}
	if (n <= 0) {
		n = (ssize_t)want;
		rc = tar_zeros_put(&p->out, want);
	}
	p->left -= (size_t)n;
	if (p->left > 0 || rc < 0)
		return rc < 0 ? err_sys(err, -rc, "%.200s", p->name) : 0;
	fd_close(&p->file);
	rc = tar_zeros_put(&p->out, p->pad);
	return rc < 0 ? err_sys(err, -rc, "%.200s", p->name) : 0;
}

/* The head of the directory itself. */
static int begin(struct cli_pack *p, struct err *err)
{
	struct level *l = &p->levels[0];
	struct stat st;

	p->begun = true;
	l->name_len = (size_t)snprintf(p->name, sizeof(p->name), "./");
	if (fstat(dirfd(l->dir), &st) < 0)
		return err_sys(err, errno, "the directory");
	return put_entry(p, &st, NULL, err);
}

/* The next head, or some of a file, or the archive's end. */
static int step(struct cli_pack *p, struct err *err)
{
	struct level *l;
	const struct dirent *e;

	if (p->left > 0)
		return put_content(p, err);
	if (!p->begun)
		return begin(p, err);
	if (p->depth == 0) {
		p->ended = true;
		return tar_zeros_put(&p->out, (size_t)2 * TAR_BLOCK);
	}
	l = &p->levels[p->depth - 1];
	e = readdir(l->dir);
	if (e && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")))
		return 0;
	if (e)
		return put_name(p, l, e->d_name, err);
	(void)closedir(l->dir); /* opened for reading only */
	p->depth--;
	return 0;
}

ssize_t cli_pack_fill(void *ctx, uint8_t *out, size_t size, struct err *err)
{
	struct cli_pack *p = ctx;
	size_t n;

	while (p->out.len < size && !p->ended) {
		int rc = step(p, err);

		if (rc < 0)
			return rc;
	}
	n = p->out.len < size ? p->out.len : size;
	memcpy(out, buf_head(&p->out), n);
	buf_consume(&p->out, n);
	return (ssize_t)n;
}
