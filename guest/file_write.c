/*
 * file_write: AGENT_WRITE. A file is replaced whole or not at all. sbx-guest; if we
 * die here a temporary name may be left in the box.
 */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/mux.h"
#include "guest/path.h"

#define WRITE_NEW_MODE 0644U

static void write_drop(struct guest *g, struct channel *c)
{
	struct file_writer *w = &c->u.writer;

	if (w->flusher != NULL)
		shim_release(&g->shims, w->flusher);
	path_close(&w->pipe[0]);
	path_close(&w->pipe[1]);
	file_target_close(w);
}

static void write_fail(struct guest *g, struct channel *c, const char *path, int err)
{
	struct text why;

	text_clear(&why);
	if (err == EINVAL || err == ENXIO) {
		text_add(&why, "not a regular file: ");
		text_add_quoted(&why, path, 256);
	} else {
		path_explain(&why, "cannot write", path, err);
	}
	mux_fail(g, c, path_code(err), err, &why);
}

static int write_open(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	struct file_writer *w = &c->u.writer;
	struct agent_write aw;
	char path[PATH_LEN_MAX + 1];
	int err;

	*w = (struct file_writer){.fd = -1, .dir_fd = -1, .pipe = {-1, -1}};
	if (n < sizeof(aw))
		return -EBADMSG;
	memcpy(&aw, request, sizeof(aw));
	if (aw.path_len != n - sizeof(aw) || aw.reserved != 0 ||
	    (aw.flags & ~(AGENT_WRITE_APPEND | AGENT_WRITE_MODE)) != 0)
		return -EBADMSG;
	if (!path_is_valid((const char *)request + sizeof(aw), aw.path_len)) {
		mux_fail_str(g, c, AGENT_E_INVALID_PATH, 0, PATH_INVALID);
		return 0;
	}
	memcpy(path, request + sizeof(aw), aw.path_len);
	path[aw.path_len] = '\0';
	w->size = aw.size;
	w->append = (aw.flags & AGENT_WRITE_APPEND) != 0;
	w->set_mode = (aw.flags & AGENT_WRITE_MODE) != 0;
	w->mode = aw.mode != 0 || w->set_mode ? aw.mode & 07777U : WRITE_NEW_MODE;
	err = file_target_open(g->root_fd, w, path);
	if (err != 0) {
		write_fail(g, c, path, err);
		return 0;
	}
	c->pours = file_pour_begin(w);
	return 0;
}

static void write_fail_now(struct guest *g, struct channel *c, int err)
{
	mux_fail_str(g, c, path_code(err), err, strerror(err));
}

static int write_data(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n)
{
	struct file_writer *w = &c->u.writer;
	uint64_t before = w->done;
	int err;

	if (n > w->size - w->done - w->piped) {
		mux_fail_str(g, c, AGENT_E_INVALID, 0, "more bytes came than were announced");
		return 0;
	}
	err = file_pour_end(w);
	if (err == 0)
		err = file_put(w, bytes, n);
	if (err != 0)
		write_fail_now(g, c, err);
	else
		mux_consumed(g, c, (size_t)(w->done - before)); /* with what lay in the pipe */
	return 0;
}

static ssize_t write_pour(struct guest *g, struct channel *c, int stream, size_t n)
{
	struct file_writer *w = &c->u.writer;
	uint64_t before = w->done;
	ssize_t got = -EINVAL;
	int err = 0;

	if (n <= w->size - w->done - w->piped)
		got = file_pour(w, stream, n, &err);
	if (err != 0) {
		write_fail_now(g, c, err);
		return got;
	}
	mux_consumed(g, c, (size_t)(w->done - before));
	if (got != -EINVAL)
		return got;
	c->pours = false; /* write_data() tells, or it is a stream that cannot be spliced */
	return -EAGAIN;
}

/* The content is on disk: gives it its name and ends the channel. */
static void write_flushed(struct guest *g, struct channel *c, int err)
{
	struct file_writer *w = &c->u.writer;
	const struct agent_end end = {.bytes = w->done};

	if (err == 0)
		err = file_target_name(w);
	if (err != 0)
		write_fail_now(g, c, err);
	else
		mux_end(g, c, &end);
}

/* Flushing something that lives in memory costs nothing, handing it to a shim does. */
static bool flush_is_cheap(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int write_eof(struct guest *g, struct channel *c)
{
	struct file_writer *w = &c->u.writer;
	int err;

	if (w->size != UINT64_MAX && w->done + w->piped < w->size) {
		mux_fail_str(g, c, AGENT_E_SHORT, 0, "fewer bytes came than were announced");
		return 0;
	}
	err = file_pour_end(w);
	if (err == 0)
		err = file_target_dress(w);
	if (err != 0) {
		write_fail_now(g, c, err);
		return 0;
	}
	if (!flush_is_cheap(w->fd))
		w->flusher = shim_take(&g->shims, &err);
	if (w->flusher != NULL)
		shim_start_flush(w->flusher, SHIM_JOB_FSYNC, w->fd);
	else
		write_flushed(g, c, fsync(w->fd) == 0 ? 0 : errno);
	return 0;
}

static void write_step(struct guest *g, struct channel *c, const struct pollfd *p)
{
	struct file_writer *w = &c->u.writer;
	int err = -1;

	(void)p;
	if (w->flusher == NULL)
		return;
	if (shim_phase(w->flusher) == SHIM_DONE)
		err = w->flusher->err;
	else if (w->flusher->pid == 0) /* killed from within the box */
		err = fsync(w->fd) == 0 ? 0 : errno;
	if (err < 0)
		return;
	shim_release(&g->shims, w->flusher);
	w->flusher = NULL;
	write_flushed(g, c, err);
}

static void write_close(struct guest *g, struct channel *c)
{
	const struct agent_end end = {.flags = AGENT_END_KILLED, .bytes = c->u.writer.done};

	mux_end(g, c, &end);
}

static void write_wait(struct guest *g, struct channel *c, struct pollfd *w, uint64_t *at)
{
	/* Everything is done when it comes in. */
	(void)g;
	(void)c;
	(void)w;
	(void)at;
}

const struct operation file_write_operation = {
    .open = write_open,
    .data = write_data,
    .pour = write_pour,
    .eof = write_eof,
    .close = write_close,
    .wait = write_wait,
    .step = write_step,
    .drop = write_drop,
};
