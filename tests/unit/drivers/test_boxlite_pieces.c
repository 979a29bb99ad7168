/* Tests of the relayed stream: what is made into pieces comes out of them, and whatever is lost,
 * repeated, moved or damaged on the way is found, never passed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/pieces.h"
#include "wire/base64.h"

#define COUNT 6U
#define ROOM 65536U

/* A stream of pieces as an agent says it. */
struct said {
	uint8_t plain[ROOM];
	size_t plain_len;
	size_t plain_at[COUNT + 1];
	char text[ROOM];
	size_t text_len;
	size_t at[COUNT + 1]; /* where each piece's text begins */
};

static void say(
    struct said *s, struct piece_way *w, enum piece_kind kind, const void *bytes, size_t n)
{
	uint8_t piece[PIECE_TEXT_MAX];

	memcpy(piece + PIECE_HEAD_LEN, bytes, n);
	piece_seal(w, kind, piece, n);
	base64_encode(piece, PIECE_HEAD_LEN + n, s->text + s->text_len);
	s->text_len += base64_len(PIECE_HEAD_LEN + n);
	s->text[s->text_len++] = PIECE_END;
	s->text[s->text_len++] = '\n';
}

static void say_all(struct said *s)
{
	static const size_t sizes[COUNT] = {1, 2, 3, 24, 100, 61};
	struct piece_way w;

	piece_begin(&w);
	*s = (struct said){.text_len = 0};
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t n = 0; n < sizes[i]; n++)
			s->plain[s->plain_len + n] = (uint8_t)(i * 71 + n * 13);
		say(s, &w, PIECE_DATA, s->plain + s->plain_len, sizes[i]);
		s->plain_len += sizes[i];
		s->at[i + 1] = s->text_len;
		s->plain_at[i + 1] = s->plain_len;
	}
}

static struct pieces *begin(struct buf *out)
{
	struct pieces *p = malloc(sizeof(*p));

	assert_non_null(p);
	pieces_begin(p);
	buf_init(out, ROOM);
	return p;
}

static void end(struct pieces *p, struct buf *out)
{
	buf_free(out);
	free(p);
}

/* Takes the text, which is wrong: what came out before is the stream's beginning. */
static struct piece_fault take_wrong(const struct said *s, const char *text, size_t n)
{
	struct piece_fault fault;
	struct buf out;
	struct pieces *p = begin(&out);

	assert_int_equal(pieces_take(p, text, n, &out), -EPROTO);
	fault = p->fault;
	assert_int_not_equal(fault.wrong, PIECE_RIGHT);
	assert_true(out.len <= s->plain_len);
	if (out.len)
		assert_memory_equal(buf_head(&out), s->plain, out.len);
	/* And nothing more is taken, were it as right as can be. */
	n = out.len;
	assert_int_equal(pieces_take(p, s->text, s->text_len, &out), -EPROTO);
	assert_int_equal(out.len, n);
	end(p, &out);
	return fault;
}

static void test_cut_anywhere(void **state)
{
	struct said s;

	(void)state;
	say_all(&s);
	for (size_t cut = 0; cut <= s.text_len; cut++) {
		struct buf out;
		struct pieces *p = begin(&out);

		assert_int_equal(pieces_take(p, s.text, cut, &out), 0);
		assert_int_equal(pieces_take(p, s.text + cut, s.text_len - cut, &out), 0);
		assert_int_equal(out.len, s.plain_len);
		assert_memory_equal(buf_head(&out), s.plain, s.plain_len);
		end(p, &out);
	}
}

/* Whoever passes text on may break it into lines, or take the breaks out. */
static void test_line_breaks_count_for_nothing(void **state)
{
	char text[3 * ROOM];
	struct said s;
	struct buf out;
	struct pieces *p;
	size_t broken = 0;
	size_t bare = 0;

	(void)state;
	say_all(&s);
	p = begin(&out);
	for (size_t i = 0; i < s.text_len; i++) {
		text[broken++] = s.text[i];
		text[broken++] = i % 2 ? '\n' : '\r';
	}
	assert_int_equal(pieces_take(p, text, broken, &out), 0);
	assert_int_equal(out.len, s.plain_len);
	end(p, &out);

	p = begin(&out);
	for (size_t i = 0; i < s.text_len; i++) {
		if (s.text[i] != '\n')
			text[bare++] = s.text[i];
	}
	assert_int_equal(pieces_take(p, text, bare, &out), 0);
	assert_int_equal(out.len, s.plain_len);
	end(p, &out);
}

