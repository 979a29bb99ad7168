/*
 * tar_testing: archives made block by block, independently of what is tested, and what tar_in makes
 * of them. Each test that uses it is one program: so everything here is static.
 */
#ifndef SBXD_TEST_WORKER_TAR_TESTING_H
#define SBXD_TEST_WORKER_TAR_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "wire/agent.h"
#include "wire/entry.h"
#include "worker/tar_in.h"

#define T_UNUSED __attribute__((unused))
#define T_MEMBERS 64
#define T_ARCHIVE_MAX (64U << 20)

/* One member as the helper would see it. */
struct t_member {
	struct entry_member head;
	char path[ENTRY_PATH_MAX + 1];
	char link[ENTRY_PATH_MAX + 1];
	struct buf data; /* the pieces one after the other */
	uint64_t from;	 /* offset of the first piece */
	uint64_t to;	 /* end of the last */
	size_t pieces;
	bool complete;
};

struct t_heard {
	size_t count;
	bool done;
	uint64_t done_count;
	struct t_member all[T_MEMBERS];
	struct entry_reader reader;
};

static inline int t_hear(void *ctx, const struct entry *e)
{
	struct t_heard *h = ctx;
	struct t_member *m = h->count ? &h->all[h->count - 1] : NULL;

	assert_false(h->done);
	if (e->type == ENTRY_DONE) {
		assert_int_equal(e->u.done.version, AGENT_VERSION);
		h->done = true;
		h->done_count = e->u.done.count;
	} else if (e->type == ENTRY_MEMBER) {
		assert_true(h->count < T_MEMBERS);
		assert_true(!m || m->complete);
		m = &h->all[h->count++];
		m->head = e->u.member;
		m->complete = m->head.kind != ENTRY_FILE;
		memcpy(m->path, e->path, m->head.path_len);
		memcpy(m->link, e->text, m->head.link_len);
		buf_init(&m->data, T_ARCHIVE_MAX);
	} else {
		assert_int_equal(e->type, ENTRY_PIECE);
		assert_true(m && !m->complete);
		assert_true(e->u.piece.offset >= m->to);
		if (m->pieces++ == 0)
			m->from = e->u.piece.offset;
		m->to = e->u.piece.offset + e->text_len;
		m->complete = e->text_len == 0;
		assert_int_equal(buf_append(&m->data, e->text, e->text_len), 0);
	}
	return 0;
}

static inline struct t_heard *t_heard_new(void)
{
	struct t_heard *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	return h;
}

static inline void t_heard_free(struct t_heard *h)
{
	for (size_t i = 0; i < h->count; i++)
		buf_free(&h->all[i].data);
	free(h);
}

/* Feeds an archive in parts of `part` bytes and hears the records. How it ended. */
static inline enum tar_in_state t_read(
    struct tar_in *t, const uint8_t *p, size_t n, size_t part, struct t_heard *h)
{
	enum tar_in_state state = TAR_IN_HUNGRY;

	for (;;) {
		struct buf *records = tar_in_records(t);
		size_t room = tar_in_room(t);

		if (state == TAR_IN_HUNGRY && n > 0) {
			assert_true(room > 0);
			room = room < part ? room : part;
			room = room < n ? room : n;
			tar_in_put(t, p, room);
			p += room;
			n -= room;
		} else if (state == TAR_IN_HUNGRY) {
			tar_in_end(t);
		}
		state = tar_in_run(t);
		assert_true(records->len < 128U * 1024U);
		assert_int_equal(
		    entry_feed(&h->reader, buf_head(records), records->len, t_hear, h), 0);
		buf_consume(records, records->len);
		if (state == TAR_IN_DONE || state == TAR_IN_FAILED)
			return state;
	}
}

/* The whole of an archive that is read well; the caller frees it. */
static T_UNUSED struct t_heard *t_read_all(const struct buf *archive, size_t part)
{
	struct tar_in *t = tar_in_create();
	struct t_heard *h = t_heard_new();
	const char *why = "";

	assert_non_null(t);
	if (t_read(t, buf_head(archive), archive->len, part, h) != TAR_IN_DONE) {
		(void)tar_in_error(t, &why);
		fail_msg("it failed: %s", why);
	}
	assert_true(h->done);
	assert_int_equal(h->done_count, h->count);
	tar_in_free(t);
	return h;
}

/* One that must fail, with this error and that in its text. */
static T_UNUSED void t_expect_failure(
    const uint8_t *p, size_t n, size_t part, enum api_error error, const char *text)
{
	struct tar_in *t = tar_in_create();
	struct t_heard *h = t_heard_new();
	const char *why = "";

	assert_non_null(t);
	assert_int_equal(t_read(t, p, n, part, h), TAR_IN_FAILED);
	assert_false(h->done);
	assert_int_equal(tar_in_error(t, &why), error);
	if (!strstr(why, text))
		fail_msg("\"%s\" is not in: %s", text, why);
	tar_in_free(t);
	t_heard_free(h);
}

/* ---- archives ---- */

static inline void t_pad(struct buf *b)
{
	static const uint8_t zeros[512];

	assert_int_equal(buf_append(b, zeros, -b->len % 512), 0);
}

static inline void t_finish(struct buf *b)
{
	static const uint8_t zeros[1024];

	assert_int_equal(buf_append(b, zeros, sizeof(zeros)), 0);
}

static inline void t_seal(uint8_t block[512])
{
	unsigned int sum = 0;

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += block[i];
	(void)snprintf((char *)block + 148, 8, "%06o", sum);
}

static inline void t_fill(
    uint8_t block[512], const char *name, char type, uint64_t size, const char *link)
{
	memset(block, 0, 512);
	assert_true(strlen(name) <= 100 && strlen(link) <= 100);
	memcpy(block, name, strlen(name));
	(void)snprintf((char *)block + 100, 8, "%07o", 0640);
	(void)snprintf((char *)block + 108, 8, "%07o", 1000);
	(void)snprintf((char *)block + 116, 8, "%07o", 1000);
	(void)snprintf((char *)block + 124, 12, "%011llo", (unsigned long long)size);
	(void)snprintf((char *)block + 136, 12, "%011o", 1700000000U);
	block[156] = (uint8_t)type;
	memcpy(block + 157, link, strlen(link));
	memcpy(block + 257, "ustar\00000", 8);
}

static inline void t_put(struct buf *b, const uint8_t block[512])
{
	assert_int_equal(buf_append(b, block, 512), 0);
}

/* A member with the given data. */
static T_UNUSED void t_member(
    struct buf *b, const char *name, char type, const char *link, const void *data, size_t n)
{
	uint8_t block[512];

	t_fill(block, name, type, n, link);
	t_seal(block);
	t_put(b, block);
	assert_int_equal(buf_append(b, data, n), 0);
	t_pad(b);
}

/* "LEN key=value\n". */
static T_UNUSED void t_record(struct buf *records, const char *key, const void *value, size_t n)
{
	size_t rest = strlen(key) + n + 3;
	size_t len = rest + 1;

	while (rest + (size_t)snprintf(NULL, 0, "%zu", len) != len)
		len = rest + (size_t)snprintf(NULL, 0, "%zu", len);
	assert_int_equal(buf_printf(records, "%zu %s=", len, key), 0);
	assert_int_equal(buf_append(records, value, n), 0);
	assert_int_equal(buf_puts(records, "\n"), 0);
}

static T_UNUSED void t_pax(struct buf *b, struct buf *records)
{
	t_member(b, "PaxHeader", 'x', "", buf_head(records), records->len);
	buf_clear(records);
}

#endif
