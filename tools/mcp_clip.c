/* mcp_clip: the beginning and the end of output of any length. sbx-mcp; dies with its call. */
#include "tools/mcp_clip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/utf8.h"

void mcp_clip_init(struct mcp_clip *c, size_t max)
{
	*c = (struct mcp_clip){.half = max / 2};
	buf_init(&c->head, c->half);
}

void mcp_clip_free(struct mcp_clip *c)
{
	buf_free(&c->head);
	free(c->tail);
	c->tail = NULL;
}

/* Into the ring, where `at` is how many bytes went there before. */
static void put_ring(struct mcp_clip *c, uint64_t at, const uint8_t *bytes, size_t n)
{
	if (n > c->half) {
		at += n - c->half;
		bytes += n - c->half;
		n = c->half;
	}
	for (size_t done = 0; done < n;) {
		size_t place = (size_t)((at + done) % c->half);
		size_t part = c->half - place < n - done ? c->half - place : n - done;

		memcpy(c->tail + place, bytes + done, part);
		done += part;
	}
}

int mcp_clip_add(struct mcp_clip *c, const uint8_t *bytes, size_t n)
{
	size_t first = buf_room(&c->head) < n ? buf_room(&c->head) : n;
	int rc = first > 0 ? buf_append(&c->head, bytes, first) : 0;

	if (rc < 0)
		return rc;
	if (n > first && !c->tail) {
		c->tail = malloc(c->half);
		if (!c->tail)
			return -ENOMEM;
	}
	if (n > first)
		put_ring(c, c->total + first - c->half, bytes + first, n - first);
	c->total += n;
	return 0;
}

uint64_t mcp_clip_left_out(const struct mcp_clip *c)
{
	return c->total > 2 * (uint64_t)c->half ? c->total - 2 * (uint64_t)c->half : 0;
}

int mcp_put_text(struct buf *out, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		size_t whole = utf8_valid_prefix(bytes, n, NULL);
		int rc = whole > 0 ? buf_append(out, bytes, whole) : 0;

		if (rc == 0 && whole < n)
			rc = buf_puts(out, UTF8_REPLACEMENT);
		if (rc < 0)
			return rc;
		whole += whole < n;
		bytes += whole;
		n -= whole;
	}
	return 0;
}

/* How many bytes at the end of n are the beginning of a character. */
static size_t begun(const uint8_t *bytes, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		bool cut = false;

		if (utf8_valid_prefix(bytes + n - back, back, &cut) == 0 && cut)
			return back;
	}
	return 0;
}

/* How many bytes at the start are the end of a character, whose beginning was left out. */
static size_t ended(const uint8_t *bytes, size_t n)
{
	size_t k = 0;

	while (k < 3 && k < n && (bytes[k] & 0xc0) == 0x80)
		k++;
	return k;
}

static int put_cut(const struct mcp_clip *c, const uint8_t *tail, struct buf *out)
{
	size_t head = c->head.len - begun(buf_head(&c->head), c->head.len);
	size_t skip = ended(tail, c->half);
	uint64_t left_out = c->total - head - (c->half - skip);
	int rc = mcp_put_text(out, buf_head(&c->head), head);

	if (rc == 0)
		rc = buf_printf(
		    out, "\n[... %llu bytes left out ...]\n", (unsigned long long)left_out);
	return rc < 0 ? rc : mcp_put_text(out, tail + skip, c->half - skip);
}

int mcp_clip_put(const struct mcp_clip *c, struct buf *out)
{
	uint64_t rest = c->total - c->head.len; /* that went into the ring */
	size_t turn = c->tail ? (size_t)(rest % c->half) : 0;
	struct buf all;
	int rc;

	buf_init(&all, 2 * c->half);
	if (rest > c->half) {
		rc = buf_append(&all, c->tail + turn, c->half - turn);
		if (rc == 0)
			rc = buf_append(&all, c->tail, turn);
		if (rc == 0)
			rc = put_cut(c, buf_head(&all), out);
	} else {
		rc = buf_append(&all, buf_head(&c->head), c->head.len);
		if (rc == 0)
			rc = buf_append(&all, c->tail, (size_t)rest);
		if (rc == 0)
			rc = mcp_put_text(out, buf_head(&all), all.len);
	}
	buf_free(&all);
	return rc;
}
