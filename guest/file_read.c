/*
 * file_read: AGENT_READ, a range of bytes or lines of a regular file. sbx-guest; only reads, so
 * nothing is lost if we die here.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/mux.h"
#include "guest/path.h"

#define READ_SKIP_CHUNKS 16	    /* looked through in one step, so that others have their turn */
#define READ_SEND_MIN (16U * 1024U) /* less of a file's middle is copied: it costs fewer calls */

static void read_fail(struct guest *g, struct channel *c, const char *path, int err)
{
	struct text why;
	enum agent_code code = path_code(err);

	text_clear(&why);
	if (err == EINVAL || err == ENXIO) {
		text_add(&why, "not a regular file: ");
		text_add_quoted(&why, path, 256);
	} else {
		path_explain(&why, "cannot read", path, err);
	}
	mux_fail(g, c, code, err, &why);
}

/* Sends STARTED with what the file is, and finds how much there is to read. 0 or an errno. */
static int read_start(struct guest *g, struct channel *c, uint64_t limit)
{
	struct file_reader *r = &c->u.reader;
	struct agent_stat as;
	struct stat st;
	uint64_t size;
	uint8_t first;

	if (fstat(r->fd, &st) != 0)
		return errno;
	size = (uint64_t)st.st_size;
	/* Before anything is promised: memory and the like look like files, and are none. */
	if (size == 0 && pread(r->fd, &first, 1, (off_t)r->offset) < 0)
		return errno == EIO ? EINVAL : errno;
	as = (struct agent_stat){
	    .size = size,
	    .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL + (uint64_t)st.st_mtim.tv_nsec,
	    .mode = st.st_mode,
	    .uid = st.st_uid,
	    .gid = st.st_gid,
	};
	(void)out_put(&g->out, AGENT_STARTED, 0, c->id, &as, sizeof(as), NULL, 0); /* has room */
	/* What is appended from now on is not read, or a busy log would never end. Files of /proc
	 * have size 0 and are read to their end. */
	r->left = limit;
	r->sized = size > 0;
	if (!r->sized)
		return 0;
	size = size > r->offset ? size - r->offset : 0;
	if (r->left > size)
		r->left = size;
	return 0;
}

static int read_open(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	struct file_reader *r = &c->u.reader;
	struct agent_read ar;
	char path[PATH_LEN_MAX + 1];
	int err = 0;

	*r = (struct file_reader){.fd = -1};
	if (n < sizeof(ar))
		return -EBADMSG;
	memcpy(&ar, request, sizeof(ar));
	if (ar.path_len != n - sizeof(ar) || (ar.flags & ~AGENT_READ_LINES) != 0)
		return -EBADMSG;
	if (!path_is_valid((const char *)request + sizeof(ar), ar.path_len)) {
		mux_fail_str(g, c, AGENT_E_INVALID_PATH, 0, PATH_INVALID);
		return 0;
	}
	memcpy(path, request + sizeof(ar), ar.path_len);
	path[ar.path_len] = '\0';
	r->lines = (ar.flags & AGENT_READ_LINES) != 0;
	if (r->lines ? ar.offset == 0 || ar.limit < ar.offset : ar.offset > INT64_MAX) {
		mux_fail_str(g, c, AGENT_E_INVALID, 0, "not a range of a file");
		return 0;
	}
	r->fd = path_open_regular(g->root_fd, path);
	if (r->fd < 0) {
		err = -r->fd;
		r->fd = -1;
	}
	r->line = 1;
	r->first = ar.offset;
	r->last = ar.limit;
	r->offset = r->lines ? 0 : ar.offset;
	if (err == 0)
		err = read_start(g, c, r->lines ? UINT64_MAX : ar.limit);
	if (err != 0)
		read_fail(g, c, path, err);
	return 0;
}

static void read_end(struct guest *g, struct channel *c, uint32_t flags)
{
	const struct agent_end end = {.flags = flags, .bytes = c->u.reader.sent};

	mux_end(g, c, &end);
}

static void read_wait(struct guest *g, struct channel *c, struct pollfd *w, uint64_t *at)
{
	const struct file_reader *r = &c->u.reader;

	(void)w;
	/* A regular file is always ready; and its end, or its loss, needs no credit. */
	if (!g->out.blocked && (c->credit[AGENT_STDOUT] > 0 || r->left == 0 || r->told.cut))
		*at = 0;
}

/* Counts n sent bytes of the file; ends the channel when it was the last. */
static void read_sent(struct channel *c, size_t consumed, size_t n)
{
	struct file_reader *r = &c->u.reader;

	r->offset += consumed;
	r->left -= consumed;
	r->sent += n;
	c->credit[AGENT_STDOUT] -= n;
}

