/* Disks and templates: which machines have them, and what of them goes when there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/qemu/room.h"
#include "drivers/qemu/store.h"
#include "drivers/qemu/template_size.h"
#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define MIB (1024ULL * 1024ULL)

struct shelf {
	char dir[64];
	struct driver_site site;
	struct err err;
	int clock; /* each entry is used later than the one before it */
};

static int setup(void **state)
{
	struct shelf *s = calloc(1, sizeof(*s));
	char path[80];

	assert_non_null(s);
	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/sbxd-room-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	(void)snprintf(path, sizeof(path), "%s/qemu", s->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	s->site.state_dir = s->dir;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct shelf *s = *state;

	assert_int_equal(record_remove_tree(AT_FDCWD, s->dir), 0);
	free(s);
	return 0;
}

static const char *path_of(const struct shelf *s, const char *name)
{
	static char path[160];

	(void)snprintf(path, sizeof(path), "%s/qemu/%s", s->dir, name);
	return path;
}

static void fill(const char *path, unsigned int mib)
{
	FD_SCOPED int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)(mib * MIB)), 0);
}

static void used_later(struct shelf *s, const char *path)
{
	const struct timespec times[2] = {{.tv_sec = 1000 + s->clock}, {.tv_sec = 1000 + s->clock}};

	s->clock++;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void put_disk(struct shelf *s, const char *name, unsigned int mib)
{
	fill(path_of(s, name), mib);
	used_later(s, path_of(s, name));
}

static void put_template(struct shelf *s, const char *name, unsigned int mib)
{
	char memory[160];

	assert_int_equal(mkdir(path_of(s, name), 0700), 0);
	(void)snprintf(memory, sizeof(memory), "%s/memory", path_of(s, name));
	fill(memory, mib);
	used_later(s, path_of(s, name));
}

static bool is_there(const struct shelf *s, const char *name)
{
	return access(path_of(s, name), F_OK) == 0;
}

static int hold(const struct shelf *s, const char *name)
{
	int fd = open(path_of(s, name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(store_hold(fd, path_of(s, name), clock_now_ns() + NS_PER_S), 0);
	return fd;
}

static uint32_t holders(const struct shelf *s, const char *name)
{
	struct store_census c;
	uint32_t n = UINT32_MAX;

	assert_int_equal(store_census_take(&s->site, &c), 0);
	for (size_t i = 0; i < c.count; i++) {
		if (!strcmp(c.items[i].name, name))
			n = c.items[i].holders;
	}
	store_census_free(&c);
	return n;
}

static void test_machines_are_counted(void **state)
{
	struct shelf *s = *state;
	int a;
	int b;
	int copy;

	put_template(s, "template-aa", 1);
	assert_int_equal(holders(s, "template-aa"), 0);
	a = hold(s, "template-aa/memory");
	b = hold(s, "template-aa/memory");
	assert_int_equal(holders(s, "template-aa"), 2);
	/* A copy of a descriptor is the same machine, and keeps it when the first is closed. */
	copy = dup(a);
	fd_close(&a);
	assert_int_equal(holders(s, "template-aa"), 2);
	assert_int_equal(store_take_out(path_of(s, "template-aa")), -EBUSY);
	assert_true(is_there(s, "template-aa"));
	fd_close(&copy);
	assert_int_equal(holders(s, "template-aa"), 1);
	fd_close(&b);
	assert_int_equal(holders(s, "template-aa"), 0);
	assert_int_equal(store_take_out(path_of(s, "template-aa")), 0);
	assert_int_equal(store_take_out(path_of(s, "template-aa")), -ENOENT);
	assert_false(is_there(s, "template-aa"));
}

/* Whoever has had it open when it went must not believe that it is kept. */
static void test_who_is_too_late_is_told(void **state)
{
	struct shelf *s = *state;
	FD_SCOPED int fd = -1;

	put_disk(s, "image-aa", 1);
	fd = open(path_of(s, "image-aa"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_take_out(path_of(s, "image-aa")), 0);
	assert_int_equal(store_hold(fd, path_of(s, "image-aa"), clock_now_ns()), -EIDRM);
	put_disk(s, "image-aa", 1); /* another one of that name */
	assert_int_equal(store_hold(fd, path_of(s, "image-aa"), clock_now_ns()), -EIDRM);
}

/* What happens once, right before the next lock is asked for. */
static void (*before_lock)(void);
static char between[160];
static int between_fd = -1;

/* In the place of the C library's. */
int flock(int fd, int operation)
{
	void (*happens)(void) = before_lock;

	before_lock = NULL;
	if (happens)
		happens();
	return (int)syscall(SYS_flock, fd, operation);
}

/* Another removes it, and a third makes it anew, for a machine. */
static void made_anew(void)
{
	assert_int_equal(unlink(between), 0);
	fill(between, 1);
	between_fd = open(between, O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_hold(between_fd, between, clock_now_ns() + NS_PER_S), 0);
}

static void test_what_is_made_anew_meanwhile_stays(void **state)
{
	struct shelf *s = *state;

	put_disk(s, "image-aa", 1);
	(void)snprintf(between, sizeof(between), "%s", path_of(s, "image-aa"));
	before_lock = made_anew;
	assert_int_equal(store_take_out(between), -EBUSY);
	assert_true(is_there(s, "image-aa"));
	fd_close(&between_fd);
	assert_int_equal(store_take_out(between), 0);
}

static void test_who_looks_is_waited_for(void **state)
{
	struct shelf *s = *state;
	FD_SCOPED int looks = -1;
	FD_SCOPED int fd = -1;

	put_disk(s, "image-aa", 1);
	looks = open(path_of(s, "image-aa"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(looks, LOCK_EX), 0);
	fd = open(path_of(s, "image-aa"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(
	    store_hold(fd, path_of(s, "image-aa"), clock_now_ns() + NS_PER_MS), -ETIMEDOUT);
	fd_close(&looks);
	assert_int_equal(store_hold(fd, path_of(s, "image-aa"), clock_now_ns() + NS_PER_S), 0);
}

static void test_the_longest_unused_goes_first(void **state)
{
	struct shelf *s = *state;
	uint64_t left = 0;

	put_disk(s, "image-aa", 2);
	put_template(s, "template-bb", 2);
	put_disk(s, "image-cc", 2);
	put_disk(s, "kernel-dd", 2); /* not among what goes */
	used_later(s, path_of(s, "image-aa"));
	assert_int_equal(store_make_room(&s->site, 5 * MIB, &left), 0);
	assert_in_range(left, 4 * MIB, 5 * MIB);
	assert_false(is_there(s, "template-bb"));
	assert_true(is_there(s, "image-aa") && is_there(s, "image-cc"));
	assert_int_equal(store_make_room(&s->site, 3 * MIB, &left), 0);
	assert_false(is_there(s, "image-cc"));
	assert_true(is_there(s, "image-aa") && is_there(s, "kernel-dd"));
}

static void test_what_a_machine_has_stays(void **state)
{
	struct shelf *s = *state;
	uint64_t left = 0;
	FD_SCOPED int disk = -1;
	FD_SCOPED int memory = -1;

	put_disk(s, "image-aa", 2);
	put_template(s, "template-bb", 2);
	put_disk(s, "image-cc", 2);
	disk = hold(s, "image-aa");
	memory = hold(s, "template-bb/memory");
	assert_int_equal(store_make_room(&s->site, 0, &left), 0);
	assert_in_range(left, 4 * MIB, 5 * MIB);
	assert_true(is_there(s, "image-aa") && is_there(s, "template-bb"));
	assert_false(is_there(s, "image-cc"));
	fd_close(&memory);
	assert_int_equal(store_make_room(&s->site, 0, &left), 0);
	assert_false(is_there(s, "template-bb"));
	assert_true(is_there(s, "image-aa"));
}

/* A month unused, but in use by a machine that has run for longer. */
static void test_a_sweep_leaves_what_a_machine_has(void **state)
{
	struct shelf *s = *state;
	FD_SCOPED int disk = -1;

	put_disk(s, "image-aa", 1);
	put_disk(s, "image-bb", 1);
	disk = hold(s, "image-aa");
	store_sweep(&s->site, STORE_UNUSED_S);
	assert_true(is_there(s, "image-aa"));
	assert_false(is_there(s, "image-bb"));
}

static void test_room_is_made_or_refused(void **state)
{
	struct shelf *s = *state;
	FD_SCOPED int disk = -1;

	put_disk(s, "image-aa", 4);
	put_template(s, "template-bb", 4);
	assert_int_equal(room_make(&s->site, 0, 1000 * MIB, &s->err), 0); /* no limit */
	assert_int_equal(room_make(&s->site, 13 * MIB, 4 * MIB, &s->err), 0);
	assert_true(is_there(s, "image-aa") && is_there(s, "template-bb"));
	disk = hold(s, "image-aa");
	assert_int_equal(room_make(&s->site, 10 * MIB, 4 * MIB, &s->err), 0);
	assert_true(is_there(s, "image-aa"));
	assert_false(is_there(s, "template-bb"));
	assert_int_equal(room_make(&s->site, 7 * MIB, 4 * MIB, &s->err), -EDQUOT);
	assert_non_null(strstr(s->err.text, "4 MiB have no room in images.cache_mib (7)"));
	assert_true(is_there(s, "image-aa"));
	/* Nothing goes for what has no room even then. */
	put_template(s, "template-bb", 1);
	assert_int_equal(room_make(&s->site, 7 * MIB, 4 * MIB, &s->err), -EDQUOT);
	assert_true(is_there(s, "template-bb"));
}

static void test_what_had_no_room_is_known(void **state)
{
	struct shelf *s = *state;
	const uint8_t digest[DIGEST_LEN] = {1, 2, 3};
	const uint8_t other[DIGEST_LEN] = {1, 2, 4};

	assert_int_equal(template_size_read(&s->site, digest), 0);
	template_size_note(&s->site, digest, 123456789);
	template_size_note(&s->site, digest, 12345678901);
	assert_int_equal(template_size_read(&s->site, digest), 12345678901);
	template_size_note(&s->site, digest, 5); /* no digit of another number stays */
	assert_int_equal(template_size_read(&s->site, digest), 5);
	assert_int_equal(template_size_read(&s->site, other), 0);
}

static void test_the_limit_is_the_configured_one(void **state)
{
	static const char text[] = "qemu.accel=tcg\0images.cache_mib=3";
	const struct driver_options given = {text, sizeof(text)};

	(void)state;
	assert_int_equal(room_limit(&given), 3 * MIB);
	assert_int_equal(room_limit(&(struct driver_options){0}), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TEST(test_machines_are_counted),
	    TEST(test_who_is_too_late_is_told),
	    TEST(test_what_is_made_anew_meanwhile_stays),
	    TEST(test_who_looks_is_waited_for),
	    TEST(test_the_longest_unused_goes_first),
	    TEST(test_what_a_machine_has_stays),
	    TEST(test_a_sweep_leaves_what_a_machine_has),
	    TEST(test_room_is_made_or_refused),
	    TEST(test_what_had_no_room_is_known),
	    TEST(test_the_limit_is_the_configured_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
