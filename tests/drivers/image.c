/* image: a box made of a root directory, by drivers that take one. */
#include "tests/drivers/conformance.h"
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"

/* A root directory with one static program in it, and a file that only its owner may read. */
struct root {
	char path[96];
	struct driver_site site;
};

static void root_add(const char *root, const char *name, int from, mode_t mode)
{
	char path[128];
	struct stat st;
	off_t at = 0;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	if (from >= 0) {
		assert_int_equal(fstat(from, &st), 0);
		assert_int_equal(sendfile(fd, from, &at, (size_t)st.st_size), st.st_size);
	}
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static int setup_root(void **state)
{
	struct fixture *f = fixture_current();
	struct root *r = calloc(1, sizeof(*r));
	char path[128];

	assert_non_null(r);
	r->site = f->site;
	r->site.instance = "conf-image";
	r->site.prepared = memfd_create("prepared", MFD_CLOEXEC);
	assert_true(r->site.prepared >= 0);
	(void)snprintf(r->path, sizeof(r->path), "%s/root", f->dir);
	assert_int_equal(mkdir(r->path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/bin", r->path);
	assert_int_equal(mkdir(path, 0755), 0);
	root_add(r->path, "bin/program", f->guest, 0755);
	root_add(r->path, "bin/owned", f->guest, 0700);
	*state = r;
	return 0;
}

static int teardown_root(void **state)
{
	static const char *const names[] = {"/bin/program", "/bin/owned", "/bin", ""};
	struct root *r = *state;
	struct host_state now;
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", r->path, names[i]);
		assert_int_equal(remove(path), 0);
	}
	fd_close(&r->site.prepared);
	free(r);
	host_state_take(&fixture_current()->site, &now);
	host_state_assert_same(&fixture_current()->quiet, &now);
	return 0;
}

/* sbx-guest run as a command says HELLO and ends with its input: 24 bytes. */
static void assert_runs(struct fixture_box *b, const char *program, int status)
{
	const char *const argv[] = {program, NULL};

	assert_int_equal(agent_client_run(&b->client, "", argv, patience_ms(), &b->result), 0);
	assert_int_equal(b->result.error, 0);
	assert_int_equal(b->result.end.exit_code, status);
	assert_int_equal(b->result.len, AGENT_HEAD_LEN + sizeof(struct agent_hello));
}

static void test_root_directory(void **state)
{
	struct fixture *f = fixture_current();
	struct root *r = *state;
	struct fixture_box *b;
	struct err err = {0};
	int rc;

	if (!(f->target->traits & TARGET_OWN_WORK))
		skip(); /* it takes other kinds of images */
	r->site.root = r->path;
	rc = f->driver->prepare(&r->site, r->path, &err);
	if (rc < 0)
		fail_msg("prepare: %s", err.text);
	b = fixture_box_new(f, 9);
	b->spec.name = "sbxd-conf-image-9-1";
	b->spec.image = r->path;
	if (f->driver->start(&r->site, &b->spec, &b->box, &b->stream, &err) < 0)
		fail_msg("start: %s", err.text);
	agent_client_init(&b->client, b->stream);
	assert_int_equal(agent_client_hello(&b->client, patience_ms()), 0);
	assert_runs(b, "/bin/program", 0);
	assert_runs(b, "/bin/owned", 0); /* the owner's files are those of the box's root */
	assert_int_equal(f->driver->kill(b->box, patience_soon()), 0);
	f->driver->free(b->box);
	assert_int_equal(f->driver->cleanup(&r->site, b->spec.name, 0, 0, &err), 0);
	assert_int_equal(f->driver->finish(&r->site, &err), 0);
	fixture_box_free(b);
}

static void test_bad_images_are_refused(void **state)
{
	struct fixture *f = fixture_current();
	struct driver_site site = f->site;
	struct err err;

	(void)state;
	site.instance = "conf-bad";
	site.root = NULL; /* whoever finds roots has found none */
	for (const char *const *bad = f->target->bad_images; *bad; bad++) {
		err = (struct err){0};
		assert_true(f->driver->prepare(&site, *bad, &err) < 0);
		assert_non_null(strstr(err.text, "image"));
	}
	assert_int_equal(f->driver->finish(&site, &err), 0);
}

int conformance_image(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_root_directory, setup_root, teardown_root),
	    cmocka_unit_test(test_bad_images_are_refused),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