/* Any run of whole pieces but the last ones, whose loss only the next one tells. */
static void test_lost_pieces(void **state)
{
	char text[ROOM];
	struct said s;

	(void)state;
	say_all(&s);
	for (size_t from = 0; from < COUNT; from++) {
		for (size_t to = from + 1; to < COUNT; to++) {
			struct piece_fault fault;

			memcpy(text, s.text, s.at[from]);
			memcpy(text + s.at[from], s.text + s.at[to], s.text_len - s.at[to]);
			fault = take_wrong(&s, text, s.text_len - (s.at[to] - s.at[from]));
			assert_int_equal(fault.wrong, PIECE_LOST);
			assert_int_equal(fault.number, s.plain_at[to] - s.plain_at[from]);
		}
	}
}

/* Characters, from anywhere to anywhere, a piece later at most. */
static void test_lost_characters(void **state)
{
	char text[ROOM];
	struct said s;
	size_t last;

	(void)state;
	say_all(&s);
	last = s.at[COUNT - 1];
	for (size_t from = 0; from < last; from++) {
		for (size_t n = 1; from + n < last; n += 7) {
			if (n == 1 && s.text[from] == '\n')
				continue; /* that is no loss */
			memcpy(text, s.text, from);
			memcpy(text + from, s.text + from + n, s.text_len - from - n);
			(void)take_wrong(&s, text, s.text_len - n);
		}
	}
}

static void test_repeated_pieces(void **state)
{
	char text[2 * ROOM];
	struct said s;

	(void)state;
	say_all(&s);
	for (size_t from = 0; from < COUNT; from++) {
		for (size_t to = from + 1; to <= COUNT; to++) {
			struct piece_fault fault;

			memcpy(text, s.text, s.at[to]);
			memcpy(text + s.at[to], s.text + s.at[from], s.text_len - s.at[from]);
			fault = take_wrong(&s, text, s.text_len + s.at[to] - s.at[from]);
			assert_int_equal(fault.wrong, PIECE_REPEATED);
			assert_int_equal(fault.number, s.plain_at[to] - s.plain_at[from]);
		}
	}
}

static void test_pieces_out_of_order(void **state)
{
	char text[ROOM];
	struct said s;

	(void)state;
	say_all(&s);
	for (size_t i = 0; i + 1 < COUNT; i++) {
		size_t second = s.at[i + 2] - s.at[i + 1];
		struct piece_fault fault;

		memcpy(text, s.text, s.text_len);
		memcpy(text + s.at[i], s.text + s.at[i + 1], second);
		memcpy(text + s.at[i] + second, s.text + s.at[i], s.at[i + 1] - s.at[i]);
		fault = take_wrong(&s, text, s.text_len);
		assert_int_equal(fault.wrong, PIECE_LOST);
		assert_int_equal(fault.number, s.plain_at[i + 1] - s.plain_at[i]);
	}
}

/* Each bit of each character. One that makes a line break of another, or the end, is a loss. */
static void test_flipped_bits(void **state)
{
	struct said s;
	struct said t;

	(void)state;
	say_all(&s);
	for (size_t i = 0; i < s.at[COUNT - 1]; i++) {
		for (int bit = 0; bit < 8; bit++) {
			t = s;
			t.text[i] = (char)(t.text[i] ^ 1 << bit);
			if (s.text[i] == '\n' && t.text[i] == '\r')
				continue;
			(void)take_wrong(&s, t.text, t.text_len);
		}
	}
}

