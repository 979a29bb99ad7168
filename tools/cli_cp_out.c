/* cli_cp_out: sbxctl cp out of a box. When it dies a file of the host is as it was before, and a
 * temporary name beside it may stay; of a directory what came before is there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "tools/cli_cp.h"
#include "tools/cli_transfer.h"
#include "tools/cli_unpack.h"

#define FIFO_NS (50 * NS_PER_MS) /* between two tries */

/* Where a file goes on the host. */
struct sink {
	int fd;
	bool owned;
	char temporary[PATH_MAX + 32]; /* to be renamed to `final`; empty: fd is the thing itself */
	char final[PATH_MAX];
};

static int write_all(int fd, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			bytes += written;
			n -= (size_t)written;
		}
	}
	return 0;
}

/* A fifo opens when somebody reads it, which is waited for where a signal ends it. The descriptor,
 * or -errno with *err. */
static int open_special(const struct cli *cli, const char *path, bool fifo, struct err *err)
{
	int fd;

	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0 &&
	       errno == ENXIO && fifo) {
		int rc = httpc_wait(-1, 0, cli->signal_fd, clock_now_ns() + FIFO_NS);

		if (rc < 0 && rc != -ETIMEDOUT)
			return err_sys(err, -rc, "waiting for who reads %.200s", path);
	}
	return fd < 0 ? err_sys(err, errno, "cannot open %.200s", path) : fd;
}

/* What is no file (a terminal, a fifo, /dev/null) is written to as it is; a link is followed. */
static int open_sink(const struct cli *cli, struct sink *s, const char *path, struct err *err)
{
	struct stat st;

	s->fd = -1;
	s->temporary[0] = '\0';
	s->owned = strcmp(path, "-") != 0;
	if (!s->owned) {
		s->fd = STDOUT_FILENO;
		return 0;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		s->fd = open_special(cli, path, S_ISFIFO(st.st_mode), err);
		return s->fd < 0 ? s->fd : 0;
	}
	if (!realpath(path, s->final) &&
	    snprintf(s->final, sizeof(s->final), "%s", path) >= (int)sizeof(s->final))
		return err_set(err, ENAMETOOLONG, "%.100s...: the name is too long", path);
	(void)snprintf(s->temporary, sizeof(s->temporary), "%s.XXXXXX", s->final);
	s->fd = mkostemp(s->temporary, O_CLOEXEC);
	if (s->fd < 0) {
		s->temporary[0] = '\0';
		return err_sys(err, errno, "cannot make a file at %.200s", path);
	}
	return 0;
}

/* keep: it is whole. 0 or -errno with *err. */
static int close_sink(struct sink *s, bool keep, unsigned int mode, struct err *err)
{
	mode_t mask = umask(0);
	int rc = 0;

	(void)umask(mask); /* there is no other way to read it */
	if (keep && s->temporary[0] &&
	    (fchmod(s->fd, mode & ~mask) < 0 || rename(s->temporary, s->final) < 0))
		rc = err_sys(err, errno, "cannot finish %.200s", s->final);
	if (s->temporary[0] && (!keep || rc < 0))
		(void)unlink(s->temporary); /* the first error counts */
	if (s->owned)
		fd_close(&s->fd);
	return rc;
}

/* The body of the answer into the sink. */
static int fill_sink(struct cli_transfer *t, const struct sink *s)
{
	const uint8_t *bytes = NULL;
	struct err err = {0};
	size_t n = 0;
	int rc;

	while ((rc = cli_transfer_read(t, &bytes, &n, &err)) > 0) {
		rc = s->temporary[0] ? write_all(s->fd, bytes, n)
				     : cli_write(t->cli, s->fd, bytes, n);
		if (rc == -EPIPE)
			return CLI_SIGNAL + SIGPIPE; /* as any other program */
		if (rc < 0) {
			(void)err_sys(&err, -rc, "cannot write");
			break;
		}
	}
	return rc < 0 ? cli_transfer_fail(t, &err) : CLI_OK;
}

static int get(struct cli_transfer *t, const struct cli_place *from, const char *what,
    const char *rest, const char *accept)
{
	const struct err too_long = {.code = ENAMETOOLONG, .text = "the name is too long"};
	struct buf path;
	int status;
	int rc;

	buf_init(&path, CLI_COPY_PATH_MAX);
	rc = cli_place_put(&path, from->box, what, from->path);
	if (rc == 0)
		rc = buf_puts(&path, rest);
	if (rc == 0)
		rc = buf_terminate(&path);
	status = rc < 0 ? cli_transfer_fail(t, &too_long)
			: cli_transfer_get(t, (const char *)buf_head(&path), accept);
	buf_free(&path);
	return status;
}

