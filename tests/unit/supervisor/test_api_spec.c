/* api_spec: which image a client may have. */
#include <errno.h>

#include "supervisor/api_spec.h"
#include "supervisor/client_int.h"
#include "tests/unit/supervisor/sbxd_testing.h"

static const struct {
	const char *configured;
	const char *image; /* NULL: none is named */
	bool admin;
	enum api_error e; /* API_OK: it is had */
} cases[] = {
    {"host", NULL, false, API_OK},
    {"host", "host", false, API_OK},
    {"host", "alpine:3", false, API_OK}, /* whether there is one, the driver says */
    {"host", "/etc", false, API_PERMISSION_DENIED},
    {"host", "/etc", true, API_OK},
    {"/srv/root", NULL, false, API_OK},
    {"/srv/root", "/srv/root", false, API_OK},
    {"/srv/root", "/srv/root/", false, API_PERMISSION_DENIED},
    {"/srv/root", "host", false, API_PERMISSION_DENIED}, /* it was chosen to hide that */
    {"/srv/root", "host", true, API_OK},
    {"host", "", true, API_INVALID_ARGUMENT},
};

static void test_who_may_have_which(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sbxd s = {.uid = 0};
		struct client c = {.peer = {.uid = 1000, .admin = cases[i].admin}};
		struct pool_spec spec = {.memory_mib = 77};
		struct err err = {0};
		enum api_error e = API_OK;
		int rc;

		(void)snprintf(s.spec.image, sizeof(s.spec.image), "%s", cases[i].configured);
		assert_int_equal(api_spec_digest(&s.spec), 0);
		rc = api_spec_choose(&s, &c, cases[i].image, &spec, &e, &err);
		if (rc != (cases[i].e == API_OK ? 0 : -err.code) ||
		    (rc < 0 && (e != cases[i].e || spec.memory_mib != 77)))
			fail_msg("case %zu: %d, %d: %s", i, rc, e, err.text);
		if (rc < 0)
			continue;
		assert_string_equal(
		    spec.image, cases[i].image ? cases[i].image : cases[i].configured);
		assert_int_equal(memcmp(spec.digest, s.spec.digest, sizeof(spec.digest)) == 0,
		    strcmp(spec.image, s.spec.image) == 0);
	}
}

static void test_length(void **state)
{
	struct sbxd s = {.uid = 0};
	struct client c = {.peer = {.admin = true}};
	struct pool_spec spec;
	struct err err = {0};
	char image[SHM_IMAGE_LEN + 1];
	enum api_error e;

	(void)state;
	memset(image, 'x', sizeof(image));
	image[SHM_IMAGE_LEN] = '\0';
	assert_int_equal(api_spec_choose(&s, &c, image, &spec, &e, &err), -EINVAL);
	assert_int_equal(e, API_INVALID_ARGUMENT);
	image[SHM_IMAGE_LEN - 1] = '\0';
	assert_int_equal(api_spec_choose(&s, &c, image, &spec, &e, &err), 0);
	assert_string_equal(spec.image, image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_who_may_have_which),
	    cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
