/* exec_output: what is kept, what is sent, what the guest gets credit for, and where it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/exec_output.h"

static uint8_t byte_at(size_t i)
{
	return (uint8_t)('a' + i * 7 % 26);
}

/* Adds the bytes of a known sequence from `at` on. Returns where it goes on. */
static size_t add(struct exec_output *o, size_t at, size_t n)
{
	uint8_t *p = malloc(n);

	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = byte_at(at + i);
	assert_int_equal(exec_output_add(o, p, n), 0);
	free(p);
	return at + n;
}

/* Takes everything that there is, which is to be the sequence from `at` on. Returns the credit. */
static size_t take(struct exec_output *o, size_t *at)
{
	const uint8_t *p;
	size_t credit = 0;
	size_t n;

	while ((n = exec_output_next(o, true, &p)) > 0) {
		assert_true(n <= EXEC_PIECE);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], byte_at(*at + i));
		*at += n;
		credit += exec_output_sent(o, n);
	}
	return credit;
}

static void test_all_is_sent_once(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;
	size_t credit = 0;

	(void)state;
	exec_output_init(&o);
	for (int i = 0; i < 100; i++) {
		in = add(&o, in, 50021);
		assert_int_equal(exec_output_left(&o), in - out);
		credit += take(&o, &out);
		assert_int_equal(out, in);
		assert_int_equal(credit, in);
		assert_true(o.kept.len <= EXEC_KEEP);
	}
	exec_output_free(&o);
}

/* Nobody is there: all of it waits, and no credit is given. */
static void test_nothing_is_dropped_before_the_first_client(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;

	(void)state;
	exec_output_init(&o);
	while (in < EXEC_KEEP)
		in = add(&o, in, 4096);
	assert_int_equal(exec_output_left(&o), EXEC_KEEP);
	assert_int_equal(take(&o, &out), EXEC_KEEP);
	assert_int_equal(out, EXEC_KEEP);
	exec_output_free(&o);
}

/* A client that does not read: a whole window waits for it. */
static void test_a_window_waits(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;

	(void)state;
	exec_output_init(&o);
	in = add(&o, in, EXEC_KEEP);
	(void)take(&o, &out);
	exec_output_rewind(&o); /* and before it, what is shown again */
	while (in < EXEC_KEEP + AGENT_WINDOW)
		in = add(&o, in, 65536);
	out = 0;
	assert_int_equal(take(&o, &out), AGENT_WINDOW);
	assert_int_equal(out, in);
	assert_int_equal(o.kept.len, EXEC_KEEP);
	exec_output_free(&o);
}

static void test_without_a_client_the_oldest_goes(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;

	(void)state;
	exec_output_init(&o);
	in = add(&o, in, 1000);
	(void)take(&o, &out);
	assert_int_equal(exec_output_leave(&o), 0);
	for (int i = 0; i < 40; i++) {
		in = add(&o, in, 10000);
		assert_int_equal(exec_output_leave(&o), 10000);
		assert_true(o.kept.len <= EXEC_KEEP);
	}
	assert_int_equal(o.lost, 400000 - EXEC_KEEP);
	out = in - EXEC_KEEP;
	assert_int_equal(take(&o, &out), 0); /* the guest has its credit already */
	assert_int_equal(out, in);
	exec_output_free(&o);
}

/* What a client has had is not sent again, unless it is asked for. */
static void test_resume_and_rewind(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;

	(void)state;
	exec_output_init(&o);
	in = add(&o, in, 300000);
	(void)take(&o, &out);
	assert_int_equal(exec_output_leave(&o), 0);
	in = add(&o, in, 500);
	assert_int_equal(exec_output_leave(&o), 500);
	assert_int_equal(exec_output_left(&o), 500);
	exec_output_rewind(&o);
	assert_int_equal(exec_output_left(&o), EXEC_KEEP);
	out = in - EXEC_KEEP;
	(void)take(&o, &out);
	assert_int_equal(out, in);
	assert_int_equal(o.lost, 0);
	exec_output_free(&o);
}

/* ---- characters ---- */

static const struct {
	const char *bytes;
	size_t n;
	size_t next; /* that may be sent */
} tails[] = {
    {"abc", 3, 3},
    {"ab\xc3", 3, 2},
    {"ab\xc3\xa9", 4, 4},
    {"\xe2", 1, 0},
    {"\xe2\x82", 2, 0},
    {"\xe2\x82\xac", 3, 3},
    {"x\xf0\x9f\x98", 4, 1},
    {"x\xf0\x9f\x98\x80", 5, 5},
    {"\xff", 1, 1},	    /* no character begins so */
    {"\x80\x80\x80", 3, 3}, /* nor goes on so */
    {"\xe2(", 2, 2},
    {"\xed\xa0", 2, 2}, /* would be a surrogate */
    {"\xc0", 1, 1},
};

