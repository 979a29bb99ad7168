/*
 * Tests of drivers/namespace/layer.c and layer_note.c: a layer is made once, found again by the
 * next supervisor as long as it is what it would be made today, and never taken from a box.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/namespace/image_host.h"
#include "drivers/namespace/layer.h"
#include "drivers/namespace/layer_note.h"
#include "drivers/namespace/namespace.h"
#include "drivers/namespace/site.h"
#include "lib/fd.h"

#define UID_BASE 1600000000U

struct place {
	char dir[48];
	char own[96];	/* the instance's directory */
	char image[64]; /* an empty root directory: to make its layer takes few files */
	char layer[NS_PATH];
	struct driver_site site;
	struct ns_prepared prep;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct err err = {0};
	FD_SCOPED int fd = -1;

	assert_non_null(p);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/sbxd-test-layer-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->own, sizeof(p->own), "%s/namespace-lay", p->dir);
	(void)snprintf(p->image, sizeof(p->image), "%s/image", p->dir);
	assert_int_equal(mkdir(p->image, 0755), 0);
	p->site = (struct driver_site){
	    .instance = "lay",
	    .runtime_dir = p->dir,
	    .state_dir = p->dir,
	    .uid_base = geteuid() == 0 ? UID_BASE : 0,
	    .prepared = -1,
	};
	fd = site_dir_make(&p->site, &err);
	assert_true(fd >= 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	struct err err = {0};

	assert_int_equal(namespace_finish(&p->site, &err), 0);
	assert_int_equal(rmdir(p->image), 0);
	assert_int_equal(rmdir(p->dir), 0); /* finish() has left nothing */
	free(p);
	return 0;
}

