/* Tests of lib/image_ref.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/image_ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_what_names_mean(void **state)
{
	static const struct {
		const char *text;
		enum image_kind kind;
		const char *normal;
		bool loopback;
	} good[] = {
	    {"host", IMAGE_KIND_HOST, "host", false},
	    {"/srv/root", IMAGE_KIND_DIR, "/srv/root", false},
	    {"oci:/srv/a", IMAGE_KIND_OCI, "oci:/srv/a", false},
	    {"oci:/srv/a:v1", IMAGE_KIND_OCI, "oci:/srv/a:v1", false},
	    {"oci:/srv/a:b/c", IMAGE_KIND_OCI, "oci:/srv/a:b/c", false},
	    {"sha256:" HEX, IMAGE_KIND_ID, "sha256:" HEX, false},
	    {"python", IMAGE_KIND_REGISTRY, "docker.io/library/python:latest", false},
	    {"python:3.12", IMAGE_KIND_REGISTRY, "docker.io/library/python:3.12", false},
	    {"a/b", IMAGE_KIND_REGISTRY, "docker.io/a/b:latest", false},
	    {"docker.io/a/b", IMAGE_KIND_REGISTRY, "docker.io/a/b:latest", false},
	    {"oci:1", IMAGE_KIND_REGISTRY, "docker.io/library/oci:1", false},
	    {"quay.io/a", IMAGE_KIND_REGISTRY, "quay.io/a:latest", false},
	    {"localhost/a", IMAGE_KIND_REGISTRY, "localhost/a:latest", true},
	    {"localhost:5000/a:b", IMAGE_KIND_REGISTRY, "localhost:5000/a:b", true},
	    {"127.0.0.1:5000/a", IMAGE_KIND_REGISTRY, "127.0.0.1:5000/a:latest", true},
	    {"[::1]:5000/a", IMAGE_KIND_REGISTRY, "[::1]:5000/a:latest", true},
	    {"127.0.0.1.example.org/a", IMAGE_KIND_REGISTRY, "127.0.0.1.example.org/a:latest",
		false},
	    {"localhost.example.org/a", IMAGE_KIND_REGISTRY, "localhost.example.org/a:latest",
		false},
	    {"a@sha256:" HEX, IMAGE_KIND_REGISTRY, "docker.io/library/a@sha256:" HEX, false},
	    {"a:b@sha256:" HEX, IMAGE_KIND_REGISTRY, "docker.io/library/a@sha256:" HEX, false},
	    {"r.io/a__b.c--d/e:T_.-", IMAGE_KIND_REGISTRY, "r.io/a__b.c--d/e:T_.-", false},
	};
	struct image_ref ref;
	struct err err = {0};
	char normal[IMAGE_NORMAL_LEN];

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		if (image_ref_parse(good[i].text, &ref, &err) < 0)
			fail_msg("%s", err.text);
		image_ref_print(&ref, normal);
		assert_string_equal(normal, good[i].normal);
		assert_int_equal(ref.kind, good[i].kind);
		assert_int_equal(ref.loopback, good[i].loopback);
	}
}

static void test_what_is_no_name(void **state)
{
	static const char *const bad[] = {"", "A", "a b", "a:", "a:-x", "a::b", "a//b", "a/", "a@",
	    "a@sha256:12", "a@md5:" HEX, "-a", "a-", ".a", "a..b", "a___b", "a/../b", "a/-b",
	    "r.io:/a", "r.io:123456/a", "r.io:x/a", "-r.io/a", "[::1/a", "oci:x/y", "oci:/a:-b",
	    "a\nb", "a\tb", "\xc3\xa4", "SHA256:" HEX, "https://r.io/a", "a:b:c/d"};
	char text[200];
	struct image_ref ref;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = {0};

		if (image_ref_parse(bad[i], &ref, &err) != -EINVAL)
			fail_msg("\"%s\" is taken", bad[i]);
		assert_int_equal(err.code, EINVAL);
	}
	memset(text, 'a', sizeof(text));
	text[IMAGE_REF_MAX] = '\0';
	assert_int_equal(image_ref_parse(text, &ref, &(struct err){0}), 0);
	text[IMAGE_REF_MAX] = 'a';
	text[IMAGE_REF_MAX + 1] = '\0';
	assert_int_equal(image_ref_parse(text, &ref, &(struct err){0}), -EINVAL);
}

static void test_registries(void **state)
{
	char registry[IMAGE_PART_LEN];
	struct image_ref ref;

	(void)state;
	assert_int_equal(image_ref_parse("a", &ref, &(struct err){0}), 0);
	image_ref_registry(&ref, registry);
	assert_string_equal(registry, "docker.io");
	assert_int_equal(image_ref_parse("r.io:5000/a/b", &ref, &(struct err){0}), 0);
	image_ref_registry(&ref, registry);
	assert_string_equal(registry, "r.io:5000");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_names_mean),
	    cmocka_unit_test(test_what_is_no_name),
	    cmocka_unit_test(test_registries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
