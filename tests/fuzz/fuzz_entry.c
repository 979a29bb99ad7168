/*
 * Fuzz target of what sbx-files says. A stream is taken or refused whatever the pieces are that it
 * comes in; each record that is taken keeps what wire/entry.h promises, and makes good JSON.
 *
 * Input: one byte for the size of the pieces, then the stream.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "wire/agent.h"
#include "wire/entry.h"
#include "wire/json.h"
#include "worker/files_json.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))

/* What was taken so far. */
struct taken {
	uint64_t count;
	uint64_t sum; /* of all its bytes */
};

static void add(struct taken *t, const void *p, size_t n)
{
	t->sum = hash64(t->sum, p, n);
}

static void check_json(const struct entry *e)
{
	const struct files_stat st = {
	    .size = e->u.item.size, .mtime_ns = e->u.item.mtime_ns, .mode = e->u.item.mode};
	struct json_out j;
	struct buf out;
	json_t *back;

	buf_init(&out, 32 * ENTRY_SIZE_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	files_put_name(&j, "path", e->path, e->path_len);
	if (e->type == ENTRY_ITEM) {
		files_put_stat(&j, &st);
		files_put_name(&j, "link_target", e->text, e->text_len);
	} else {
		json_put_bytes(&j, "text", e->text, e->text_len);
	}
	json_object_end(&j);
	REQUIRE(json_out_error(&j) == 0);
	back = json_loadb((const char *)buf_head(&out), out.len, JSON_ALLOW_NUL, NULL);
	REQUIRE(back != NULL);
	json_decref(back);
	buf_free(&out);
}

static int take(void *ctx, const struct entry *e)
{
	struct taken *t = ctx;

	REQUIRE(e->type > ENTRY_NONE && e->type < ENTRY_TYPES && e->type != ENTRY_ALIVE);
	t->count++;
	add(t, &e->type, sizeof(e->type));
	add(t, &e->u, sizeof(e->u));
	if (e->type == ENTRY_DONE) {
		REQUIRE(e->u.done.version == AGENT_VERSION);
		return 0;
	}
	add(t, e->text, e->text_len);
	if (e->type == ENTRY_EXTENTS || e->type == ENTRY_PIECE) {
		REQUIRE(e->path_len == 0);
		return 0;
	}
	REQUIRE(e->path_len <= ENTRY_PATH_MAX && !memchr(e->path, '\0', e->path_len));
	REQUIRE(e->path_len > 0 || e->type == ENTRY_PROBLEM);
	add(t, e->path, e->path_len);
	if (e->type == ENTRY_MEMBER)
		REQUIRE(!memchr(e->text, '\0', e->text_len));
	else
		check_json(e);
	return 0;
}

static int feed(const uint8_t *bytes, size_t n, size_t piece, struct taken *t)
{
	static struct entry_reader r;
	int rc = 0;

	r.len = 0;
	r.steps = 0;
	*t = (struct taken){.sum = 14695981039346656037ULL};
	for (size_t at = 0; at < n && rc == 0; at += piece) {
		size_t now = n - at < piece ? n - at : piece;
		uint8_t *exact = malloc(now); /* so that a read too far is seen */

		REQUIRE(exact != NULL);
		memcpy(exact, bytes + at, now);
		rc = entry_feed(&r, exact, now, take, t);
		free(exact);
		REQUIRE(rc == 0 || rc == -EBADMSG);
		REQUIRE(r.len <= sizeof(r.part));
	}
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct taken whole;
	struct taken pieces;

	if (n < 2)
		return 0;
	REQUIRE(feed(data + 1, n - 1, n - 1, &whole) ==
		feed(data + 1, n - 1, (size_t)data[0] + 1, &pieces));
	REQUIRE(whole.count == pieces.count && whole.sum == pieces.sum);
	return 0;
}
