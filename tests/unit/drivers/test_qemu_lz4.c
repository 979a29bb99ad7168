/* LZ4's legacy frames: what is whole is unpacked, what is not is refused, whatever it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/qemu/lz4.h"

#define MAGIC "\x02\x21\x4c\x18"

struct packed {
	uint8_t bytes[4096];
	size_t len;
};

static void put(struct packed *p, const void *data, size_t n)
{
	memcpy(p->bytes + p->len, data, n);
	p->len += n;
}

static void put_block(struct packed *p, const void *data, uint32_t n)
{
	put(p, &n, sizeof(n)); /* little endian, as this machine is */
	put(p, data, n);
}

static struct packed begin(void)
{
	struct packed p = {.len = 0};

	put(&p, MAGIC, 4);
	return p;
}

/* "abc", and 12 bytes more of it by a match that overlaps itself; then "xyz". */
static const uint8_t overlapping[] = {0x38, 'a', 'b', 'c', 3, 0, 0x30, 'x', 'y', 'z'};

static void test_literals_and_matches(void **state)
{
	struct packed p = begin();
	uint8_t out[64];

	(void)state;
	put_block(&p, overlapping, sizeof(overlapping));
	assert_int_equal(lz4_unpack(p.bytes, p.len, out, sizeof(out)), 18);
	assert_memory_equal(out, "abcabcabcabcabcxyz", 18);
}

/* Lengths of 15 and more go on in further bytes, both kinds. */
static void test_long_lengths(void **state)
{
	struct packed p = begin();
	uint8_t block[400] = {0xff, 255, 30}; /* 300 literals, a match of 4 + 15 + 255 + 1 */
	uint8_t out[1024];

	(void)state;
	memset(block + 3, 'l', 300);
	block[303] = 1;
	block[304] = 0;
	block[305] = 255;
	block[306] = 1;
	block[307] = 0x10;
	block[308] = '.';
	put_block(&p, block, 309);
	assert_int_equal(lz4_unpack(p.bytes, p.len, out, sizeof(out)), 300 + 275 + 1);
	for (int i = 0; i < 575; i++)
		assert_int_equal(out[i], 'l');
	assert_int_equal(out[575], '.');
}

/* Matches reach into no other block, frames may follow each other, and what is behind is ignored.
 */
static void test_blocks_and_frames(void **state)
{
	struct packed p = begin();
	uint8_t out[64];

	(void)state;
	put_block(&p, overlapping, sizeof(overlapping));
	put(&p, MAGIC, 4);
	put_block(&p, overlapping, sizeof(overlapping));
	put(&p, "\xff\xff\xff\x7f", 4); /* the kernel's build appends its size */
	put(&p, "more", 4);
	assert_int_equal(lz4_unpack(p.bytes, p.len, out, sizeof(out)), 36);
}

static void test_what_is_wrong_is_refused(void **state)
{
	static const struct {
		uint8_t block[8];
		uint32_t len;
	} bad[] = {
	    {{0x10, 'a', 2, 0}, 4}, /* a match before the beginning */
	    {{0x10, 'a', 0, 0}, 4}, /* of no distance */
	    {{0x20, 'a'}, 2},	    /* literals that are cut */
	    {{0x10, 'a', 1}, 3},    /* half a distance */
	    {{0xf0, 255, 255}, 3},  /* a length without an end */
	    {{0x1f, 'a', 1, 0, 255}, 5},
	    {{0x1f, 'a', 1, 0, 250}, 5}, /* more than there is room for */
	};
	uint8_t out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct packed p = begin();

		put_block(&p, bad[i].block, bad[i].len);
		assert_int_equal(lz4_unpack(p.bytes, p.len, out, sizeof(out)), -EBADMSG);
	}
	assert_int_equal(lz4_unpack((const uint8_t *)"no lz4", 6, out, sizeof(out)), -EBADMSG);
	assert_int_equal(lz4_unpack((const uint8_t *)"\x02\x21", 2, out, sizeof(out)), -EBADMSG);
}

/* Any cut and any flipped byte is survived: the sanitizers look on. */
static void test_damage_does_no_harm(void **state)
{
	struct packed p = begin();
	uint8_t out[32];

	(void)state;
	put_block(&p, overlapping, sizeof(overlapping));
	for (size_t n = 0; n <= p.len; n++)
		(void)lz4_unpack(p.bytes, n, out, sizeof(out));
	for (size_t i = 0; i < p.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			struct packed other = p;

			other.bytes[i] ^= (uint8_t)(1 << bit);
			(void)lz4_unpack(other.bytes, other.len, out, sizeof(out));
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_literals_and_matches),
	    cmocka_unit_test(test_long_lengths),
	    cmocka_unit_test(test_blocks_and_frames),
	    cmocka_unit_test(test_what_is_wrong_is_refused),
	    cmocka_unit_test(test_damage_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
