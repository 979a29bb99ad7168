/*
 * archive_run: the real `sbx-files pack` and `unpack`, with a test at both ends of their pipes.
 * Trees are those of files_run.h.
 */
#ifndef SBXD_TESTS_GUEST_ARCHIVE_RUN_H
#define SBXD_TESTS_GUEST_ARCHIVE_RUN_H

#include <poll.h>
#include <signal.h>

#include "lib/buf.h"
#include "tests/unit/guest/files_run.h"

#define ARCHIVE_MAX (64U << 20)

/* A helper that runs. */
struct helper {
	pid_t pid;
	int in;	 /* its standard input; -1: closed */
	int out; /* its standard output */
	int err;
	char why[AGENT_ERROR_TEXT + 1];
};

static inline void helper_child(const char *const *args, int in, int out, int err)
{
	if (dup2(in, STDIN_FILENO) < 0)
		_exit(126);
	run_child(args, out, err);
}

static inline void helper_start(struct helper *h, const char *const *args)
{
	int in[2];
	int out[2];
	int err[2];

	*h = (struct helper){.in = -1};
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (h->pid == 0)
		helper_child(args, in[0], out[1], err[1]);
	(void)close(in[0]);
	(void)close(out[1]);
	(void)close(err[1]);
	h->in = in[1];
	h->out = out[0];
	h->err = err[0];
}

static inline void helper_close_in(struct helper *h)
{
	if (h->in >= 0)
		(void)close(h->in);
	h->in = -1;
}

/* Writes all of it; false when nobody reads any more. */
static inline bool helper_feed(struct helper *h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n > 0) {
		ssize_t done = write(h->in, p, n);

		if (done < 0 && errno == EPIPE)
			return false;
		assert_true(done > 0);
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* Reads what it still says into `said`, awaits its end, and returns its exit status. */
static inline int helper_end(struct helper *h, struct buf *said)
{
	uint8_t bytes[65536];
	int status = -1;
	ssize_t n;

	helper_close_in(h);
	while ((n = read(h->out, bytes, sizeof(bytes))) > 0)
		assert_int_equal(buf_append(said, bytes, (size_t)n), 0);
	n = read(h->err, h->why, sizeof(h->why) - 1);
	assert_true(n >= 0);
	(void)close(h->out);
	(void)close(h->err);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* ---- records ---- */

static inline void say(struct buf *b, enum entry_type type, const void *p, size_t n)
{
	const struct entry_head head = {.size = (uint32_t)n, .type = (uint16_t)type};

	assert_int_equal(buf_append(b, &head, sizeof(head)), 0);
	assert_int_equal(buf_append(b, p, n), 0);
}

static inline void say_member(
    struct buf *b, struct entry_member m, const char *path, const char *link)
{
	uint8_t record[sizeof(m) + 2 * ENTRY_PATH_MAX];

	m.path_len = (uint32_t)strlen(path);
	m.link_len = (uint32_t)strlen(link);
	memcpy(record, &m, sizeof(m));
	memcpy(record + sizeof(m), path, m.path_len);
	memcpy(record + sizeof(m) + m.path_len, link, m.link_len);
	say(b, ENTRY_MEMBER, record, sizeof(m) + m.path_len + m.link_len);
}

static inline void say_piece(struct buf *b, uint64_t offset, const void *p, size_t n)
{
	uint8_t record[ENTRY_SIZE_MAX];

	memcpy(record, &offset, sizeof(offset));
	if (n > 0)
		memcpy(record + sizeof(offset), p, n);
	say(b, ENTRY_PIECE, record, sizeof(offset) + n);
}

static inline void say_file(struct buf *b, const char *path, const char *text)
{
	const struct entry_member m = {.kind = ENTRY_FILE, .mode = 0644, .size = strlen(text)};

	say_member(b, m, path, "");
	if (m.size > 0)
		say_piece(b, 0, text, m.size);
	say_piece(b, m.size, NULL, 0);
}

static inline void say_dir(struct buf *b, const char *path, uint32_t mode)
{
	say_member(b, (struct entry_member){.kind = ENTRY_DIRECTORY, .mode = mode}, path, "");
}

static inline void say_link(struct buf *b, enum entry_kind kind, const char *path, const char *link)
{
	say_member(b, (struct entry_member){.kind = kind}, path, link);
}

static inline void say_done(struct buf *b)
{
	const struct entry_done done = {.version = AGENT_VERSION};

	say(b, ENTRY_DONE, &done, sizeof(done));
}

#endif
