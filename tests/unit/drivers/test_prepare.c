/*
 * Tests of drivers/namespace/prepare.c and start.c on hosts that lack something: file systems that
 * cannot show files to each box as its own, a v2 hierarchy to be cloned into.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/box.h"
#include "drivers/namespace/cgroup_find.h"
#include "drivers/namespace/namespace.h"
#include "drivers/namespace/site.h"
#include "drivers/namespace/userns.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define UID_BASE 1600000000U

struct place {
	char dir[48];
	char plain[64];	 /* below it, on the same file system */
	char simple[64]; /* a ramfs: it knows no mapped owners */
	struct driver_site site;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/sbxd-test-prepare-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->plain, sizeof(p->plain), "%s/plain", p->dir);
	(void)snprintf(p->simple, sizeof(p->simple), "%s/simple", p->dir);
	assert_int_equal(mkdir(p->plain, 0755), 0);
	assert_int_equal(mkdir(p->simple, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(mount("none", p->simple, "ramfs", 0, NULL), 0);
	p->site = (struct driver_site){
	    .instance = "prep",
	    .runtime_dir = p->plain,
	    .state_dir = p->plain,
	    .uid_base = geteuid() == 0 ? UID_BASE : 0,
	    .prepared = memfd_create("prepared", MFD_CLOEXEC),
	};
	assert_true(p->site.prepared >= 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	fd_close(&p->site.prepared);
	if (geteuid() == 0)
		assert_int_equal(umount(p->simple), 0);
	/* finish() has left them empty. */
	assert_int_equal(rmdir(p->simple), 0);
	assert_int_equal(rmdir(p->plain), 0);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void start_trial(struct place *p, const struct ns_prepared *prep)
{
	struct err err = {0};
	struct driver_spec spec = {
	    .name = "sbxd-prep-1-1",
	    .image = "host",
	    .disk_mib = 1,
	    .guest = -1,
	    .helper = -1,
	    .deadline_ns = CLOCK_NEVER,
	};

	if (ns_box_start(&p->site, prep, &spec, true, NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static void prepare_and_try(struct place *p, const char *layer_in)
{
	const struct ns_prepared *prep;
	struct err err = {0};

	if (namespace_prepare(&p->site, "host", &err) < 0)
		fail_msg("%s", err.text);
	prep = site_prepared_map(&p->site, &err);
	assert_non_null(prep);
	assert_int_equal(strncmp(prep->lower[0], layer_in, strlen(layer_in)), 0);
	start_trial(p, prep);
	site_prepared_unmap(prep);
	assert_int_equal(namespace_finish(&p->site, &err), 0);
}

static void test_layer_goes_where_it_can_be_mapped(void **state)
{
	struct place *p = *state;

	if (geteuid() != 0 || !userns_can_map_layer(p->plain, UID_BASE))
		skip();
	assert_false(userns_can_map_layer(p->simple, UID_BASE));
	prepare_and_try(p, p->plain);
	p->site.runtime_dir = p->simple;
	prepare_and_try(p, p->plain);
}

static void test_no_place_can_be_mapped(void **state)
{
	struct place *p = *state;

	if (geteuid() != 0)
		skip();
	p->site.runtime_dir = p->simple;
	p->site.state_dir = p->simple;
	prepare_and_try(p, p->simple);
}

static void test_ordinary_user(void **state)
{
	struct place *p = *state;

	if (geteuid() == 0)
		skip(); /* the conformance suite can be run as any user */
	prepare_and_try(p, p->plain);
}

static void read_prepared(const struct place *p, struct ns_prepared *out)
{
	assert_int_equal(pread(p->site.prepared, out, sizeof(*out), 0), sizeof(*out));
}

/* What a supervisor gets is the same as what the one before it got; finish() removes it. */
static void test_prepare_again_is_the_same(void **state)
{
	struct place *p = *state;
	struct ns_prepared *first = calloc(2, sizeof(*first));
	struct err err = {0};
	struct stat st;

	assert_non_null(first);
	assert_int_equal(namespace_prepare(&p->site, "host", &err), 0);
	read_prepared(p, first);
	assert_true(first->filter_len > 0 && first->mask_count > 0);
	fd_close(&p->site.prepared);
	p->site.prepared = memfd_create("prepared", MFD_CLOEXEC);
	assert_true(p->site.prepared >= 0);
	assert_int_equal(namespace_prepare(&p->site, "host", &err), 0);
	read_prepared(p, first + 1);
	assert_memory_equal(first, first + 1, sizeof(*first));
	assert_int_equal(stat(first->lower[0], &st), 0);
	assert_int_equal(namespace_finish(&p->site, &err), 0);
	assert_int_equal(stat(first->lower[0], &st), -1);
	free(first);
}

/* Where a layer is, the trial of probe() needs none of its own: here it could not make one. */
static void test_probe_tries_with_the_layer_that_is_there(void **state)
{
	struct place *p = *state;
	struct driver_facts facts = {.isolation = ""};
	struct err err = {0};
	char path[NS_PATH];
	FD_SCOPED int fd = -1;

	assert_int_equal(site_trial_path(&p->site, path), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(namespace_probe(&p->site, &facts, &err) < 0);
	assert_int_equal(namespace_prepare(&p->site, "host", &err), 0);
	if (namespace_probe(&p->site, &facts, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(facts.isolation, "namespace");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(namespace_finish(&p->site, &err), 0);
}

static int find_v2(char parent[NS_PATH])
{
	struct cgroup_hierarchy found[CGROUP_HIERARCHIES];
	int count = cgroup_find_all(found);

	for (int i = 0; i < count; i++) {
		if (!(found[i].controllers & NS_CG_V2))
			continue;
		(void)snprintf(parent, NS_PATH, "%.*s/sbxd-test-%d", NS_PATH - 24, found[i].top,
		    (int)getpid());
		return mkdir(parent, 0755);
	}
	return -1;
}

static void test_clone_into_v2(void **state)
{
	struct place *p = *state;
	const struct ns_prepared *prep;
	struct ns_prepared *v2 = calloc(1, sizeof(*v2));
	struct ns_cgroup cg;
	struct err err = {0};

	assert_non_null(v2);
	if (find_v2(v2->cgroups[0].parent) < 0) {
		free(v2);
		skip();
	}
	assert_int_equal(namespace_prepare(&p->site, "host", &err), 0);
	prep = site_prepared_map(&p->site, &err);
	assert_non_null(prep);
	cg = v2->cgroups[0];
	*v2 = *prep;
	v2->cgroups[0] = cg;
	v2->cgroups[0].controllers = NS_CG_V2;
	v2->cgroup_count = 1;
	v2->flags |= NS_F_CLONE_CGROUP;
	start_trial(p, v2);
	assert_int_equal(rmdir(v2->cgroups[0].parent), 0);
	site_prepared_unmap(prep);
	free(v2);
	assert_int_equal(namespace_finish(&p->site, &err), 0);
}

#define PLACE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    PLACE(test_layer_goes_where_it_can_be_mapped),
	    PLACE(test_no_place_can_be_mapped),
	    PLACE(test_ordinary_user),
	    PLACE(test_prepare_again_is_the_same),
	    PLACE(test_probe_tries_with_the_layer_that_is_there),
	    PLACE(test_clone_into_v2),
	};

	/* Mounts of its own, which end with it. */
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