static void read_cut(struct guest *g, struct channel *c, int err)
{
	mux_fail_str(g, c, err != 0 ? path_code(err) : AGENT_E_IO, err,
	    err != 0 ? strerror(err) : "the file was cut short while it was read");
}

/*
 * Sends a payload without copying it, of a file that said how large it is; no more, so that others
 * have their turn. False: there is nothing of that kind.
 */
static bool read_send(struct guest *g, struct channel *c)
{
	struct file_reader *r = &c->u.reader;
	size_t n = r->left < AGENT_DATA_MAX ? (size_t)r->left : AGENT_DATA_MAX;

	if (n > c->credit[AGENT_STDOUT])
		n = (size_t)c->credit[AGENT_STDOUT];
	if (r->left < AGENT_PAYLOAD_MAX || n < READ_SEND_MIN || r->told.copied || r->told.cut)
		return false;
	if (!out_send_file(&g->out, c->id, AGENT_STDOUT, r->fd, r->offset, n, &r->told))
		return false;
	read_sent(c, n, n);
	return true;
}

static void read_bytes(struct guest *g, struct channel *c)
{
	struct file_reader *r = &c->u.reader;
	struct iovec iov[OUT_FRAMES];
	uint64_t want = c->credit[AGENT_STDOUT];
	ssize_t n;
	int count;

	if (want > r->left)
		want = r->left;
	count = out_data_rooms(&g->out, want, iov);
	if (count == 0)
		return;
	n = preadv(r->fd, iov, count, (off_t)r->offset);
	if (n < 0) {
		mux_fail_str(g, c, path_code(errno), errno, strerror(errno));
		return;
	}
	out_data_commits(&g->out, c->id, AGENT_STDOUT, (size_t)n);
	read_sent(c, (size_t)n, (size_t)n);
	if (n == 0 && r->sized)
		read_cut(g, c, 0);
	else if (n == 0 || r->left == 0)
		read_end(g, c, 0);
}

/* Finds the part of a chunk that lies in the wanted lines. Returns where the looked-at part ends.
 */
static size_t read_find_lines(
    struct file_reader *r, const uint8_t *chunk, size_t n, size_t credit, size_t *from)
{
	size_t at = 0;

	while (r->line < r->first && at < n) {
		const uint8_t *end = memchr(chunk + at, '\n', n - at);

		at = end != NULL ? (size_t)(end - chunk) + 1 : n;
		r->line += end != NULL;
	}
	*from = at;
	if (n - at > credit)
		n = at + credit;
	while (r->line <= r->last && at < n) {
		const uint8_t *end = memchr(chunk + at, '\n', n - at);

		at = end != NULL ? (size_t)(end - chunk) + 1 : n;
		r->line += end != NULL;
	}
	return at;
}

static void read_lines(struct guest *g, struct channel *c)
{
	struct file_reader *r = &c->u.reader;

	for (int i = 0; i < READ_SKIP_CHUNKS; i++) {
		size_t from;
		size_t to;
		size_t max;
		ssize_t n;
		uint8_t *chunk = out_data_room(&g->out, &max);

		if (chunk == NULL || c->credit[AGENT_STDOUT] == 0)
			return;
		n = pread(r->fd, chunk, max < r->left ? max : (size_t)r->left, (off_t)r->offset);
		if (n < 0) {
			mux_fail_str(g, c, path_code(errno), errno, strerror(errno));
			return;
		}
		to = read_find_lines(r, chunk, (size_t)n, (size_t)c->credit[AGENT_STDOUT], &from);
		if (to > from) {
			memmove(chunk, chunk + from, to - from);
			out_data_commit(&g->out, c->id, AGENT_STDOUT, to - from);
		}
		read_sent(c, to, to - from);
		if (n == 0 || r->left == 0 || r->line > r->last) {
			read_end(g, c, 0);
			return;
		}
	}
}

static void read_step(struct guest *g, struct channel *c, const struct pollfd *w)
{
	const struct file_reader *r = &c->u.reader;

	(void)w;
	if (g->out.blocked)
		return; /* a payload may be on its way, and how that ends is not known yet */
	if (r->sized && !r->lines && read_send(g, c))
		return;
	if (r->told.cut)
		read_cut(g, c, r->told.err);
	else if (r->left == 0)
		read_end(g, c, 0);
	else if (r->lines)
		read_lines(g, c);
	else
		read_bytes(g, c);
}

static void read_close(struct guest *g, struct channel *c)
{
	read_end(g, c, AGENT_END_KILLED);
}

static void read_drop(struct guest *g, struct channel *c)
{
	struct file_reader *r = &c->u.reader;

	if (r->fd >= 0 && !out_take_file(&g->out, r->fd))
		(void)close(r->fd); /* was only read */
	r->fd = -1;
}

const struct operation file_read_operation = {
    .open = read_open,
    .close = read_close,
    .wait = read_wait,
    .step = read_step,
    .drop = read_drop,
};
