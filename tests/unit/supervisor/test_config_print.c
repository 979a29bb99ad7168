/* The effective settings as YAML read back to the same; and what a reload takes over. */
#include "tests/unit/supervisor/config_fixture.h"

#include <errno.h>

#include "lib/clock.h"

static void print(const struct config *c, struct buf *out)
{
	buf_init(out, 1U << 20);
	assert_int_equal(config_print(c, out), 0);
	assert_int_equal(buf_terminate(out), 0);
}

static void assert_same(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		if (!config_value_equal(&config_keys[i], a, b))
			fail_msg("%s differs", config_keys[i].name);
	}
}

static void round_trip(const struct fixture *f, const char *yaml)
{
	struct config first;
	struct config second;
	struct err err = {0};
	struct buf text;

	if (fixture_load(f, yaml, NULL, &first, &err) != 0)
		fail_msg("%s: %s", yaml, err.text);
	print(&first, &text);
	if (fixture_load(f, (const char *)buf_head(&text), NULL, &second, &err) != 0)
		fail_msg("%s\n%s", err.text, (const char *)buf_head(&text));
	assert_same(&first, &second);
	buf_free(&text);
	config_free(&first);
	config_free(&second);
}

static void test_defaults_round_trip(void **state)
{
	round_trip(*state, "");
}

static void test_everything_round_trips(void **state)
{
	round_trip(*state,
	    "driver: namespace\n"
	    "image: \"quo\\\"te\\\\ $$HOME #: \\u2028\\xA0\\uFEFFé\"\n"
	    "cpus: 0.001\n"
	    "idle_timeout: 0.000000001\n"
	    "orphan_grace: 86399.999999999\n"
	    "replica_policy: burst\n"
	    "listen_tcp: '[::1]:65535'\n"
	    "token_file: /etc/a b\n"
	    "listen_tcp_public: true\n"
	    "limits: {head_bytes: 65535, connection_idle_timeout: 0.5, file_bytes: 1099511627776}\n"
	    "admin_group: 'null'\n"
	    "environment:\n"
	    "  A: \"line\\nline\\t\\x1b[0m\\u0085 \\U0001F600 ✓\"\n"
	    "  B: \"\"\n"
	    "  NULL: '~'\n"
	    "  C: '  spaces  '\n"
	    "  D: \"$$$$ $${A}\"\n"
	    "namespace: {uid_base: 65536}\n"
	    "qemu: {binary: /q, accel: tcg, cpu: max, templates: false}\n"
	    "boxlite: {library: /l, home: /h, registries: 'a,b', network: enabled, detach: true,\n"
	    "  url: 'http://h/', path_prefix: p}\n");
}

/* What --check-config prints ends in reports. */
static void test_a_secret_is_not_printed(void **state)
{
	struct config c;
	struct err err = {0};
	struct buf text;

	assert_int_equal(
	    fixture_load(*state, "boxlite: {api_key: 'hush-hush'}\n", NULL, &c, &err), 0);
	print(&c, &text);
	assert_null(strstr((const char *)buf_head(&text), "hush"));
	assert_non_null(strstr((const char *)buf_head(&text), "api_key: \"\" # is given"));
	buf_free(&text);
	config_free(&c);
	assert_int_equal(
	    fixture_load(*state, "boxlite: {api_key: \"hush\\x07\"}\n", NULL, &c, &err), -EINVAL);
	assert_null(strstr(err.text, "hush"));
}

static void test_options_are_what_drivers_are_told(void **state)
{
	static const char want[] = "images.cache_mib=16384\0images.pull_timeout=600\0"
				   "qemu.accel=auto\0qemu.cpu=t=c g\0qemu.templates=true\0"
				   "boxlite.network=enabled\0boxlite.detach=false\0"
				   "boxlite.api_key=k\0";
	struct config c;
	struct buf out;

	assert_int_equal(
	    fixture_load(*state, "qemu: {cpu: 't=c g'}\nboxlite: {api_key: k, network: enabled}\n",
		NULL, &c, NULL),
	    0);
	buf_init(&out, 4096);
	assert_int_equal(config_options(&c, &out), 0);
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(buf_head(&out), want, out.len);
	buf_free(&out);
	buf_init(&out, 30);
	assert_int_equal(config_options(&c, &out), -ENOBUFS);
	buf_free(&out);
	config_free(&c);
}

