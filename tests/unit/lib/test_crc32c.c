/* Tests of CRC32C against the vectors of RFC 3720, and of its ways against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "lib/crc32c.h"

/* RFC 3720, B.4: in the order in which the bytes are sent, lowest first. */
static void test_vectors(void **state)
{
	crc32c_fn *const ways[] = {crc32c_plain, crc32c_pick()};
	uint8_t bytes[32];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(ways[i](0, bytes, 32), 0x8a9136aaU);
		memset(bytes, 0xff, sizeof(bytes));
		assert_int_equal(ways[i](0, bytes, 32), 0x62a8ab43U);
		for (size_t n = 0; n < 32; n++)
			bytes[n] = (uint8_t)n;
		assert_int_equal(ways[i](0, bytes, 32), 0x46dd794eU);
		assert_int_equal(ways[i](0, "123456789", 9), 0xe3069283U);
		assert_int_equal(ways[i](0, NULL, 0), 0);
	}
}

/* Of any length, begun anywhere, in one go and in two. */
static void test_ways_agree(void **state)
{
	crc32c_fn *fast = crc32c_pick();
	uint8_t bytes[96];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 + 13);
	for (size_t from = 0; from < 9; from++) {
		for (size_t n = 0; from + n <= sizeof(bytes); n++) {
			uint32_t crc = crc32c_plain(0, bytes + from, n);

			assert_int_equal(fast(0, bytes + from, n), crc);
			assert_int_equal(
			    fast(fast(0, bytes + from, n / 3), bytes + from + n / 3, n - n / 3),
			    crc);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_ways_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
