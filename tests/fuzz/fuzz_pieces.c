/* fuzz_pieces: what sbx-boxlite takes of a box's output. Any text, in one go and cut up; and a
 * right stream to which things are done on its way: of that nothing wrong ever comes out. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/pieces.h"
#include "wire/base64.h"

#define REQUIRE(what)                                                   \
	do {                                                            \
		if (!(what)) {                                          \
			(void)fprintf(stderr, "not true: %s\n", #what); \
			abort();                                        \
		}                                                       \
	} while (0)

#define TEXT_MAX 262144U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* In one go and in runs of `run` it is the same. 0 or -EPROTO, and what came out. */
static int take(const char *text, size_t n, size_t run, struct buf *out)
{
	static struct pieces whole;
	static struct pieces cut;
	struct buf again;
	char why[160];
	int rc;
	int rc2 = 0;

	buf_init(out, TEXT_MAX);
	buf_init(&again, TEXT_MAX);
	pieces_begin(&whole);
	pieces_begin(&cut);
	rc = pieces_take(&whole, text, n, out);
	for (size_t at = 0; rc2 == 0 && at < n; at += run)
		rc2 = pieces_take(&cut, text + at, run < n - at ? run : n - at, &again);
	REQUIRE(rc == rc2 && (rc == 0 || rc == -EPROTO));
	REQUIRE((rc == 0) == (whole.fault.wrong == PIECE_RIGHT));
	REQUIRE(!memcmp(&whole.fault, &cut.fault, sizeof(whole.fault)) && whole.told == cut.told);
	REQUIRE(out->len == again.len);
	REQUIRE(out->len == 0 || !memcmp(buf_head(out), buf_head(&again), out->len));
	pieces_explain(&whole, why, sizeof(why));
	REQUIRE(why[0] && strlen(why) < sizeof(why) - 1);
	buf_free(&again);
	return rc;
}

/* The bytes as pieces of up to `size` each. The length of the text. */
static size_t say(const uint8_t *data, size_t n, size_t size, char *text)
{
	uint8_t piece[PIECE_HEAD_LEN + 256];
	struct piece_way way;
	size_t len = 0;

	piece_begin(&way);
	for (size_t at = 0; at < n; at += size) {
		size_t part = size < n - at ? size : n - at;

		memcpy(piece + PIECE_HEAD_LEN, data + at, part);
		piece_seal(&way, PIECE_DATA, piece, part);
		base64_encode(piece, PIECE_HEAD_LEN + part, text + len);
		len += base64_len(PIECE_HEAD_LEN + part);
		text[len++] = PIECE_END;
		text[len++] = '\n';
	}
	return len;
}

/* `from` and `count` say where, `what` what is done there. The new length. */
static size_t harm(char *text, size_t len, uint8_t what, size_t from, size_t count)
{
	from %= len;
	count = 1 + count % (len - from);
	switch (what % 3) {
	case 0: /* lost */
		memmove(text + from, text + from + count, len - from - count);
		return len - count;
	case 1: /* repeated */
		memmove(text + from + count, text + from, len - from);
		return len + count;
	default:
		text[from] = (char)(text[from] ^ 1 << count % 8);
		return len;
	}
}

static void take_harmed(const uint8_t *data, size_t n)
{
	static char text[2 * TEXT_MAX];
	const uint8_t *plain = data + 6;
	size_t plain_len = n - 6;
	size_t len = say(plain, plain_len, data[0] + 1U, text);
	struct buf out;

	len = harm(
	    text, len, data[1], (size_t)data[2] << 8 | data[3], (size_t)data[4] << 8 | data[5]);
	(void)take(text, len, data[1] + 1U, &out); /* right, too, when its end is not yet missed */
	REQUIRE(out.len <= plain_len);
	REQUIRE(out.len == 0 || !memcmp(buf_head(&out), plain, out.len));
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf out;

	if (n < 2 || n > 4096)
		return 0;
	if (data[0] % 2 == 0) {
		(void)take((const char *)data + 2, n - 2, data[1] + 1U, &out);
		buf_free(&out);
	} else if (n > 7) {
		take_harmed(data + 1, n - 1);
	}
	return 0;
}
