/* The command line of sbxd. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/options.h"

#define ARGS_MAX 24

static int parse(struct options *o, struct err *err, char *const *args)
{
	char *argv[ARGS_MAX] = {(char[]){"sbxd"}};
	int argc = 1;

	while (*args)
		argv[argc++] = *args++;
	return options_parse(argc, argv, o, err);
}

#define PARSE(o, err, ...) parse(o, err, (char *const[]){__VA_ARGS__, NULL})

static void test_nothing_given(void **state)
{
	char *const none[] = {NULL};
	struct options o;
	struct err err;

	(void)state;
	assert_int_equal(parse(&o, &err, none), 0);
	assert_null(o.config_path);
	assert_null(o.runtime_dir);
	assert_null(o.state_dir);
	assert_string_equal(o.instance, "default");
	assert_false(o.check_config || o.version || o.help);
	assert_int_equal(o.log_format, LOG_TEXT);
	assert_int_equal(o.log_level, LOG_INFO);
	assert_int_equal(o.override_count, 0);
}

static void test_everything_given(void **state)
{
	struct options o;
	struct err err = {0};

	(void)state;
	assert_int_equal(
	    PARSE(&o, &err, "--config", "c", "--runtime-dir=r", "--state-dir", "s", "--instance",
		"demo", "--driver", "namespace", "--image", "host", "--listen-tcp", "127.0.0.1:1",
		"--token-file", "/t", "--log-format=json", "--log-level=debug", "--check-config",
		"--version", "--help"),
	    0);
	assert_string_equal(o.config_path, "c");
	assert_string_equal(o.runtime_dir, "r");
	assert_string_equal(o.state_dir, "s");
	assert_string_equal(o.instance, "demo");
	assert_true(o.check_config && o.version && o.help);
	assert_int_equal(o.log_format, LOG_JSON);
	assert_int_equal(o.log_level, LOG_DEBUG);
	assert_int_equal(o.override_count, 4);
	assert_string_equal(o.overrides[0].flag, "--driver");
	assert_string_equal(o.overrides[0].key, "driver");
	assert_string_equal(o.overrides[0].value, "namespace");
	assert_string_equal(o.overrides[3].key, "token_file");
}

static void test_the_last_of_several_counts(void **state)
{
	struct options o;
	struct err err;

	(void)state;
	assert_int_equal(
	    PARSE(&o, &err, "--image", "a", "--driver=qemu", "--image", "b", "--image=c"), 0);
	assert_int_equal(o.override_count, 2);
	assert_string_equal(o.overrides[0].value, "c");
}

static const struct {
	char *args[4];
	const char *says;
} wrong[] = {
    {{"--no-such"}, "unknown option --no-such"},
    {{"-x"}, "unknown option -x"},
    {{"--config"}, "--config needs a value"},
    {{"--config", ""}, "--config: '' is not allowed"},
    {{"--runtime-dir="}, "--runtime-dir: '' is not allowed"},
    {{"--state-dir="}, "--state-dir: '' is not allowed"},
    {{"--instance", "Demo"}, "--instance: 'Demo' is not allowed; give NAME: 1 to 31"},
    {{"--instance", ""}, "--instance: ''"},
    {{"--instance", "01234567890123456789012345678901"}, "1 to 31"},
    {{"--log-format", "xml"}, "give FORMAT: text or json"},
    {{"--log-level", "loud"}, "give LEVEL: debug, info, warn or error"},
    {{"--driver"}, "--driver needs a value"},
    {{"--image"}, "--image needs a value"},
    {{"--listen-tcp"}, "--listen-tcp needs a value"},
    {{"--token-file"}, "--token-file needs a value"},
    {{"--check-config=yes"}, "--check-config takes no value"},
    {{"start"}, "unexpected argument 'start'"},
    {{"--help", "x"}, "unexpected argument 'x'"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct options o = {.instance = "untouched"};
		struct err err = {0};

		assert_int_equal(parse(&o, &err, wrong[i].args), -EINVAL);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("says '%s', not '%s'", err.text, wrong[i].says);
		assert_string_equal(o.instance, "untouched");
	}
}

static void test_usage_names_every_option(void **state)
{
	static const char *const flags[] = {"--config", "--runtime-dir", "--state-dir",
	    "--instance", "--driver", "--image", "--listen-tcp", "--token-file", "--log-format",
	    "--log-level", "--check-config", "--version", "--help"};
	struct buf text;

	(void)state;
	buf_init(&text, 65536);
	assert_int_equal(options_usage(&text), 0);
	assert_int_equal(buf_terminate(&text), 0);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		assert_non_null(strstr((const char *)buf_head(&text), flags[i]));
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_given),
	    cmocka_unit_test(test_everything_given),
	    cmocka_unit_test(test_the_last_of_several_counts),
	    cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_usage_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
