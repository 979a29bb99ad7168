/* What sbxctl shows to people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "tools/cli.h"
#include "tools/cli_view.h"

static void test_ages(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {{-1, "0.0s"}, {0, "0.0s"}, {0.25, "0.2s"}, {59.9, "59.9s"}, {60, "1m00s"},
	    {184, "3m04s"}, {3599.9, "59m59s"}, {3600, "1h00m"}, {7500, "2h05m"}, {86400, "1d00h"},
	    {86400 * 400.0, "400d00h"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[16];

		cli_format_age(cases[i].seconds, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static void test_sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0"}, {1023, "1023"}, {1024, "1.0K"}, {1536, "1.5K"}, {10240, "10K"},
	    {1023 * 1024, "1023K"}, {1024 * 1024 - 1, "1.0M"}, {1572864, "1.5M"},
	    {5368709120, "5.0G"}, {UINT64_MAX, "16E"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[16];

		cli_format_bytes(cases[i].bytes, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static void test_control_characters_are_not_passed_on(void **state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_non_null(f);
	cli_put_text(f, "a\x1b[31m\nb\x7f\xc3\xa9");
	fclose(f);
	assert_string_equal(text, "a?[31m?b?\xc3\xa9");
	free(text);
}

static void test_a_box_of_the_table_as_json(void **state)
{
	struct reader_box b = {.slot = 3, .in_flight = 2};
	json_t *o;

	(void)state;
	strcpy(b.sup.token, "0123456789abcdef");
	/* Cut in the middle of a character, as a long name is. */
	strcpy(b.sup.user, "us\xc3");
	b.sup.state = SLOT_WARM;
	b.sup.flags = SLOT_FLAG_ANONYMOUS;
	b.sup.created_ns = 10 * NS_PER_S;
	b.work.exec_total = 9;
	o = cli_box_json(&b, 12 * NS_PER_S);
	assert_string_equal(cli_text_at(o, "box_id"), "0123456789abcdef");
	assert_string_equal(cli_text_at(o, "user_id"), "us");
	assert_true(json_is_null(json_object_get(o, "thread_id")));
	assert_true(json_is_null(json_object_get(o, "last_error")));
	assert_string_equal(cli_text_at(o, "state"), "warm");
	assert_int_equal(cli_int_at(o, "in_flight"), 2);
	assert_int_equal(cli_int_at(o, "commands_total"), 9);
	assert_true(json_number_value(json_object_get(o, "age_seconds")) == 2.0);
	json_decref(o);
	b.sup.flags = SLOT_FLAG_NO_USER;
	o = cli_box_json(&b, 0);
	assert_true(json_is_null(json_object_get(o, "user_id")));
	assert_true(json_is_string(json_object_get(o, "thread_id")));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ages),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_control_characters_are_not_passed_on),
	    cmocka_unit_test(test_a_box_of_the_table_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