/* What layer_get() gives for the image; p->layer is where. */
static const char *get(struct place *p, const char *image)
{
	struct err err = {0};

	memset(&p->prep, 0, sizeof(p->prep));
	p->site.root = strcmp(image, IMAGE_HOST) ? image : NULL;
	if (layer_get(&p->site, image, &p->prep, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(p->prep.image, image);
	(void)snprintf(p->layer, sizeof(p->layer), "%s", p->prep.lower[0]);
	return p->layer;
}

/* Entries of the instance's directory that are layers, or what belongs to one. */
static int count(const struct place *p, bool notes)
{
	DIR *d = opendir(p->own);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += !strncmp(e->d_name, LAYER_PREFIX, strlen(LAYER_PREFIX)) &&
		     (strlen(e->d_name) > LAYER_NAME) == notes;
	(void)closedir(d);
	return n;
}

static void note_path(const char *layer, char out[NS_PATH + 8])
{
	(void)snprintf(out, NS_PATH + 8, "%s.made", layer);
}

/* Layer and note are still there: boxes may live on them. */
static void assert_stays(const char *layer)
{
	char note[NS_PATH + 8];
	char tmp[NS_PATH + 8];

	note_path(layer, note);
	(void)snprintf(tmp, sizeof(tmp), "%s/tmp", layer);
	assert_int_equal(access(note, F_OK), 0);
	assert_int_equal(access(tmp, F_OK), 0);
}

static void test_a_layer_is_made_once(void **state)
{
	struct place *p = *state;
	struct ns_prepared first;
	char layer[NS_PATH];

	(void)snprintf(layer, sizeof(layer), "%s", get(p, p->image));
	first = p->prep;
	assert_string_equal(get(p, p->image), layer);
	assert_memory_equal(&p->prep, &first, sizeof(first));
	assert_int_equal(count(p, false), 1);
	assert_int_equal(count(p, true), 1);
}

/* What lies over a root is the same for all; only `host` has one of its own. */
static void test_roots_share_a_layer(void **state)
{
	struct place *p = *state;
	struct err err = {0};
	char layer[NS_PATH];

	assert_int_equal(layer_find_any(&p->site, &p->prep), -ENOENT);
	(void)snprintf(layer, sizeof(layer), "%s", get(p, p->image));
	assert_string_equal(p->prep.lower[1], p->image);
	assert_string_equal(get(p, "/usr"), layer);
	assert_string_equal(p->prep.lower[1], "/usr");
	assert_string_not_equal(get(p, IMAGE_HOST), layer);
	assert_int_equal(count(p, false), 2);
	assert_int_equal(layer_find_any(&p->site, &p->prep), 0);
	p->site.root = NULL;
	assert_int_equal(layer_get(&p->site, "python:3", &p->prep, &err), -EINVAL);
}

/* The layer of `host` has flags and binds too. */
static void test_host_is_found_whole(void **state)
{
	struct place *p = *state;
	struct ns_prepared first;

	(void)get(p, IMAGE_HOST);
	first = p->prep;
	assert_true(first.flags & NS_F_USR);
	(void)get(p, IMAGE_HOST);
	assert_memory_equal(&p->prep, &first, sizeof(first));
	assert_int_equal(count(p, false), 1);
}

typedef void spoil_fn(struct place *p, const char *layer);

/* After `spoil` the layer does not count, but stays. */
static void assert_made_anew(struct place *p, spoil_fn *spoil)
{
	char layer[NS_PATH];

	(void)snprintf(layer, sizeof(layer), "%s", get(p, p->image));
	spoil(p, layer);
	assert_string_not_equal(get(p, p->image), layer);
	assert_stays(layer);
	assert_stays(p->layer);
	assert_int_equal(count(p, false), 2);
	(void)snprintf(layer, sizeof(layer), "%s", p->layer);
	assert_string_equal(get(p, p->image), layer);
}

static void spoil_ids(struct place *p, const char *layer)
{
	(void)layer;
	p->site.uid_base += DRIVER_UIDS;
}

static void test_other_ids(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_made_anew(*state, spoil_ids);
}

static void spoil_note_at(const char *layer, off_t at)
{
	char path[NS_PATH + 8];
	char byte;
	int fd;

	note_path(layer, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte = (char)~byte;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	(void)close(fd);
}

/* Sizes, then the version, the boot and the program: each in the first bytes. */
static void spoil_size(struct place *p, const char *layer)
{
	(void)p;
	spoil_note_at(layer, 0);
}

static void spoil_version(struct place *p, const char *layer)
{
	(void)p;
	spoil_note_at(layer, 8);
}

static void spoil_boot(struct place *p, const char *layer)
{
	(void)p;
	spoil_note_at(layer, 8 + 24);
}

static void spoil_program(struct place *p, const char *layer)
{
	(void)p;
	spoil_note_at(layer, 8 + 24 + 40);
}

static void test_another_build_of_the_program(void **state)
{
	static spoil_fn *const spoils[] = {spoil_size, spoil_version, spoil_boot, spoil_program};
	struct place *p = *state;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
		assert_made_anew(p, spoils[i]);
		assert_int_equal(namespace_finish(&p->site, &err), 0);
		(void)close(site_dir_make(&p->site, &err));
	}
}

static void spoil_end(struct place *p, const char *layer)
{
	char path[NS_PATH + 8];
	struct stat st;

	(void)p;
	note_path(layer, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
}

static void test_a_note_that_is_not_whole(void **state)
{
	assert_made_anew(*state, spoil_end);
}

static void test_a_layer_that_is_gone_or_another(void **state)
{
	struct place *p = *state;
	char layer[NS_PATH];

	(void)snprintf(layer, sizeof(layer), "%s", get(p, p->image));
	assert_int_equal(record_remove_tree(AT_FDCWD, layer), 0);
	assert_string_not_equal(get(p, p->image), layer);
	(void)snprintf(layer, sizeof(layer), "%s", p->layer);
	assert_int_equal(mkdir(strcat(p->layer, "x"), 0755), 0); /* so that no inode comes again */
	assert_int_equal(record_remove_tree(AT_FDCWD, layer), 0);
	assert_int_equal(rename(p->layer, layer), 0);
	assert_string_not_equal(get(p, p->image), layer);
	assert_stays(p->layer);
}

/* Dies at a fault point: the layer of it goes with the next, the others stay. */
static void die_at(struct place *p, const char *point)
{
	char fault[80];
	struct err err = {0};
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)snprintf(fault, sizeof(fault), "driver.namespace.prepare.%s=kill", point);
		if (setenv("SBX_FAULT", fault, 1) == 0)
			(void)layer_get(&p->site, p->image, &p->prep, &err);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void test_what_a_killed_one_began_goes(void **state)
{
	struct place *p = *state;
	char other[NS_PATH];

	(void)snprintf(other, sizeof(other), "%s", get(p, IMAGE_HOST));
	die_at(p, "layer");
	assert_int_equal(count(p, false), 2);
	die_at(p, "noted");
	assert_int_equal(count(p, false), 2);
	assert_int_equal(count(p, true), 2); /* a whole one, and one that is not */
	assert_string_equal(get(p, IMAGE_HOST), other);
	assert_int_equal(count(p, false), 1);
	assert_int_equal(count(p, true), 1);
}

static void test_nothing_else_is_swept(void **state)
{
	static const char *const names[] = {"boxes", "image-", "image-toolong", "imageXXXXXXX"};
	struct place *p = *state;
	char path[160];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", p->own, names[i]);
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
	assert_int_equal(layer_note_sweep(p->own), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", p->own, names[i]);
		assert_int_equal(access(path, F_OK), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/missing", p->own);
	assert_int_equal(layer_note_sweep(path), 0);
}

/* The host's files are mounted over for this process alone. */
static void test_the_stamp_of_host_sees_changes(void **state)
{
	struct place *p = *state;
	const struct timespec past[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char path[96];
	uint64_t before = image_stamp(IMAGE_HOST);
	uint64_t other;
	int fd;

	assert_int_equal(image_stamp(IMAGE_HOST), before);
	if (geteuid() != 0 || access("/etc/services", F_OK) < 0)
		skip();
	(void)snprintf(path, sizeof(path), "%s/services", p->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(mount(path, "/etc/services", NULL, MS_BIND, NULL), 0);
	other = image_stamp(IMAGE_HOST);
	assert_int_not_equal(other, before);
	assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0); /* it is written to */
	assert_int_not_equal(image_stamp(IMAGE_HOST), other);
	assert_int_equal(umount("/etc/services"), 0);
	assert_int_equal(image_stamp(IMAGE_HOST), before);
	assert_int_equal(unlink(path), 0);
}

#define PLACE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    PLACE(test_a_layer_is_made_once),
	    PLACE(test_roots_share_a_layer),
	    PLACE(test_host_is_found_whole),
	    PLACE(test_other_ids),
	    PLACE(test_another_build_of_the_program),
	    PLACE(test_a_note_that_is_not_whole),
	    PLACE(test_a_layer_that_is_gone_or_another),
	    PLACE(test_what_a_killed_one_began_goes),
	    PLACE(test_nothing_else_is_swept),
	    PLACE(test_the_stamp_of_host_sees_changes),
	};

	/* Mounts of its own, which end with it. */
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
