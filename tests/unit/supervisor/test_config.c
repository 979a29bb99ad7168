/* Every key of the configuration: its default, its wrong values, and who wins. */
#include "tests/unit/supervisor/config_fixture.h"

#include <errno.h>

#include "lib/clock.h"

/* Wrong values; each must be refused in its line, naming the key and what is allowed. */
static const struct {
	const char *key;
	const char *value;
	const char *says;
} wrong[] = {
    {"driver", "docker", "'docker' is not allowed; give auto, boxlite, qemu, namespace"},
    {"driver", "\"\"", "give auto, boxlite"},
    {"driver", "[qemu]", "a list or mapping is not allowed; give auto"},
    {"image", "\"\"", "give text of 1 to 127 bytes"},
    {"image", "\"a\\nb\"", "without control characters"},
    {"image", "{a: b}", "a list or mapping"},
    {"image", "~", "has no value"},
    {"memory_mib", "15", "'15' is not allowed; give a whole number from 16 to 1048576"},
    {"memory_mib", "1048577", "from 16 to 1048576"},
    {"memory_mib", "1e3", "a whole number"},
    {"memory_mib", "64.0", "a whole number"},
    {"memory_mib", "0x40", "a whole number"},
    {"memory_mib", "-64", "a whole number"},
    {"memory_mib", "99999999999999999999999", "a whole number"},
    {"cpus", "1.0001", "a number (at most 3 decimals) from 0 to 1024"},
    {"cpus", "1024.001", "from 0 to 1024"},
    {"cpus", "-1", "from 0 to 1024"},
    {"cpus", "1.", "a number"},
    {"cpus", ".5", "a number"},
    {"cpus", "two", "'two' is not allowed"},
    {"disk_mib", "0", "from 1 to 16777216"},
    {"disk_mib", "16777217", "from 1 to 16777216"},
    {"pids_max", "15", "from 16 to 4194304"},
    {"pids_max", "many", "from 16 to 4194304"},
    {"environment", "[A]", "must be a mapping"},
    {"environment", "text", "must be a mapping"},
    {"environment", "{1A: x}", "'1A' is no variable name"},
    {"environment", "{\"A=B\": x}", "is no variable name"},
    {"environment", "{\"\": x}", "is no variable name"},
    {"environment", "{A: }", "give text"},
    {"environment", "{A: [x]}", "give text"},
    {"environment", "{A: 1, A: 2}", "A is given twice"},
    {"replicas", "0", "from 1 to 16384"},
    {"replicas", "16385", "from 1 to 16384"},
    {"replicas", "", "has no value"},
    {"replica_policy", "hard", "give soft, reject, wait, burst"},
    {"replica_policy", "Soft", "give soft, reject, wait, burst"},
    {"burst_limit", "-1", "from 0 to 16384"},
    {"acquire_timeout", "-0.1", "seconds, as a number from 0 to 86400"},
    {"acquire_timeout", "60s", "'60s' is not allowed"},
    {"prewarm", "1.5", "a whole number from 0 to 16384"},
    {"prewarm", "4", "4 is more than replicas (3)"},
    {"idle_timeout", "31622401", "from 0 to 31622400"},
    {"idle_timeout", "never", "seconds"},
    {"active_idle_timeout", "nan", "seconds"},
    {"active_idle_timeout", "inf", "seconds"},
    {"health_check_skip_seconds", "86400.5", "from 0 to 86400"},
    {"health_check_skip_seconds", "0.0000000001", "seconds"},
    {"health_check_timeout", "0", "from 0.001 to 600"},
    {"health_check_timeout", "601", "from 0.001 to 600"},
    {"boot_timeout", "0", "from 0.001 to 86400"},
    {"max_concurrent_boots", "0", "from 1 to 1024"},
    {"max_concurrent_boots", "1025", "from 1 to 1024"},
    {"orphan_grace", "true", "from 0 to 86400"},
    {"max_boxes", "0", "from 1 to 16384"},
    {"max_boxes", "16385", "from 1 to 16384"},
    {"network", "bridge", "give none, user"},
    {"network", "user", "not available yet"},
    {"admin_group", "[wheel]", "a list or mapping"},
    {"admin_group", "0123456789012345678901234567890123456789012345678901234567890123",
	"at most 63 bytes"},
    {"listen_tcp", "localhost:80", "give 127.0.0.1:PORT or [::1]:PORT"},
    {"listen_tcp", "\"[127.0.0.1]:80\"", "give 127.0.0.1:PORT"},
    {"listen_tcp", "\"[::1%lo]:80\"", "give 127.0.0.1:PORT"},
    {"listen_tcp", "\"::1:80\"", "give 127.0.0.1:PORT"},
    {"listen_tcp", "\"[:80\"", "give 127.0.0.1:PORT"},
    {"listen_tcp", "\":80\"", "give 127.0.0.1:PORT"},
    {"listen_tcp", "127.0.0.1", "give 127.0.0.1:PORT"},
    {"listen_tcp", "\"127.0.0.1:\"", "give 127.0.0.1:PORT"},
    {"listen_tcp", "127.0.0.1:-1", "PORT from 0 (one that is free) to 65535"},
    {"listen_tcp", "127.0.0.1:65536", "to 65535"},
    {"listen_tcp", "127.0.0.1:80.5", "to 65535"},
    {"listen_tcp", "127.0.0.1:8080", "needs token_file"},
    {"listen_tcp_public", "yes", "'yes' is not allowed; give false, true"},
    {"listen_tcp_public", "1", "give false, true"},
    {"token_file", "relative", "an absolute path of at most 255 bytes"},
    {"token_file", "/etc/token", "is of no use without listen_tcp"},
    {"limits.head_bytes", "1023", "a whole number from 1024 to 65535"},
    {"limits.head_bytes", "65536", "from 1024 to 65535"},
    {"limits.body_bytes", "16777217", "from 1024 to 16777216"},
    {"limits.json_depth", "7", "from 8 to 128"},
    {"limits.json_depth", "129", "from 8 to 128"},
    {"limits.connections", "65537", "from 0 to 65536"},
    {"limits.tcp_connections", "0", "from 1 to 65536"},
    {"limits.connection_idle_timeout", "2592001", "seconds, as a number from 0 to 2592000"},
    {"limits.box_connections", "0", "from 1 to 256"},
    {"limits.box_connections", "257", "from 1 to 256"},
    {"limits.event_streams", "0", "from 1 to 1024"},
    {"limits.run_body_bytes", "268435457", "from 1024 to 268435456"},
    {"limits.exec_body_bytes", "1023", "from 1024 to 268435456"},
    {"limits.run_output_bytes", "1", "from 1024 to 268435456"},
    {"limits.file_bytes", "0", "a whole number from 1 to 1099511627776"},
    {"limits.file_bytes", "1.5", "a whole number"},
    {"limits.file_bytes", "1099511627777", "from 1 to 1099511627776"},
    {"limits.box_executions", "0", "from 1 to 192"},
    {"limits.box_executions", "193", "from 1 to 192"},
    {"limits.execution_detach_grace", "-1", "from 0 to 86400"},
    {"limits.execution_detach_grace", "86401", "from 0 to 86400"},
    {"limits.operation_stall_timeout", "-1", "from 0 to 86400"},
    {"limits.operation_stall_timeout", "86401", "from 0 to 86400"},
    {"limits.execution_keep_seconds", "86400.001", "from 0 to 86400"},
    {"images.cache_mib", "0", "a whole number from 1 to"},
    {"images.pull_timeout", "0.5", "from 1 to 86400"},
    {"images.auth_file", "auth.json", "absolute path"},
    {"images.insecure_registries", "\"a\\nb\"", "control"},
    {"namespace.uid_base", "0", "from 65536 to"},
    {"namespace.uid_base", "4294836223", "go past the last uid"},
    {"qemu.binary", "qemu-system-x86_64", "an absolute path"},
    {"qemu.kernel", "[]", "a list or mapping"},
    {"qemu.modules", "modules", "an absolute path"},
    {"qemu.accel", "hvf", "'hvf' is not allowed; give auto, kvm, tcg"},
    {"qemu.accel", "{}", "a list or mapping"},
    {"qemu.cpu", "[]", "a list or mapping"},
    {"qemu.templates", "maybe", "give false, true"},
    {"boxlite.library", "libboxlite.so", "an absolute path"},
    {"boxlite.home", "x", "an absolute path"},
    {"boxlite.registries", "[]", "a list or mapping"},
    {"boxlite.network", "true", "give disabled, enabled"},
    {"boxlite.detach", "1", "give false, true"},
    {"boxlite.url", "[]", "a list or mapping"},
    {"boxlite.api_key", "\"\\x07\"", "its value is not allowed; give text"},
    {"boxlite.path_prefix", "{}", "a list or mapping"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* "replicas: 0" or "sandbox: / namespace: / uid_base: 0"; returns the line of the value. */
static unsigned int put_key(
    char *out, size_t size, bool sandbox, const char *key, const char *value)
{
	const char *dot = strchr(key, '.');
	const char *in = sandbox ? "  " : "";

	snprintf(out, size, "# a comment\n%s", sandbox ? "sandbox:\n" : "");
	if (dot)
		snprintf(out + strlen(out), size - strlen(out), "%s%.*s:\n%s  %s: %s\n", in,
		    (int)(dot - key), key, in, dot + 1, value);
	else
		snprintf(out + strlen(out), size - strlen(out), "%s%s: %s\n", in, key, value);
	return 2U + (sandbox ? 1U : 0U) + (dot ? 1U : 0U);
}

static void test_wrong_values_are_refused_with_their_line(void **state)
{
	for (size_t i = 0; i < COUNT(wrong); i++) {
		char yaml[512];
		unsigned int line =
		    put_key(yaml, sizeof(yaml), i % 2, wrong[i].key, wrong[i].value);
		const bool uids = strstr(wrong[i].says, "last uid") != NULL;
		/* Too many uids are max_boxes' fault, which has its default here. */
		const char *const parts[] = {
		    uids ? "max_boxes" : wrong[i].key, wrong[i].says, NULL};

		if (!uids) {
			fixture_refused(*state, yaml, line, parts);
			continue;
		}
		struct config c;
		struct err err = {0};

		assert_int_equal(fixture_load(*state, yaml, NULL, &c, &err), -EINVAL);
		assert_non_null(strstr(err.text, wrong[i].says));
	}
}

static void test_every_key_has_a_wrong_value_here(void **state)
{
	(void)state;
	for (size_t k = 0; k < CONFIG_KEYS; k++) {
		bool seen = false;

		for (size_t i = 0; i < COUNT(wrong); i++)
			seen |= strcmp(wrong[i].key, config_keys[k].name) == 0;
		if (!seen)
			fail_msg("%s has no test", config_keys[k].name);
	}
}

static void test_wrong_values_in_variables_name_the_variable(void **state)
{
	char *env[] = {"SBXD_NAMESPACE_UID_BASE=1", NULL};
	const struct config_sources src = {.env = env};
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(config_load(&src, &c, &err), -EINVAL);
	assert_int_equal(
	    strncmp(err.text, "SBXD_NAMESPACE_UID_BASE: namespace.uid_base: '1' ", 49), 0);
	env[0] = "SBXD_REPLICAS=";
	assert_int_equal(config_load(&src, &c, &err), -EINVAL);
	assert_int_equal(strncmp(err.text, "SBXD_REPLICAS: replicas: '' is not allowed", 42), 0);
	env[0] = "SBXD_IMAGE=\xff";
	assert_int_equal(config_load(&src, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "UTF-8"));
}

static void test_wrong_values_in_flags_name_the_flag(void **state)
{
	const struct config_override o = {"--driver", "driver", "xen"};
	const struct config_sources src = {.overrides = &o, .override_count = 1};
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(config_load(&src, &c, &err), -EINVAL);
	assert_int_equal(strncmp(err.text, "--driver: driver: 'xen' is not allowed", 38), 0);
}

static void test_defaults(void **state)
{
	const struct config_sources src = {.default_path = "/nonexistent/sbxd.yaml"};
	struct config c;

	(void)state;
	assert_int_equal(config_load(&src, &c, NULL), 0);
	assert_string_equal(c.driver, "auto");
	assert_string_equal(c.image, "host");
	assert_int_equal(c.memory_mib, 512);
	assert_int_equal(c.cpus_milli, 1000);
	assert_int_equal(c.disk_mib, 512);
	assert_int_equal(c.pids_max, 512);
	assert_int_equal(c.environment.count, 0);
	assert_int_equal(c.replicas, 3);
	assert_int_equal(c.replica_policy, CONFIG_POLICY_SOFT);
	assert_int_equal(c.burst_limit, 2);
	assert_int_equal(c.acquire_timeout_ns, 60 * NS_PER_S);
	assert_int_equal(c.prewarm, 0);
	assert_int_equal(c.idle_timeout_ns, 600 * NS_PER_S);
	assert_int_equal(c.active_idle_timeout_ns, 0);
	assert_int_equal(c.health_check_skip_ns, 0);
	assert_int_equal(c.health_check_timeout_ns, 5 * NS_PER_S);
	assert_int_equal(c.boot_timeout_ns, 30 * NS_PER_S);
	assert_int_equal(c.max_concurrent_boots, 4);
	assert_int_equal(c.orphan_grace_ns, 60 * NS_PER_S);
	assert_int_equal(c.max_boxes, 1024);
	assert_int_equal(c.network, CONFIG_NETWORK_NONE);
	assert_string_equal(c.admin_group, "");
	assert_false(c.listen_tcp.set);
	assert_string_equal(c.token_file, "");
	assert_false(c.listen_tcp_public);
	assert_int_equal(c.limits.box_executions, 64);
	assert_int_equal(c.limits.execution_detach_grace_ns, 300 * NS_PER_S);
	assert_int_equal(c.limits.execution_keep_ns, 300 * NS_PER_S);
	assert_int_equal(c.limits.operation_stall_ns, 120 * NS_PER_S);
	assert_int_equal(c.limits.head_bytes, 16384);
	assert_int_equal(c.limits.body_bytes, 65536);
	assert_int_equal(c.limits.json_depth, 32);
	assert_int_equal(c.limits.connections, 0);
	assert_int_equal(c.limits.tcp_connections, 1024);
	assert_int_equal(c.limits.connection_idle_ns, 3600 * NS_PER_S);
	assert_int_equal(c.limits.box_connections, 256);
	assert_int_equal(c.limits.event_streams, 32);
	assert_int_equal(c.limits.run_body_bytes, 32U << 20);
	assert_int_equal(c.limits.exec_body_bytes, 8U << 20);
	assert_int_equal(c.limits.run_output_bytes, 64U << 20);
	assert_int_equal(c.limits.file_bytes, 1U << 30);
	assert_int_equal(c.namespace_uid_base, 805306368);
	config_free(&c);
}

static void test_a_named_file_must_be_there(void **state)
{
	char *env[] = {"SBXD_CONFIG=/nonexistent/sbxd.yaml", NULL};
	struct config_sources src = {.path = "/nonexistent/sbxd.yaml"};
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(config_load(&src, &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/sbxd.yaml"));
	src = (struct config_sources){.env = env};
	assert_int_equal(config_load(&src, &c, &err), -ENOENT);
}

static void test_flag_beats_variable_beats_file_beats_default(void **state)
{
	const struct fixture *f = *state;
	char named[64];
	char *env[] = {"SBXD_IMAGE=env", "SBXD_DRIVER=qemu", named, NULL};
	const struct config_override o = {"--image", "image", "flag"};
	const struct config_sources src = {.env = env, .overrides = &o, .override_count = 1};
	static const char yaml[] = "image: file\ndriver: namespace\nreplicas: 7\n";
	struct config c;

	snprintf(named, sizeof(named), "SBXD_CONFIG=%s", f->path);
	fixture_write(f, yaml, strlen(yaml));
	assert_int_equal(config_load(&src, &c, NULL), 0);
	assert_string_equal(c.image, "flag");
	assert_string_equal(c.driver, "qemu");
	assert_int_equal(c.replicas, 7);
	assert_int_equal(c.burst_limit, 2);
	config_free(&c);
}

static void test_a_failed_load_leaves_the_result_untouched(void **state)
{
	struct config c = {.replicas = 42};
	struct err err;

	assert_int_equal(fixture_load(*state, "replicas: 5\nimage: ''\n", NULL, &c, &err), -EINVAL);
	assert_int_equal(c.replicas, 42);
}

static void test_listen_addresses(void **state)
{
	static const uint8_t v4[] = {127, 1, 2, 3};
	struct config c;

	assert_int_equal(
	    fixture_load(*state, "listen_tcp: 127.1.2.3:8080\ntoken_file: /t\n", NULL, &c, NULL),
	    0);
	assert_true(c.listen_tcp.set);
	assert_false(c.listen_tcp.v6);
	assert_int_equal(c.listen_tcp.port, 8080);
	assert_memory_equal(c.listen_tcp.addr, v4, sizeof(v4));
	config_free(&c);
	assert_int_equal(
	    fixture_load(*state, "listen_tcp: '[::1]:1'\ntoken_file: /t\n", NULL, &c, NULL), 0);
	assert_true(c.listen_tcp.v6);
	assert_int_equal(c.listen_tcp.addr[15], 1);
	config_free(&c);
	assert_int_equal(
	    fixture_load(*state, "listen_tcp: 127.0.0.1:0\ntoken_file: /t\n", NULL, &c, NULL), 0);
	assert_true(c.listen_tcp.set);
	assert_int_equal(c.listen_tcp.port, 0);
	config_free(&c);
}

/* Other hosts can reach it: only when that is said, too. */
static void test_listen_addresses_of_the_network(void **state)
{
	static const char *const addresses[] = {
	    "0.0.0.0:80", "192.0.2.1:80", "126.0.0.1:80", "'[::]:80'", "'[2001:db8::1]:80'"};

	for (size_t i = 0; i < COUNT(addresses); i++) {
		char yaml[128];
		struct config c;
		struct err err;

		snprintf(yaml, sizeof(yaml), "token_file: /t\nlisten_tcp: %s\n", addresses[i]);
		fixture_refused(*state, yaml, 2,
		    (const char *const[]){
			"listen_tcp: is no loopback address", "listen_tcp_public: true", NULL});
		strcat(yaml, "listen_tcp_public: true\n");
		assert_int_equal(fixture_load(*state, yaml, NULL, &c, &err), 0);
		assert_false(config_listen_is_loopback(&c.listen_tcp));
		config_free(&c);
	}
}

static void test_numbers_are_exact(void **state)
{
	struct config c;

	assert_int_equal(fixture_load(*state,
			     "cpus: 0.125\nidle_timeout: 0.000000001\nboot_timeout: 1.50\n"
			     "memory_mib: '0064'\n",
			     NULL, &c, NULL),
	    0);
	assert_int_equal(c.cpus_milli, 125);
	assert_int_equal(c.idle_timeout_ns, 1);
	assert_int_equal(c.boot_timeout_ns, 1500 * NS_PER_MS);
	assert_int_equal(c.memory_mib, 64);
	config_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_wrong_values_are_refused_with_their_line),
	    cmocka_unit_test(test_every_key_has_a_wrong_value_here),
	    cmocka_unit_test(test_wrong_values_in_variables_name_the_variable),
	    cmocka_unit_test(test_wrong_values_in_flags_name_the_flag),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_a_named_file_must_be_there),
	    cmocka_unit_test(test_flag_beats_variable_beats_file_beats_default),
	    cmocka_unit_test(test_a_failed_load_leaves_the_result_untouched),
	    cmocka_unit_test(test_listen_addresses),
	    cmocka_unit_test(test_listen_addresses_of_the_network),
	    cmocka_unit_test(test_numbers_are_exact),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
