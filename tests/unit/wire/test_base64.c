/* Unit tests of wire/base64.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "wire/json.h"

/* RFC 4648, section 10. */
static void test_vectors(void **state)
{
	static const struct {
		const char *plain;
		const char *coded;
	} rows[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
	    {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}, {"\xff\xfb\xf0\xfe", "//vw/g=="},
	    {"\xfb\xef\xbe", "++++"}};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].plain);
		size_t len = 99;
		uint8_t *back;

		assert_int_equal(base64_len(n), strlen(rows[i].coded));
		base64_encode((const uint8_t *)rows[i].plain, n, out);
		assert_memory_equal(out, rows[i].coded, strlen(rows[i].coded));
		back = base64_decode(rows[i].coded, strlen(rows[i].coded), &len);
		assert_non_null(back);
		assert_int_equal(len, n);
		assert_memory_equal(back, rows[i].plain, n);
		free(back);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {"Z", "Zg", "Zg=", "Zm9", "=",
	    "====", "Z===", "Zg==Zg==", "Zm8=Zm9v", "Zg=a", "Zh==", "Zm9=", "Zm 9", "Zm9v\n",
	    "Zm9-", "Zm9_", "Zm9\xff", "Z!9v"};
	size_t len = 99;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = 0;
		if (base64_decode(bad[i], strlen(bad[i]), &len))
			fail_msg("\"%s\" was taken", bad[i]);
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(len, 99);
	assert_null(base64_decode("Zm\0v", 4, &len));
}

static void test_round_trip(void **state)
{
	uint8_t s[256 + 2];
	char out[400];

	(void)state;
	for (size_t i = 0; i < sizeof(s); i++)
		s[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof(s); n++) {
		size_t len = 0;
		uint8_t *back;

		base64_encode(s, n, out);
		back = base64_decode(out, base64_len(n), &len);
		assert_non_null(back);
		assert_int_equal(len, n);
		assert_memory_equal(back, s, n);
		free(back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
