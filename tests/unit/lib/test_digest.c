/* Unit tests of lib/digest.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "lib/digest.h"

/* FIPS 180-2: "abc" and the 56-byte message. */
static void test_sha256(void **state)
{
	static const char message[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	const struct digest_part parts[] = {{"a", 1}, {NULL, 0}, {"bc", 2}};
	const struct digest_part one = {message, sizeof(message) - 1};
	uint8_t sum[DIGEST_LEN];
	char hex[2 * DIGEST_LEN + 1];

	(void)state;
	assert_int_equal(digest_sha256(parts, 3, sum), 0);
	digest_hex(sum, sizeof(sum), hex);
	assert_string_equal(
	    hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(digest_sha256(&one, 1, sum), 0);
	digest_hex(sum, sizeof(sum), hex);
	assert_string_equal(
	    hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	assert_int_equal(digest_sha256(NULL, 0, sum), 0);
	digest_hex(sum, 4, hex);
	assert_string_equal(hex, "e3b0c442");
}

static void test_random(void **state)
{
	uint8_t a[32] = {0};
	uint8_t b[32] = {0};

	(void)state;
	assert_int_equal(digest_random(a, sizeof(a)), 0);
	assert_int_equal(digest_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a)); /* fails once in 2^256 runs */
}

static void test_equal(void **state)
{
	(void)state;
	assert_true(digest_equal("abc", "abc", 3));
	assert_false(digest_equal("abc", "abd", 3));
	assert_false(digest_equal("xbc", "abc", 3));
	assert_true(digest_equal("abc", "abd", 2));
	assert_true(digest_equal("a", "b", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sha256),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
