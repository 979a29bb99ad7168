/* spawn: what a helper process finds when it begins, and what is left when it cannot. */
#include "tests/unit/supervisor/spawn_testing.h"

/* ---- descriptors ---- */

static void test_descriptors_land_where_they_should(void **state)
{
	struct stat st[3];
	struct stat null;
	struct stat error;
	struct seen s;
	int files[3];
	int other = open("/dev/zero", O_RDONLY); /* not close-on-exec: must not get through */

	(void)state;
	for (int i = 0; i < 3; i++)
		files[i] = any_file(&st[i]);
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_int_equal(fstat(STDERR_FILENO, &error), 0);
	see(&s, (int[SPAWN_FDS]){files[0], -1, files[1], files[2], -1, -1}, 4);
	assert_true(says_fd(&s, 0, &null) && says_fd(&s, 1, &null) && says_fd(&s, 2, &error));
	assert_true(says_fd(&s, 3, &st[0]));
	assert_true(says_fd(&s, 5, &st[1]));
	assert_true(says_fd(&s, 6, &st[2]));
	assert_int_equal(count(&s, "fd "), 7);
	assert_int_equal(fcntl(files[0], F_GETFD), FD_CLOEXEC); /* ours stays ours */
	for (int i = 0; i < 3; i++)
		fd_close(&files[i]);
	fd_close(&other);
}

static void test_a_missing_descriptor_is_closed(void **state)
{
	struct seen s;

	(void)state;
	see(&s, (int[SPAWN_FDS]){-1, -1, -1, -1, -1, -1}, 5);
	assert_int_equal(count(&s, "fd "), 4);
	assert_int_equal(count(&s, "fd 5 "), 1);
	see(&s, (int[SPAWN_FDS]){-1, -1, -1, -1, -1, -1}, 3);
	assert_int_equal(count(&s, "fd "), 4);
	assert_int_equal(count(&s, "fd 3 "), 1);
}

/* The sources stand at the numbers of the targets, turned round. */
static void test_descriptors_that_stand_in_each_others_way(void **state)
{
	struct stat st[3];
	struct seen s;
	int saved[3];
	int file;

	(void)state;
	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(4 + i, F_DUPFD_CLOEXEC, LAST_FD + 10); /* -1: it was not open */
		file = any_file(&st[i]);
		if (file == 4 + i)
			continue;
		assert_int_equal(dup3(file, 4 + i, O_CLOEXEC), 4 + i);
		if (file < 4 || file >= LAST_FD)
			fd_close(&file);
	}
	see(&s, (int[SPAWN_FDS]){-1, 6, 5, 4, -1, -1}, 3);
	assert_true(says_fd(&s, 4, &st[2]));
	assert_true(says_fd(&s, 5, &st[1]));
	assert_true(says_fd(&s, 6, &st[0]));
	assert_int_equal(count(&s, "fd "), 7);
	for (int i = 0; i < 3; i++) {
		(void)close(4 + i);
		if (saved[i] >= 0) {
			assert_int_equal(dup3(saved[i], 4 + i, O_CLOEXEC), 4 + i);
			fd_close(&saved[i]);
		}
	}
}

/* sbxd may have been started without them: then /dev/null is opened as descriptor 0. */
static void test_without_standard_input_of_its_own(void **state)
{
	int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, LAST_FD + 10);
	struct stat null;
	struct seen s;

	(void)state;
	(void)close(STDIN_FILENO);
	see(&s, (int[SPAWN_FDS]){-1, -1, -1, -1, -1, -1}, 3);
	if (saved >= 0) {
		assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
		fd_close(&saved);
	}
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_true(says_fd(&s, 0, &null) && says_fd(&s, 1, &null));
	assert_int_equal(count(&s, "fd "), 4);
}

/* ---- environment, arguments, signals ---- */

static void test_only_what_helpers_use_is_passed_on(void **state)
{
	static const char *const through[] = {
	    "SBX_FAULT_NONE=x", "SBX_=1", "ASAN_OPTIONS=detect_leaks=1", "TSAN_OPTIONS=a=b"};
	static const char *const kept_back[] = {"SBXD_CONFIG=/x", "PATH=/bin", "SAN_OPTIONS=bare",
	    "LD_PRELOAD_NOT=1", "X=SBX_Y", "SAN_OPTIONSX=1", "ASAN_OPTIONS_=1", "noequals"};
	char **before = environ;
	char *entries[16];
	struct seen s;
	char line[64];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(through) / sizeof(through[0]); i++)
		entries[n++] = (char *)(uintptr_t)through[i]; /* only read */
	for (size_t i = 0; i < sizeof(kept_back) / sizeof(kept_back[0]); i++)
		entries[n++] = (char *)(uintptr_t)kept_back[i];
	entries[n] = NULL;
	environ = entries;
	see(&s, (int[SPAWN_FDS]){-1, -1, -1, -1, -1, -1}, 3);
	environ = before;
	for (size_t i = 0; i < sizeof(through) / sizeof(through[0]); i++) {
		(void)snprintf(line, sizeof(line), "env %s", through[i]);
		assert_true(says(&s, line));
	}
	assert_int_equal(count(&s, "env "), sizeof(through) / sizeof(through[0]));
}

