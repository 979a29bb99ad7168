/* The configuration file: what YAML is taken, variables in it, and what is refused where. */
#include "tests/unit/supervisor/config_fixture.h"

#include <errno.h>

static const struct {
	const char *yaml;
	unsigned int line;
	const char *says;
} refused[] = {
    {"replicaz: 3\n", 1, "unknown key 'replicaz'; did you mean 'replicas'?"},
    {"# x\nwhatever: 3\n", 2, "unknown key 'whatever'; sbxd --check-config"},
    {"sandbox:\n  mounts: []\n", 2, "unknown key 'mounts'"},
    {"use: x\n", 1, "unknown key 'use'"},
    {"qemu:\n  bnary: /x\n", 2, "unknown key 'qemu.bnary'; did you mean 'qemu.binary'?"},
    {"namespace: {replicas: 3}\n", 1, "unknown key 'namespace.replicas'"},
    {"replicas: 3\nreplicas: 4\n", 2, "replicas: is given twice, first in line 1"},
    {"replicas: 3\nsandbox:\n  replicas: 3\n", 3, "replicas: is given twice, first in line 1"},
    {"sandbox: {}\nsandbox: {}\n", 2, "sandbox: is given twice, first in line 1"},
    {"qemu: {cpu: a}\nqemu: {cpu: b}\n", 2, "qemu.cpu: is given twice"},
    {"environment: {}\nenvironment: {}\n", 2, "environment: is given twice"},
    {"sandbox:\n  sandbox: {}\n", 2, "unknown key 'sandbox'"},
    {"sandbox: 3\n", 1, "sandbox: must be a mapping"},
    {"qemu: [a]\n", 1, "qemu: must be a mapping"},
    {"- a\n", 1, "the document: must be a mapping"},
    {"text\n", 1, "the document: must be a mapping"},
    {"? [a]\n: b\n", 1, "a key must be text"},
    {"image: &a host\n", 1, "anchors and aliases are not allowed"},
    {"image: host\ndriver: *a\n", 2, "anchors and aliases are not allowed"},
    {"sandbox: &a {}\n", 1, "anchors and aliases are not allowed"},
    {"sandbox:\n  use: &a [x]\n", 2, "anchors and aliases are not allowed"},
    {"image: !!str host\n", 1, "tags are not allowed"},
    {"environment: !x {}\n", 1, "tags are not allowed"},
    {"image: host\n---\nimage: host\n", 2, "only one document is allowed"},
    {"image: \"a\\0b\"\n", 1, "a value holds a NUL"},
    {"sandbox:\n  use: [a\n  x: b\n", 3, "this is no YAML"},
    {"image: 'a\n", 2, "this is no YAML"},
    {"replicas: 3: 4\n", 1, "this is no YAML"},
    {"\tx: y\n", 1, "this is no YAML"},
    {"image: host\ndriver: \xff\n", 2, "this is no UTF-8 text"},
    {"image: host\n\ndriver: a\x01\n", 3, "this is no UTF-8 text"},
    {"image: $SBX_NO_SUCH\n", 1, "the variable SBX_NO_SUCH is not set"},
    {"image: a${SBX_NO_SUCH}b\n", 1, "the variable SBX_NO_SUCH is not set"},
    {"image: ${}\n", 1, "${ must be followed by a name and }"},
    {"image: '${A'\n", 1, "${ must be followed by a name and }"},
    {"environment:\n  A: x\n  B: $SBX_NO_SUCH\n", 3, "the variable SBX_NO_SUCH is not set"},
};

static void test_refused(void **state)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *const parts[] = {refused[i].says, NULL};

		fixture_refused(*state, refused[i].yaml, refused[i].line, parts);
	}
}

static void test_nothing_is_fine(void **state)
{
	static const char *const empty[] = {"", "# nothing\n", "---\n", "sandbox:\n",
	    "sandbox:\n  environment:\n  qemu:\n", "{}\n", "\xef\xbb\xbfreplicas: 3\n"};

	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		struct config c;
		struct err err = {0};

		if (fixture_load(*state, empty[i], NULL, &c, &err) != 0)
			fail_msg("%zu: %s", i, err.text);
		assert_int_equal(c.replicas, 3);
		config_free(&c);
	}
}

