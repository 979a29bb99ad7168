/* The directories of sbxd: made with the right modes, refused when they are not its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/rundir.h"

struct fixture {
	char top[32];
	struct paths paths;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->top, "/tmp/sbxd-rundir-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	snprintf(f->paths.runtime_dir, sizeof(f->paths.runtime_dir), "%s/run", f->top);
	snprintf(f->paths.state_dir, sizeof(f->paths.state_dir), "%s/a/b/state", f->top);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	static const char *const parts[] = {
	    "/run/workers", "/run", "/real", "/a/b/state", "/a/b", "/a", ""};
	struct fixture *f = *state;
	char path[80];

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", f->top, parts[i]);
		(void)remove(path); /* a test may not have made it */
	}
	assert_int_equal(access(f->top, F_OK), -1);
	free(f);
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_makes_both_with_their_modes(void **state)
{
	const struct fixture *f = *state;
	mode_t old = umask(077);
	struct err err = {0};
	char workers[300];
	int rc = rundir_create(&f->paths, getuid(), &err);

	umask(old);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	assert_int_equal(mode_of(f->paths.runtime_dir), getuid() == 0 ? 0755 : 0700);
	assert_int_equal(mode_of(f->paths.state_dir), 0700);
	snprintf(workers, sizeof(workers), "%s/workers", f->paths.runtime_dir);
	assert_int_equal(mode_of(workers), 0700);
	assert_int_equal(rundir_create(&f->paths, getuid(), &err), 0); /* again: nothing to do */
	rundir_tidy(&f->paths);
	assert_int_equal(access(workers, F_OK), -1);
	rundir_tidy(&f->paths); /* twice is as once */
}

static void test_refuses_what_others_may_write(void **state)
{
	const struct fixture *f = *state;
	struct err err;

	assert_int_equal(mkdir(f->paths.runtime_dir, 0700), 0);
	assert_int_equal(chmod(f->paths.runtime_dir, 01777), 0);
	assert_int_equal(rundir_create(&f->paths, getuid(), &err), -EPERM);
	assert_non_null(strstr(err.text, "others may write"));
}

static void test_refuses_another_owner(void **state)
{
	const struct fixture *f = *state;
	struct err err;

	assert_int_equal(mkdir(f->paths.runtime_dir, 0700), 0);
	assert_int_equal(rundir_create(&f->paths, getuid() + 1, &err), -EPERM);
	assert_non_null(strstr(err.text, "belongs to uid"));
}

static void test_refuses_a_symlink(void **state)
{
	const struct fixture *f = *state;
	char real[64];
	struct err err;

	snprintf(real, sizeof(real), "%s/real", f->top);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, f->paths.runtime_dir), 0);
	assert_true(rundir_create(&f->paths, getuid(), &err) < 0);
	assert_non_null(strstr(err.text, f->paths.runtime_dir));
}

static void test_refuses_a_file(void **state)
{
	const struct fixture *f = *state;
	FILE *file = fopen(f->paths.runtime_dir, "we");
	struct err err;

	assert_non_null(file);
	fclose(file);
	assert_int_equal(rundir_create(&f->paths, getuid(), &err), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_makes_both_with_their_modes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_what_others_may_write, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_another_owner, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_a_symlink, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_a_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
