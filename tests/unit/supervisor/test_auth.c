/* auth: which token files are taken, and which headers bring the token. */
#include <errno.h>
#include <fcntl.h>
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

#include "supervisor/auth.h"

#define TOKEN "0123456789abcdef-token"
#define OTHER_UID 4711

struct fixture {
	char path[32];
	struct auth auth;
	struct err err;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	(void)snprintf(f->path, sizeof(f->path), "/tmp/sbxd-auth-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	(void)unlink(f->path);
	free(f);
	return 0;
}

static int load_n(struct fixture *f, const void *text, size_t n)
{
	int fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
	memset(&f->err, 0, sizeof(f->err));
	return auth_load(f->path, geteuid(), &f->auth, &f->err);
}

static int load(struct fixture *f, const char *text)
{
	return load_n(f, text, strlen(text));
}

/* Nothing is taken, and the message names the file and says why. */
static void assert_refused(struct fixture *f, int rc, int expected, const char *says)
{
	static const struct auth none;

	assert_int_equal(rc, expected);
	assert_non_null(strstr(f->err.text, f->path));
	if (!strstr(f->err.text, says))
		fail_msg("says '%s', not '%s'", f->err.text, says);
	assert_memory_equal(&f->auth, &none, sizeof(none));
}

static void test_a_token(void **state)
{
	static const char *const texts[] = {TOKEN, TOKEN "\n", TOKEN "\r\n"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(load(f, texts[i]), 0);
		assert_true(f->auth.set);
		assert_int_equal(f->auth.uid, geteuid());
		assert_int_equal(auth_check(&f->auth, "Bearer " TOKEN), AUTH_RIGHT);
	}
}

static void test_lengths(void **state)
{
	struct fixture *f = *state;
	char text[600];

	memset(text, '~', sizeof(text));
	assert_refused(f, load_n(f, text, 0), -EINVAL, "16 to 512 characters, this one has less");
	assert_refused(f, load_n(f, text, 15), -EINVAL, "has less");
	assert_refused(f, load_n(f, text, 513), -EINVAL, "has more");
	assert_refused(f, load_n(f, text, 600), -EINVAL, "has more");
	assert_int_equal(load_n(f, text, 16), 0);
	text[512] = '\n';
	assert_int_equal(load_n(f, text, 513), 0);
}

static void test_characters(void **state)
{
	struct fixture *f = *state;
	char text[] = TOKEN;

	for (int c = 0; c < 256; c++) {
		bool good = c > 0x20 && c < 0x7f;
		int rc;

		text[5] = (char)c;
		rc = load_n(f, text, sizeof(text) - 1);
		if (good)
			assert_int_equal(rc, 0);
		else
			assert_refused(f, rc, -EINVAL, "printable ASCII without blanks");
		f->auth = (struct auth){.set = false};
	}
	assert_refused(f, load(f, TOKEN "\n\n"), -EINVAL, "in one line");
	assert_refused(f, load(f, "\n" TOKEN), -EINVAL, "in one line");
}

static void test_modes(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, TOKEN), 0);
	f->auth = (struct auth){.set = false};
	for (mode_t mode = 0; mode < 01000; mode++) {
		bool good = !(mode & 066);

		if (!(mode & 0400))
			continue; /* root reads it all the same, others do not */
		assert_int_equal(chmod(f->path, mode), 0);
		if (good)
			assert_int_equal(auth_load(f->path, geteuid(), &f->auth, &f->err), 0);
		else
			assert_refused(f, auth_load(f->path, geteuid(), &f->auth, &f->err), -EPERM,
			    "chmod 600");
		f->auth = (struct auth){.set = false};
	}
}

static void test_owners(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(load(f, TOKEN), 0);
	assert_int_equal(auth_load(f->path, OTHER_UID, &f->auth, &f->err), 0); /* root's */
	assert_int_equal(f->auth.uid, 0);
	assert_int_equal(chown(f->path, OTHER_UID, OTHER_UID), 0);
	assert_int_equal(auth_load(f->path, 0, &f->auth, &f->err), 0);
	assert_int_equal(f->auth.uid, OTHER_UID);
	assert_int_equal(auth_load(f->path, OTHER_UID, &f->auth, &f->err), 0);
	f->auth = (struct auth){.set = false};
	assert_refused(f, auth_load(f->path, OTHER_UID + 1, &f->auth, &f->err), -EPERM,
	    "belongs to uid 4711; it must be of root or of uid 4712");
}

static void test_what_is_no_file(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unlink(f->path), 0);
	assert_refused(f, auth_load(f->path, geteuid(), &f->auth, &f->err), -ENOENT, "be opened");
	assert_int_equal(mkfifo(f->path, 0600), 0); /* nobody will ever write to it */
	assert_refused(
	    f, auth_load(f->path, geteuid(), &f->auth, &f->err), -EINVAL, "must be a regular file");
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(mkdir(f->path, 0700), 0);
	assert_refused(
	    f, auth_load(f->path, geteuid(), &f->auth, &f->err), -EINVAL, "must be a regular file");
	assert_int_equal(rmdir(f->path), 0);
}

/* What was there stays when the new one is none. */
static void test_a_failure_leaves_the_old_one(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, TOKEN), 0);
	assert_int_equal(load(f, "short"), -EINVAL);
	assert_int_equal(auth_check(&f->auth, "Bearer " TOKEN), AUTH_RIGHT);
}

static void test_headers(void **state)
{
	static const struct {
		const char *value;
		enum auth_result result;
	} rows[] = {
	    {"Bearer " TOKEN, AUTH_RIGHT},
	    {"bEARER " TOKEN, AUTH_RIGHT},
	    {"Bearer   " TOKEN, AUTH_RIGHT},
	    {"Bearer " TOKEN " ", AUTH_WRONG}, /* blanks at the end the parser takes away */
	    {"Bearer " TOKEN "x", AUTH_WRONG},
	    {"Bearer 0123456789abcdef-toke", AUTH_WRONG},
	    {"Bearer x", AUTH_WRONG},
	    {"Bearer \t" TOKEN, AUTH_WRONG},
	    {"", AUTH_MISSING},
	    {"Bearer", AUTH_MISSING},
	    {"Bearer ", AUTH_MISSING},
	    {"Beare " TOKEN, AUTH_MISSING},
	    {"Bearer:" TOKEN, AUTH_MISSING},
	    {"Bearer\t" TOKEN, AUTH_MISSING},
	    {"Basic " TOKEN, AUTH_MISSING},
	    {TOKEN, AUTH_MISSING},
	    {" Bearer " TOKEN, AUTH_MISSING},
	};
	static const struct auth none;
	struct fixture *f = *state;

	assert_int_equal(load(f, TOKEN), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(auth_check(&f->auth, rows[i].value), rows[i].result);
		assert_int_not_equal(auth_check(&none, rows[i].value), AUTH_RIGHT);
	}
}

#define with_file(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    with_file(test_a_token),
	    with_file(test_lengths),
	    with_file(test_characters),
	    with_file(test_modes),
	    with_file(test_owners),
	    with_file(test_what_is_no_file),
	    with_file(test_a_failure_leaves_the_old_one),
	    with_file(test_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
