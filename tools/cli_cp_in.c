/* cli_cp_in: sbxctl cp into a box. When it dies a file in the box is as it was before; of a
 * directory what came before is there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "tools/cli_cp.h"
#include "tools/cli_pack.h"
#include "tools/cli_transfer.h"

struct source {
	const struct cli *cli;
	const char *name;
	int fd;
	uint64_t length; /* or HTTPC_ANY_LENGTH */
	mode_t mode;
};

static ssize_t fill_from_fd(void *ctx, uint8_t *out, size_t size, struct err *err)
{
	const struct source *s = ctx;
	ssize_t n;

	do {
		int rc = httpc_wait(s->fd, POLLIN, s->cli->signal_fd, CLOCK_NEVER);

		if (rc < 0)
			return err_sys(err, -rc, "waiting for %.200s", s->name);
		n = read(s->fd, out, size);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? err_sys(err, errno, "cannot read %.200s", s->name) : n;
}

/* The host's side. Descriptor 0 is its own, others are the caller's. 0 or -errno with *err. */
static int open_source(struct source *s, struct err *err)
{
	struct stat st;

	/* Who writes to a fifo is waited for where a signal ends it. */
	s->fd = strcmp(s->name, "-") ? open(s->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
				     : STDIN_FILENO;
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return err_sys(err, errno, "cannot open %.200s", s->name);
	s->mode = st.st_mode;
	s->length = HTTPC_ANY_LENGTH;
	/* What says that it is empty may be made as it is read, as in /proc. */
	if (S_ISREG(st.st_mode) && s->fd != STDIN_FILENO && st.st_size > 0)
		s->length = (uint64_t)st.st_size;
	return 0;
}

static int put_file(struct cli_transfer *t, struct source *s, const struct cli_place *to)
{
	struct err too_long = {.code = ENAMETOOLONG, .text = "the name is too long"};
	struct buf path;
	int status;
	int rc;

	buf_init(&path, CLI_COPY_PATH_MAX);
	rc = cli_place_put(&path, to->box, "/fs/write", to->path);
	if (rc == 0 && s->fd != STDIN_FILENO)
		rc = buf_printf(&path, "&mode=%04o", (unsigned int)s->mode & 0777U);
	if (rc == 0)
		rc = buf_terminate(&path);
	if (rc < 0)
		status = cli_transfer_fail(t, &too_long);
	else
		status = cli_transfer_put(t, (const char *)buf_head(&path),
		    "application/octet-stream", fill_from_fd, s, s->length);
	buf_free(&path);
	return status;
}

static int put_tree(struct cli_transfer *t, const char *from, const struct cli_place *to)
{
	struct cli_pack *pack = NULL;
	struct buf path;
	struct err err;
	int status;
	int rc;

	rc = cli_pack_open(from, &t->progress, &pack, &err);
	if (rc < 0)
		return cli_transfer_fail(t, &err);
	buf_init(&path, CLI_COPY_PATH_MAX);
	rc = cli_place_put(&path, to->box, "/files", to->path);
	if (rc == 0)
		rc = buf_puts(&path, "/"); /* a directory, whatever is in the archive */
	if (rc == 0)
		rc = buf_terminate(&path);
	if (rc < 0) {
		(void)err_set(&err, ENAMETOOLONG, "the name is too long");
		status = cli_transfer_fail(t, &err);
	} else {
		status = cli_transfer_put(t, (const char *)buf_head(&path), "application/x-tar",
		    cli_pack_fill, pack, HTTPC_ANY_LENGTH);
	}
	if (status == CLI_OK && cli_pack_skipped(pack) > 0)
		status = CLI_FAILED; /* each was said */
	cli_pack_close(pack);
	buf_free(&path);
	return status;
}

/* Where it goes: as named, or into the directory that is there. */
static int find_target(
    struct cli_transfer *t, const char *from, struct cli_place *to, char path[PATH_MAX])
{
	struct cli_stat there;
	struct err err;
	int status = cli_transfer_stat(t, to, &there);
	int rc;

	if (status != CLI_OK || !there.directory)
		return status;
	if (!strcmp(from, "-"))
		rc = err_set(&err, EISDIR, "%.200s is a directory; name the file", to->path);
	else
		rc = cli_copy_target(from, to->path, path);
	if (rc == -EINVAL)
		(void)err_set(&err, EINVAL, "'%.200s' has no name of its own", from);
	else if (rc == -ENAMETOOLONG)
		(void)err_set(&err, ENAMETOOLONG, "the name is too long");
	if (rc < 0)
		return cli_transfer_fail(t, &err);
	to->path = path;
	return CLI_OK;
}

int cli_copy_in(const struct cli_copy *cp, const char *from, const struct cli_place *to)
{
	const struct err no_memory = {.code = ENOMEM, .text = "no memory"};
	struct source s = {.cli = cp->cli, .name = from, .fd = -1};
	struct cli_place target = *to;
	char *plain;
	struct cli_transfer t;
	char path[PATH_MAX];
	struct err err;
	uint64_t total;
	int status;

	if (open_source(&s, &err) < 0)
		return cli_fail("cp", &err);
	plain = cli_copy_plain(to->path);
	if (!plain)
		return cli_fail("cp", &no_memory);
	target.path = plain;
	status = cli_transfer_open(&t, cp->cli, from);
	if (status == CLI_OK)
		status = find_target(&t, from, &target, path);
	if (status == CLI_OK) {
		total = s.length == HTTPC_ANY_LENGTH ? 0 : s.length;
		cli_progress_begin(&t.progress, from, total, cp->quiet);
		status = S_ISDIR(s.mode) ? put_tree(&t, from, &target) : put_file(&t, &s, &target);
	}
	cli_transfer_close(&t);
	free(plain);
	if (s.fd != STDIN_FILENO)
		fd_close(&s.fd);
	return status;
}