/* The whole of a piece is covered, also bits that base64 would let through. */
static void test_flipped_bits_of_a_piece(void **state)
{
	uint8_t piece[PIECE_HEAD_LEN + 40];
	struct piece_way sender;

	(void)state;
	piece_begin(&sender);
	memset(piece, 'x', sizeof(piece));
	piece_seal(&sender, PIECE_DATA, piece, 40);
	for (size_t i = 0; i < sizeof(piece) * 8; i++) {
		struct piece_way w;
		struct piece_head head;
		struct piece_fault fault;

		piece_begin(&w);
		piece[i / 8] = (uint8_t)(piece[i / 8] ^ 1U << i % 8);
		fault = piece_take_head(&w, piece, &head);
		if (fault.wrong == PIECE_RIGHT)
			fault = piece_take_data(&w, &head, piece + PIECE_HEAD_LEN, 40);
		assert_int_not_equal(fault.wrong, PIECE_RIGHT);
		assert_int_equal(w.offset, 0);
		piece[i / 8] = (uint8_t)(piece[i / 8] ^ 1U << i % 8);
	}
}

static void explain(const char *text, size_t n, const char *words)
{
	char why[160];
	struct buf out;
	struct pieces *p = begin(&out);

	assert_int_equal(pieces_take(p, text, n, &out), -EPROTO);
	pieces_explain(p, why, sizeof(why));
	assert_string_equal(why, words);
	end(p, &out);
}

/* Foreign text is known by its first characters: it may never come to an end. */
static void test_what_is_no_piece_is_said_at_once(void **state)
{
	const uint8_t newer[] = {(uint8_t)PIECE_MARK[0], (uint8_t)PIECE_MARK[1], PIECE_VERSION + 1};
	char text[4];

	(void)state;
	explain("[box", 4, "BoxLite's stream holds something other than what the agent said");
	explain("CAAAAEAA", 8, /* as an agent of before there were pieces begins */
	    "BoxLite's stream holds something other than what the agent said");
	base64_encode(newer, sizeof(newer), text);
	explain(text, sizeof(text),
	    "the agent in the box is another's: it relays in version 2, and not 1");
}

/* What comes again from the middle of a piece may look like the mark of another version. */
static void test_only_the_first_piece_is_of_another_version(void **state)
{
	const uint8_t newer[] = {(uint8_t)PIECE_MARK[0], (uint8_t)PIECE_MARK[1], PIECE_VERSION + 1};
	struct said s;

	(void)state;
	say_all(&s);
	base64_encode(newer, sizeof(newer), s.text + s.at[1]);
	assert_int_equal(take_wrong(&s, s.text, s.text_len).wrong, PIECE_DAMAGED);
}

static void test_a_piece_without_an_end(void **state)
{
	char *text = malloc(PIECE_CHARS + 1);
	struct said s;

	(void)state;
	assert_non_null(text);
	say_all(&s);
	memset(text, 'A', PIECE_CHARS + 1);
	memcpy(text, s.text, 4);
	explain(text, PIECE_CHARS + 1, "BoxLite's stream damaged what the agent said");
	free(text);
}

static void test_the_agents_own_complaint(void **state)
{
	static const struct {
		struct piece_fault fault;
		size_t len;
		const char *words;
	} cases[] = {
	    {{PIECE_LOST, 0, 77}, 16, "BoxLite's stream lost 77 bytes of what the agent was told"},
	    {{PIECE_REPEATED, 0, 5}, 16,
		"BoxLite's stream repeated 5 bytes of what the agent was told"},
	    {{PIECE_RIGHT, 0, 0}, 16,
		"BoxLite's stream holds something other than what the agent was told"},
	    {{PIECE_LOST, 0, 77}, 15, "BoxLite's stream damaged what the agent was told"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct said s = {.text_len = 0};
		struct piece_way w;

		piece_begin(&w);
		say(&s, &w, PIECE_FAULT, &cases[i].fault, cases[i].len);
		explain(s.text, s.text_len, cases[i].words);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut_anywhere),
	    cmocka_unit_test(test_line_breaks_count_for_nothing),
	    cmocka_unit_test(test_lost_pieces),
	    cmocka_unit_test(test_lost_characters),
	    cmocka_unit_test(test_repeated_pieces),
	    cmocka_unit_test(test_pieces_out_of_order),
	    cmocka_unit_test(test_flipped_bits),
	    cmocka_unit_test(test_flipped_bits_of_a_piece),
	    cmocka_unit_test(test_what_is_no_piece_is_said_at_once),
	    cmocka_unit_test(test_only_the_first_piece_is_of_another_version),
	    cmocka_unit_test(test_a_piece_without_an_end),
	    cmocka_unit_test(test_the_agents_own_complaint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