static void test_print_names_every_key(void **state)
{
	struct config c;
	struct buf text;

	assert_int_equal(fixture_load(*state, "", NULL, &c, NULL), 0);
	print(&c, &text);
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const char *dot = strchr(config_keys[i].name, '.');
		char line[64];

		snprintf(line, sizeof(line), "\n%s%s: ", dot ? "  " : "",
		    dot ? dot + 1 : config_keys[i].name);
		if (!strstr((const char *)buf_head(&text), line + (i == 0)))
			fail_msg("no line for %s", config_keys[i].name);
	}
	buf_free(&text);
	config_free(&c);
}

struct changes {
	char text[256];
};

static void note_change(void *ctx, const char *key, bool applied)
{
	struct changes *ch = ctx;
	size_t len = strlen(ch->text);

	snprintf(ch->text + len, sizeof(ch->text) - len, "%s%c ", key, applied ? '+' : '-');
}

static void test_reload_takes_what_it_may(void **state)
{
	struct config c;
	struct config fresh;
	struct changes ch = {.text = ""};
	struct err err;

	assert_int_equal(
	    fixture_load(*state, "replicas: 3\nimage: a\nenvironment: {A: x}\n", NULL, &c, &err),
	    0);
	assert_int_equal(fixture_load(*state,
			     "replicas: 4\nimage: b\nidle_timeout: 1\nenvironment: {B: y, C: z}\n"
			     "max_boxes: 5\n",
			     NULL, &fresh, &err),
	    0);
	assert_int_equal(config_reload(&c, &fresh, note_change, &ch, &err), 0);
	assert_string_equal(ch.text, "image- environment+ replicas+ idle_timeout+ max_boxes- ");
	config_free(&fresh);
	assert_int_equal(c.replicas, 4);
	assert_string_equal(c.image, "a");
	assert_int_equal(c.idle_timeout_ns, NS_PER_S);
	assert_int_equal(c.max_boxes, 1024);
	assert_memory_equal(c.environment.data, "B=y\0C=z", 8);
	config_free(&c);
}

static void test_reload_of_the_same_changes_nothing(void **state)
{
	struct config c;
	struct config fresh;
	struct changes ch = {.text = ""};
	struct err err;

	assert_int_equal(fixture_load(*state, "environment: {A: x}\n", NULL, &c, &err), 0);
	assert_int_equal(fixture_load(*state, "environment: {A: x}\n", NULL, &fresh, &err), 0);
	assert_int_equal(config_reload(&c, &fresh, note_change, &ch, &err), 0);
	assert_string_equal(ch.text, "");
	config_free(&fresh);
	assert_memory_equal(c.environment.data, "A=x", 4);
	config_free(&c);
}

/* max_boxes stays as it was, so that more replicas than that cannot be taken over. */
static void test_reload_refuses_what_makes_no_sense_together(void **state)
{
	struct config c;
	struct config fresh;
	struct changes ch = {.text = ""};
	struct err err;

	assert_int_equal(fixture_load(*state, "max_boxes: 5\n", NULL, &c, &err), 0);
	assert_int_equal(
	    fixture_load(*state, "max_boxes: 50\nreplicas: 20\n", NULL, &fresh, &err), 0);
	assert_int_equal(config_reload(&c, &fresh, note_change, &ch, &err), -EINVAL);
	assert_non_null(strstr(err.text, "replicas: 20 is more than max_boxes (5)"));
	assert_int_equal(c.replicas, 3);
	assert_string_equal(ch.text, "");
	config_free(&fresh);
	config_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults_round_trip),
	    cmocka_unit_test(test_everything_round_trips),
	    cmocka_unit_test(test_a_secret_is_not_printed),
	    cmocka_unit_test(test_options_are_what_drivers_are_told),
	    cmocka_unit_test(test_print_names_every_key),
	    cmocka_unit_test(test_reload_takes_what_it_may),
	    cmocka_unit_test(test_reload_of_the_same_changes_nothing),
	    cmocka_unit_test(test_reload_refuses_what_makes_no_sense_together),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
