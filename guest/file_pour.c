/*
 * file_pour: the content of a large file from the stream to the file through a pipe, by reference
 * up to the copy into the file's own pages. sbx-guest; if we die here the pipe goes with us.
 *
 * The pipe collects a part before it is written: what is written at once lies in pages as large,
 * which cost less to have and to free than small ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/path.h"

#define POUR_PART (256U * 1024U)	  /* smaller files are copied */
#define POUR_PIPE ((int)(2U * POUR_PART)) /* its places are as many as the pages of that */
#define POUR_COPY 4096U

int file_put(struct file_writer *w, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(w->fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		bytes += done;
		n -= (size_t)done;
		w->done += (uint64_t)done;
	}
	return 0;
}

bool file_pour_begin(struct file_writer *w)
{
	/* What is appended cannot be spliced. */
	if (w->append || w->size < POUR_PART || pipe2(w->pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	(void)fcntl(w->pipe[1], F_SETPIPE_SZ, POUR_PIPE); /* else the parts are smaller */
	return true;
}

/* For file systems that cannot splice. 0 or an errno. */
static int copy_out(struct file_writer *w)
{
	uint8_t bytes[POUR_COPY];

	while (w->piped > 0) {
		ssize_t n = read(w->pipe[0], bytes, sizeof(bytes));
		int err;

		if (n <= 0)
			return n < 0 ? errno : EIO;
		w->piped -= (size_t)n;
		err = file_put(w, bytes, (size_t)n);
		if (err != 0)
			return err;
	}
	return 0;
}

int file_pour_end(struct file_writer *w)
{
	while (w->piped > 0) {
		ssize_t done = splice(w->pipe[0], NULL, w->fd, NULL, w->piped, SPLICE_F_MOVE);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EINVAL)
			return copy_out(w);
		if (done <= 0)
			return done < 0 ? errno : EIO;
		w->piped -= (size_t)done;
		w->done += (uint64_t)done;
	}
	return 0;
}

static bool pipe_is_full(const struct file_writer *w)
{
	struct pollfd p = {.fd = w->pipe[1], .events = POLLOUT};

	return w->piped > 0 && poll(&p, 1, 0) == 0;
}

ssize_t file_pour(struct file_writer *w, int stream, size_t n, int *err)
{
	ssize_t got;

	if (n > POUR_PART - w->piped)
		n = POUR_PART - w->piped;
	got = splice(stream, NULL, w->pipe[1], NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (got < 0)
		got = -errno;
	else
		w->piped += (size_t)got;
	if (w->piped == POUR_PART || (got == -EAGAIN && pipe_is_full(w)))
		*err = file_pour_end(w);
	return got;
}
