/*
 * Fuzz target of the WebSocket frames that come from clients. However a stream is cut into pieces,
 * it must tell the same story; and wslay must tell it too: the same messages, up to the same end,
 * with the same code.
 *
 * Input: one byte for the size of pieces, then the stream. Most random bytes break a rule at once,
 * so the first bit of that byte asks for frames that are made right: each then has a byte for its
 * kind and one for its length, and payload.
 */
#include "tests/unit/wire/ws_story.h"

#define MADE_MAX (1U << 20)

/* Turns input into frames whose heads are those of a client. */
static void make(struct buf *out, const uint8_t *data, size_t n)
{
	while (n >= 2) {
		uint8_t first = data[0] & 0x8f;
		size_t len = data[1] < 126 ? data[1] : data[1] == 126 ? 126 : 300;
		const uint8_t mask[4] = {data[0], data[1], 0x55, 0xaa};
		uint8_t head[4] = {first, (uint8_t)(0x80 | (len < 126 ? len : 126)),
		    (uint8_t)(len >> 8), (uint8_t)len};

		data += 2;
		n -= 2;
		if (len > n)
			len = n;
		/* A length that the payload does not have is a stream that ends early. */
		STORY_REQUIRE(buf_append(out, head, (head[1] & 127) == 126 ? 4 : 2) == 0);
		STORY_REQUIRE(buf_append(out, mask, 4) == 0);
		for (size_t i = 0; i < len; i++) {
			uint8_t byte = data[i] ^ mask[i % 4];

			STORY_REQUIRE(buf_append(out, &byte, 1) == 0);
		}
		data += len;
		n -= len;
	}
}

/*
 * wslay refuses long messages by their announced length, where we go on and may find another error
 * in what comes; it takes Closes that no endpoint may send (of one byte, or with a code that is
 * reserved); and it judges a Close before it is whole.
 */
static bool differs_by_right(const struct ws_story *ours, const struct ws_story *theirs)
{
	if (theirs->code == WS_TOO_BIG)
		return ours->text.len >= theirs->text.len;
	if (ours->text.len != theirs->text.len)
		return false;
	return ours->in_close || (ours->code == WS_PROTOCOL_ERROR && theirs->code != 0);
}

/* wslay judges a frame when some of its payload is there: it gets some. */
static void go_on(struct ws_story *s, const uint8_t *data, size_t n)
{
	struct buf longer;

	buf_free(&s->text);
	buf_init(&longer, STORY_MAX);
	STORY_REQUIRE(buf_append(&longer, data, n) == 0);
	for (int i = 0; i < 16; i++)
		STORY_REQUIRE(buf_append(&longer, "", 1) == 0);
	story_wslay(s, buf_head(&longer), longer.len);
	buf_free(&longer);
}

static void compare(const uint8_t *data, size_t n, size_t step)
{
	struct ws_story whole;
	struct ws_story theirs;

	story_ours(&whole, data, n, SIZE_MAX);
	for (int round = 0; round < 2; round++) {
		struct ws_story cut;

		story_ours(&cut, data, n, round == 0 ? 1 : step);
		STORY_REQUIRE(story_same(&whole, &cut));
		buf_free(&cut.text);
	}
	story_wslay(&theirs, data, n);
	if (theirs.code == 0 && whole.code != 0)
		go_on(&theirs, data, n);
	STORY_REQUIRE(story_same(&whole, &theirs) || differs_by_right(&whole, &theirs));
	buf_free(&theirs.text);
	buf_free(&whole.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf made;

	if (n < 1)
		return 0;
	if (!(data[0] & 1)) {
		compare(data + 1, n - 1, data[0] + 2U);
		return 0;
	}
	buf_init(&made, MADE_MAX);
	make(&made, data + 1, n - 1);
	if (made.len)
		compare(buf_head(&made), made.len, data[0] + 2U);
	buf_free(&made);
	return 0;
}