static void test_arguments_arrive(void **state)
{
	struct seen s;

	(void)state;
	see(&s, (int[SPAWN_FDS]){-1, -1, -1, -1, -1, -1}, 6);
	assert_true(says(&s, "arg helper") && says(&s, "arg report"));
	assert_true(says(&s, "arg 6") && says(&s, "arg three words here"));
	assert_int_equal(count(&s, "arg "), 4);
}

static void test_signals_are_reset(void **state)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction pipe_before;
	struct sigaction usr_before;
	sigset_t set;
	sigset_t before;
	struct seen s;

	(void)state;
	/* Services are started with SIGPIPE ignored, and sbxd itself blocks what it reads. */
	assert_int_equal(sigaction(SIGPIPE, &ignore, &pipe_before), 0);
	assert_int_equal(sigaction(SIGUSR1, &ignore, &usr_before), 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
	see(&s, (int[SPAWN_FDS]){-1, -1, -1, -1, -1, -1}, 3);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, &set), 0);
	assert_true(sigismember(&set, SIGTERM)); /* ours is as it was */
	assert_int_equal(sigaction(SIGPIPE, &pipe_before, &ignore), 0);
	assert_true(ignore.sa_handler == SIG_IGN);
	assert_int_equal(sigaction(SIGUSR1, &usr_before, NULL), 0);
	assert_true(says(&s, "SigBlk:\t0000000000000000"));
	assert_true(says(&s, "SigIgn:\t0000000000000000"));
}

/* ---- failure ---- */

static void assert_no_children(void)
{
	siginfo_t info;

	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void fails_with(const char *path, const int fds[SPAWN_FDS], int expected)
{
	static const char *const argv[] = {"helper", NULL};
	struct spawned untouched = {.pid = -5, .pidfd = -6, .start = 7};
	int open_before = fd_count_open();

	assert_int_equal(spawn_process(path, argv, fds, &untouched), expected);
	assert_int_equal(fd_count_open(), open_before);
	assert_int_equal(untouched.pid, -5);
	assert_int_equal(untouched.pidfd, -6);
	assert_no_children();
}

static void test_what_cannot_be_run_leaves_nothing(void **state)
{
	static const int none[SPAWN_FDS] = {-1, -1, -1, -1, -1, -1};

	(void)state;
	fails_with("/nowhere/at/all", none, -ENOENT);
	fails_with("/dev/null", none, -EACCES);
	fails_with("/", none, -EACCES);
	fails_with(SELF, (const int[SPAWN_FDS]){STDIN_FILENO, -1, 9999, -1, -1, -1}, -EBADF);
}

/* ---- the end ---- */

static void test_the_pidfd_tells_of_the_end(void **state)
{
	struct spawned child;
	struct pollfd p = {.events = POLLIN};
	uint64_t start = 0;
	int pair[2];

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(spawn_process(SELF, (const char *const[]){"helper", "wait", NULL},
			     (const int[SPAWN_FDS]){pair[0], -1, -1, -1, -1, -1}, &child),
	    0);
	p.fd = child.pidfd;
	assert_int_equal(poll(&p, 1, 0), 0); /* it waits for us */
	assert_int_equal(fcntl(child.pidfd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(proc_start_time(child.pid, &start), 0);
	assert_true(start != 0 && start == child.start);
	fd_close(&pair[1]);
	assert_int_equal(finish(&child), W_EXITCODE(3, 0));
	assert_no_children();
	fd_close(&pair[0]);
}

static void test_a_killed_child_is_reaped(void **state)
{
	struct spawned child;
	int pair[2];

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(spawn_process(SELF, (const char *const[]){"helper", "wait", NULL},
			     (const int[SPAWN_FDS]){pair[0], -1, -1, -1, -1, -1}, &child),
	    0);
	assert_int_equal(proc_signal(child.pidfd, SIGKILL), 0);
	assert_int_equal(finish(&child), W_EXITCODE(0, SIGKILL));
	assert_true(spawn_reap(-1) < 0);
	assert_no_children();
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void test_ends_are_described(void **state)
{
	char text[96];

	(void)state;
	spawn_describe(W_EXITCODE(3, 0), text, sizeof(text));
	assert_string_equal(text, "exited with status 3");
	spawn_describe(W_EXITCODE(0, SIGKILL), text, sizeof(text));
	assert_string_equal(text, "killed by signal 9 (Killed)");
	spawn_describe(-ECHILD, text, sizeof(text));
	assert_string_equal(text, "ended, how is not known");
	spawn_describe(W_EXITCODE(0, SIGKILL), text, 7);
	assert_string_equal(text, "killed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_descriptors_land_where_they_should),
	    cmocka_unit_test(test_a_missing_descriptor_is_closed),
	    cmocka_unit_test(test_descriptors_that_stand_in_each_others_way),
	    cmocka_unit_test(test_without_standard_input_of_its_own),
	    cmocka_unit_test(test_only_what_helpers_use_is_passed_on),
	    cmocka_unit_test(test_arguments_arrive),
	    cmocka_unit_test(test_signals_are_reset),
	    cmocka_unit_test(test_what_cannot_be_run_leaves_nothing),
	    cmocka_unit_test(test_the_pidfd_tells_of_the_end),
	    cmocka_unit_test(test_a_killed_child_is_reaped),
	    cmocka_unit_test(test_ends_are_described),
	};
	char byte;

	if (argc > 2 && !strcmp(argv[1], "report"))
		return report(atoi(argv[2]), argv);
	if (argc > 1 && !strcmp(argv[1], "wait"))
		return read(3, &byte, 1) == 0 ? 3 : 4;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