static void test_characters_are_not_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct exec_output o;
		const uint8_t *p = NULL;

		exec_output_init(&o);
		assert_int_equal(
		    exec_output_add(&o, (const uint8_t *)tails[i].bytes, tails[i].n), 0);
		if (exec_output_next(&o, false, &p) != tails[i].next)
			fail_msg("tail %zu", i);
		assert_int_equal(exec_output_next(&o, true, &p), tails[i].n);
		exec_output_free(&o);
	}
}

/* A character that lies across two pieces, whichever way it lies. */
static void test_pieces_end_between_characters(void **state)
{
	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		struct exec_output o;
		const uint8_t *p;
		size_t n;

		exec_output_init(&o);
		for (size_t i = 0; i < shift; i++)
			assert_int_equal(exec_output_add(&o, (const uint8_t *)"x", 1), 0);
		while (o.kept.len < 3 * EXEC_PIECE)
			assert_int_equal(
			    exec_output_add(&o, (const uint8_t *)"\xf0\x9f\x98\x80", 4), 0);
		n = exec_output_next(&o, true, &p);
		assert_true(n > EXEC_PIECE - 4 && n <= EXEC_PIECE);
		assert_int_equal((n - shift) % 4, 0);
		exec_output_free(&o);
	}
}

/* What is left of a character whose beginning was dropped is not shown. */
static void test_torn_character(void **state)
{
	struct exec_output o;
	const uint8_t *p;

	(void)state;
	exec_output_init(&o);
	assert_int_equal(exec_output_add(&o, (const uint8_t *)"\xf0\x9f\x98\x80", 4), 0);
	(void)exec_output_leave(&o);
	for (size_t n = 0; n < EXEC_KEEP - 2; n++)
		assert_int_equal(exec_output_add(&o, (const uint8_t *)"y", 1), 0);
	(void)exec_output_leave(&o); /* two of the four bytes would have to stay */
	assert_true(exec_output_next(&o, true, &p) > 0);
	assert_int_equal(p[0], 'y');
	assert_int_equal(o.lost, 4);
	exec_output_free(&o);
}

/* More than a window waits when it is yielded, and the memory goes when it is taken. */
static void test_yield(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;

	(void)state;
	exec_output_init(&o);
	for (int i = 0; i < 8; i++) {
		in = add(&o, in, AGENT_WINDOW / 2);
		in = add(&o, in, AGENT_WINDOW / 2);
		assert_int_equal(exec_output_yield(&o), AGENT_WINDOW);
		assert_int_equal(exec_output_settle(&o), 0);
	}
	assert_int_equal(exec_output_left(&o), 8U * AGENT_WINDOW);
	assert_int_equal(take(&o, &out), 0); /* it had its credit */
	assert_int_equal(out, in);
	assert_int_equal(exec_output_settle(&o), 8U * AGENT_WINDOW);
	assert_int_equal(exec_output_settle(&o), 0);
	assert_true(o.kept.cap <= 2 * EXEC_KEEP);
	in = add(&o, in, 65536); /* and it goes on */
	assert_int_equal(take(&o, &out), 65536);
	assert_int_equal(out, in);
	exec_output_free(&o);
}

static void test_pack(void **state)
{
	struct exec_output o;
	size_t in = 0;
	size_t out = 0;

	(void)state;
	exec_output_init(&o);
	exec_output_pack(&o); /* of nothing */
	assert_null(o.kept.data);
	in = add(&o, in, 300000);
	(void)take(&o, &out);
	in = add(&o, in, 100);
	(void)exec_output_leave(&o);
	exec_output_pack(&o);
	assert_true(o.kept.cap < EXEC_KEEP + 4096);
	(void)take(&o, &out);
	assert_int_equal(out, in);
	exec_output_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_is_sent_once),
	    cmocka_unit_test(test_nothing_is_dropped_before_the_first_client),
	    cmocka_unit_test(test_a_window_waits),
	    cmocka_unit_test(test_without_a_client_the_oldest_goes),
	    cmocka_unit_test(test_resume_and_rewind),
	    cmocka_unit_test(test_characters_are_not_cut),
	    cmocka_unit_test(test_pieces_end_between_characters),
	    cmocka_unit_test(test_torn_character),
	    cmocka_unit_test(test_yield),
	    cmocka_unit_test(test_pack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
