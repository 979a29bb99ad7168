/* The store: made once, whole or not there, whoever dies of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/qemu/store.h"
#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define MANY 8

struct shelf {
	char dir[64];
	struct driver_site site;
	struct err err;
	uint8_t digest[DIGEST_LEN];
};

static int setup(void **state)
{
	struct shelf *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/sbxd-store-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->site.state_dir = s->dir;
	s->digest[0] = 0xab;
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

static uint64_t soon(void)
{
	return clock_now_ns() + 20 * NS_PER_S;
}

static int get(struct shelf *s, struct store_entry *e)
{
	return store_get(&s->site, "image", s->digest, soon(), e, &s->err);
}

static void put_file(const char *path, const char *text)
{
	FD_SCOPED int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int count_files(struct shelf *s)
{
	char command[128];
	FILE *f;
	int n = -1;

	(void)snprintf(command, sizeof(command), "ls %s/qemu | wc -l", s->dir);
	f = popen(command, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &n), 1);
	(void)pclose(f);
	return n;
}

static void test_made_once_and_found_again(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;

	assert_int_equal(get(s, &e), 0);
	assert_int_equal(access(e.path, F_OK), -1);
	put_file(e.new_path, "whole");
	assert_int_equal(store_keep(&e, &s->err), 0);
	assert_int_equal(access(e.path, F_OK), 0);
	assert_int_equal(get(s, &e), 1);
	assert_int_equal(count_files(s), 1);
	s->digest[0]++;
	assert_int_equal(get(s, &e), 0);
	store_give_up(&e);
	assert_int_equal(count_files(s), 1);
}

static void test_who_gives_up_leaves_nothing(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;
	char path[QEMU_PATH + 8];

	assert_int_equal(get(s, &e), 0);
	assert_int_equal(mkdir(e.new_path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/part", e.new_path);
	put_file(path, "half");
	store_give_up(&e);
	assert_int_equal(count_files(s), 0);
	assert_int_equal(get(s, &e), 0);
	store_give_up(&e);
}

/* A maker that is killed: its lock is free, and what it wrote is nobody's. */
static void test_who_dies_leaves_what_the_next_removes(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;
	pid_t maker = fork();

	assert_true(maker >= 0);
	if (maker == 0) {
		if (get(s, &e) != 0)
			_exit(1);
		put_file(e.new_path, "half");
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(maker, NULL, 0), maker);
	assert_int_equal(count_files(s), 2);
	assert_int_equal(get(s, &e), 0);
	assert_int_equal(access(e.new_path, F_OK), -1);
	store_give_up(&e);

	maker = fork();
	assert_true(maker >= 0);
	if (maker == 0) {
		if (get(s, &e) == 0)
			put_file(e.new_path, "half");
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(maker, NULL, 0), maker);
	assert_int_equal(count_files(s), 2);
	store_sweep_dead(&s->site);
	assert_int_equal(count_files(s), 0);
}

static void test_what_is_being_made_is_not_swept(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;

	assert_int_equal(get(s, &e), 0);
	put_file(e.new_path, "half");
	store_sweep_dead(&s->site);
	assert_int_equal(access(e.new_path, F_OK), 0);
	assert_int_equal(store_keep(&e, &s->err), 0);
}

/* Each writes its number where the one that makes it does: one number is all there is. */
static void test_one_of_many_makes_it(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;
	int gate[2];
	pid_t pids[MANY];
	int made = 0;
	char byte;

	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < MANY; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i])
			continue;
		(void)close(gate[1]);
		(void)!read(gate[0], &byte, 1);
		int rc = get(s, &e);

		if (rc == 0) {
			put_file(e.new_path, "one");
			rc = store_keep(&e, &s->err) < 0 ? 2 : 0;
		}
		_exit(rc);
	}
	(void)close(gate[0]);
	(void)close(gate[1]);
	for (int i = 0; i < MANY; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		made += WEXITSTATUS(status) == 0;
	}
	assert_int_equal(made, 1);
	assert_int_equal(count_files(s), 1);
}

static void test_waiting_has_a_bound(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;
	struct store_entry other;

	assert_int_equal(get(s, &e), 0);
	assert_int_equal(
	    store_get(&s->site, "image", s->digest, clock_now_ns() + NS_PER_MS, &other, &s->err),
	    -ETIMEDOUT);
	store_give_up(&e);
}

static void test_what_is_discarded_is_made_anew(void **state)
{
	struct shelf *s = *state;
	struct store_entry e;

	assert_int_equal(get(s, &e), 0);
	assert_int_equal(mkdir(e.new_path, 0700), 0);
	assert_int_equal(store_keep(&e, &s->err), 0);
	store_discard(e.path);
	assert_int_equal(count_files(s), 0);
	assert_int_equal(get(s, &e), 0);
	store_give_up(&e);
}

static void test_what_nobody_uses_goes(void **state)
{
	const struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct shelf *s = *state;
	struct store_entry e;
	char foreign[96];

	assert_int_equal(get(s, &e), 0);
	put_file(e.new_path, "whole");
	assert_int_equal(store_keep(&e, &s->err), 0);
	(void)snprintf(foreign, sizeof(foreign), "%s/qemu/notes", s->dir);
	put_file(foreign, "an administrator's");
	assert_int_equal(utimensat(AT_FDCWD, foreign, past, 0), 0);
	store_sweep(&s->site, STORE_UNUSED_S);
	assert_int_equal(count_files(s), 2);
	assert_int_equal(utimensat(AT_FDCWD, e.path, past, 0), 0);
	assert_int_equal(get(s, &e), 1); /* that was a use */
	store_sweep(&s->site, STORE_UNUSED_S);
	assert_int_equal(count_files(s), 2);
	assert_int_equal(utimensat(AT_FDCWD, e.path, past, 0), 0);
	store_sweep(&s->site, STORE_UNUSED_S);
	assert_int_equal(access(e.path, F_OK), -1);
	assert_int_equal(access(foreign, F_OK), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TEST(test_made_once_and_found_again),
	    TEST(test_who_gives_up_leaves_nothing),
	    TEST(test_who_dies_leaves_what_the_next_removes),
	    TEST(test_what_is_being_made_is_not_swept),
	    TEST(test_one_of_many_makes_it),
	    TEST(test_waiting_has_a_bound),
	    TEST(test_what_is_discarded_is_made_anew),
	    TEST(test_what_nobody_uses_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