static int get_file(
    struct cli_transfer *t, const struct cli_place *from, const char *to, const struct cli_stat *st)
{
	struct sink s;
	struct err err;
	int status = get(t, from, "/fs/read", "", "application/octet-stream");

	if (status != CLI_OK)
		return status;
	if (open_sink(t->cli, &s, to, &err) < 0)
		return cli_transfer_fail(t, &err);
	status = fill_sink(t, &s);
	if (close_sink(&s, status == CLI_OK, st->mode, &err) < 0)
		return cli_transfer_fail(t, &err);
	return status;
}

static int read_archive(void *ctx, const uint8_t **bytes, size_t *n, struct err *err)
{
	return cli_transfer_read(ctx, bytes, n, err);
}

/* The archive ends before its answer does: what is left has to come, or it was cut. */
static int read_rest(struct cli_transfer *t, struct err *err)
{
	const uint8_t *bytes = NULL;
	size_t n = 0;
	int rc;

	while ((rc = cli_transfer_read(t, &bytes, &n, err)) > 0)
		;
	return rc;
}

static int get_tree(struct cli_transfer *t, const struct cli_place *from, const char *to)
{
	FD_SCOPED int dir = -1;
	struct err err = {0};
	int status =
	    get(t, from, "/files", strcmp(from->path, "/") ? "/." : "", "application/x-tar");
	int rc;

	if (status != CLI_OK)
		return status;
	if (mkdir(to, 0777) < 0 && errno != EEXIST) {
		(void)err_sys(&err, errno, "cannot make %.200s", to);
		return cli_transfer_fail(t, &err);
	}
	dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		(void)err_sys(&err, errno, "cannot open %.200s", to);
		return cli_transfer_fail(t, &err);
	}
	rc = cli_unpack(dir, read_archive, t, &err);
	if (rc == 0)
		rc = read_rest(t, &err);
	return rc < 0 ? cli_transfer_fail(t, &err) : CLI_OK;
}

/* A directory on standard output is its archive. */
static int get_archive(struct cli_transfer *t, const struct cli_place *from)
{
	const struct sink out = {.fd = STDOUT_FILENO};
	const struct err tty = {
	    .code = EINVAL, .text = "it is a directory, whose archive is nothing for a terminal"};
	int status;

	if (isatty(STDOUT_FILENO))
		return cli_transfer_fail(t, &tty);
	status = get(t, from, "/files", "", "application/x-tar");
	return status == CLI_OK ? fill_sink(t, &out) : status;
}

/* As named, or into the directory that is there. 0 or -errno with *err. */
static int find_target(const char *source, const char *to, char path[PATH_MAX], struct err *err)
{
	struct stat st;
	int rc;

	if (strcmp(to, "-") != 0 && stat(to, &st) == 0 && S_ISDIR(st.st_mode))
		rc = cli_copy_target(source, to, path);
	else
		rc = snprintf(path, PATH_MAX, "%s", to) < PATH_MAX ? 0 : -ENAMETOOLONG;
	return rc < 0 ? err_sys(err, -rc, "%.200s", to) : 0;
}

/* `from` is without what stands at the end of `source`, as it was given. */
static int copy_out(struct cli_transfer *t, const struct cli_copy *cp, const struct cli_place *from,
    const char *source, const char *to)
{
	struct cli_stat st;
	char path[PATH_MAX];
	struct err err;
	int status = cli_transfer_stat(t, from, &st);

	if (status != CLI_OK)
		return status;
	if (find_target(source, to, path, &err) < 0)
		return cli_transfer_fail(t, &err);
	cli_progress_begin(&t->progress, from->path, st.regular ? st.size : 0, cp->quiet);
	if (!st.directory)
		return get_file(t, from, path, &st); /* or is told what is not there */
	return strcmp(to, "-") ? get_tree(t, from, path) : get_archive(t, from);
}

int cli_copy_out(const struct cli_copy *cp, const struct cli_place *from, const char *to)
{
	const struct err no_memory = {.code = ENOMEM, .text = "no memory"};
	char *plain = cli_copy_plain(from->path);
	struct cli_place place = *from;
	struct cli_transfer t;
	int status;

	if (!plain)
		return cli_fail("cp", &no_memory);
	place.path = plain;
	status = cli_transfer_open(&t, cp->cli, plain);
	if (status == CLI_OK)
		status = copy_out(&t, cp, &place, from->path, to);
	cli_transfer_close(&t);
	free(plain);
	return cli_finish(status);
}
