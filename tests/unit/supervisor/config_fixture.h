/* config_fixture: a temporary configuration file for the tests of supervisor/config*. */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_CONFIG_FIXTURE_H
#define SBXD_TESTS_UNIT_SUPERVISOR_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/config.h"
#include "supervisor/config_table.h"

struct fixture {
	char path[32];
};

static inline int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	strcpy(f->path, "/tmp/sbxd-config-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	*state = f;
	return 0;
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	free(f);
	return 0;
}

static inline void fixture_write(const struct fixture *f, const void *bytes, size_t n)
{
	FILE *out = fopen(f->path, "we");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

/* Loads `yaml` from the temporary file, with the variables of env. */
static inline int fixture_load(
    const struct fixture *f, const char *yaml, char *const *env, struct config *c, struct err *err)
{
	const struct config_sources src = {.path = f->path, .env = env};

	fixture_write(f, yaml, strlen(yaml));
	return config_load(&src, c, err);
}

/* Loading must fail in that line with a message that has all of `parts` (NULL-terminated) in it. */
static inline void fixture_refused(
    const struct fixture *f, const char *yaml, unsigned int line, const char *const *parts)
{
	struct config c;
	struct err err = {0};
	char place[64];
	int rc = fixture_load(f, yaml, NULL, &c, &err);

	if (rc == 0) {
		config_free(&c);
		fail_msg("accepted: %s", yaml);
	}
	snprintf(place, sizeof(place), "%s:%u: ", f->path, line);
	if (strncmp(err.text, place, strlen(place)) != 0)
		fail_msg("%s: says '%s', not '%s...'", yaml, err.text, place);
	for (; *parts; parts++) {
		if (!strstr(err.text, *parts))
			fail_msg("%s: says '%s', without '%s'", yaml, err.text, *parts);
	}
}

#endif