static void test_a_deerflow_block_is_taken(void **state)
{
	static const char yaml[] = "sandbox:\n"
				   "  use: some.module:Provider\n"
				   "  image: host\n"
				   "  port: 8080\n"
				   "  ownership: {type: redis, more: [1, {a: b}]}\n"
				   "  replicas: 5\n"
				   "  idle_timeout: 300\n"
				   "  health_check_skip_seconds: 2.5\n"
				   "  bash_output_max_chars: 20000\n"
				   "  environment:\n"
				   "    API_KEY: $SBX_TEST_KEY\n"
				   "    DEBUG: false\n"
				   "    PORT: 8080\n"
				   "    EMPTY: ''\n";
	static const char expected[] = "API_KEY=s3cret\0DEBUG=false\0PORT=8080\0EMPTY=";
	char *env[] = {"SBX_TEST_KEY=s3cret", NULL};
	struct config c;
	struct err err = {0};

	assert_int_equal(fixture_load(*state, yaml, env, &c, &err), 0);
	assert_int_equal(c.replicas, 5);
	assert_int_equal(c.health_check_skip_ns, 2500000000);
	assert_int_equal(c.environment.count, 4);
	assert_int_equal(c.environment.len, sizeof(expected));
	assert_memory_equal(c.environment.data, expected, sizeof(expected));
	config_free(&c);
}

static void test_variables_are_replaced_everywhere(void **state)
{
	char *env[] = {"A=al pha", "N=5", "EMPTY=", "A_B=no", "DOLLAR=$A", NULL};
	struct config c;
	struct err err = {0};

	assert_int_equal(
	    fixture_load(*state, "image: \"x$A-${N}y$EMPTY$$A $ $5 $DOLLAR\"\nreplicas: $N\n", env,
		&c, &err),
	    0);
	/* What a variable holds is not looked at again. */
	assert_string_equal(c.image, "xal pha-5y$A $ $5 $A");
	assert_int_equal(c.replicas, 5);
	config_free(&c);
}

static void test_replaced_values_are_checked(void **state)
{
	char *env[] = {"N=0", NULL};
	struct config c;
	struct err err;

	assert_int_equal(fixture_load(*state, "\nreplicas: $N\n", env, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2: replicas: '0' is not allowed"));
}

static void test_too_large_a_file_is_refused(void **state)
{
	const struct fixture *f = *state;
	const struct config_sources src = {.path = f->path};
	size_t size = 1U << 20;
	char *bytes = malloc(size + 1);
	struct config c;
	struct err err;

	assert_non_null(bytes);
	memset(bytes, '#', size + 1);
	fixture_write(f, bytes, size);
	assert_int_equal(config_load(&src, &c, &err), 0);
	config_free(&c);
	fixture_write(f, bytes, size + 1);
	assert_int_equal(config_load(&src, &c, &err), -EFBIG);
	assert_non_null(strstr(err.text, "larger than 1048576 bytes"));
	free(bytes);
}

static void test_only_a_regular_file_is_read(void **state)
{
	const struct config_sources src = {.path = "/dev/zero"};
	const struct config_sources dir = {.path = "/"};
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(config_load(&src, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "must be a regular file"));
	assert_int_equal(config_load(&dir, &c, &err), -EINVAL);
}

static void test_too_large_an_environment_is_refused(void **state)
{
	size_t size = CONFIG_ENVIRONMENT_MAX + 64;
	char *yaml = malloc(size);
	struct config c;
	struct err err = {0};
	int at;

	assert_non_null(yaml);
	memset(yaml, 'x', size);
	at = sprintf(yaml, "environment:\n  A: ");
	yaml[at] = 'x';
	yaml[at + (int)CONFIG_ENVIRONMENT_MAX - 3] = '\0';
	assert_int_equal(fixture_load(*state, yaml, NULL, &c, &err), 0);
	assert_int_equal(c.environment.len, CONFIG_ENVIRONMENT_MAX);
	config_free(&c);
	yaml[at + (int)CONFIG_ENVIRONMENT_MAX - 3] = 'x';
	yaml[at + (int)CONFIG_ENVIRONMENT_MAX - 2] = '\0';
	assert_int_equal(fixture_load(*state, yaml, NULL, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2: environment: A: more than 65536 bytes"));
	free(yaml);
}

static void test_deep_nesting_is_refused(void **state)
{
	char yaml[128] = "sandbox:\n  use: ";
	const char *const parts[] = {"nested too deeply", NULL};

	memset(yaml + strlen(yaml), '[', 40);
	fixture_refused(*state, yaml, 2, parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_nothing_is_fine),
	    cmocka_unit_test(test_a_deerflow_block_is_taken),
	    cmocka_unit_test(test_variables_are_replaced_everywhere),
	    cmocka_unit_test(test_replaced_values_are_checked),
	    cmocka_unit_test(test_too_large_a_file_is_refused),
	    cmocka_unit_test(test_only_a_regular_file_is_read),
	    cmocka_unit_test(test_too_large_an_environment_is_refused),
	    cmocka_unit_test(test_deep_nesting_is_refused),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
