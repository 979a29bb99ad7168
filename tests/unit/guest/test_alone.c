/*
 * Tests of guest/alone.c: sbx-guest in a pid namespace of its own among processes of an earlier
 * one, as it comes into a box that it takes over. Root only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define VICTIM "victim"
#define KEEPER "keeper"
#define WAIT_MS 20000

struct space {
	pid_t init;
	int guest; /* the program */
	int to;	   /* the guest's stdin */
	int from;  /* and its stdout */
	int said;  /* and its stderr */
	pid_t entered;
};

static pid_t start(const char *name, void (*fn)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_NAME, name);
		fn();
		_exit(0);
	}
	return pid;
}

static void wait_for_ever(void)
{
	for (;;)
		(void)pause();
}

static void hear_nothing(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_IGN);
	wait_for_ever();
}

static void stand_still(void)
{
	(void)raise(SIGSTOP);
	wait_for_ever();
}

/* Never there for long: each is gone before it can be found, and has left the next. */
static void run_away(void)
{
	while (fork() == 0 || setsid() < 0)
		(void)usleep(200);
}

static void come_back(void)
{
	(void)usleep(1000000);
}

/* PID 1, which keeps a box alive as a shell would: what it sleeps by comes anew when it dies. */
static void be_init(int ready)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0 ||
	    mount("mnt", "/mnt", "tmpfs", 0, "mode=0755") < 0) /* it makes directories there */
		_exit(1);
	(void)start(VICTIM, wait_for_ever);
	(void)start(VICTIM, hear_nothing);
	(void)start(VICTIM, stand_still);
	(void)start(VICTIM, run_away);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		pid_t keeper = start(KEEPER, come_back);

		while (waitpid(-1, NULL, 0) != keeper)
			continue;
	}
}

/* How many processes of that name live in the namespace; they are looked at from outside. */
static unsigned int count(const struct space *s, const char *name)
{
	char path[64];
	char mine[64] = "";
	char its[64];
	char comm[32];
	unsigned int n = 0;
	DIR *dir = opendir("/proc");

	assert_non_null(dir);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", s->init);
	assert_true(readlink(path, mine, sizeof(mine) - 1) > 0);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		FILE *f;

		memset(its, 0, sizeof(its));
		(void)snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", e->d_name);
		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    readlink(path, its, sizeof(its) - 1) < 0 || strcmp(its, mine) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
		f = fopen(path, "re");
		n += f && fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name));
		if (f)
			(void)fclose(f);
	}
	(void)closedir(dir);
	return n;
}

static int setup(void **state)
{
	struct space *s = calloc(1, sizeof(*s));
	int ready[2];
	char byte;

	assert_non_null(s);
	*state = s;
	if (geteuid() != 0)
		return 0;
	s->guest = open(getenv("SBX_GUEST") ? getenv("SBX_GUEST") : "build/check/sbx-guest",
	    O_RDONLY | O_CLOEXEC);
	assert_true(s->guest >= 0 && pipe(ready) == 0);
	s->init = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
	assert_true(s->init >= 0);
	if (s->init == 0)
		be_init(ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return 0;
}

static int teardown(void **state)
{
	struct space *s = *state;

	if (s->init > 0) {
		(void)kill(s->init, SIGKILL);
		(void)waitpid(s->init, NULL, 0);
		(void)close(s->guest);
	}
	free(s);
	return 0;
}

/* In the namespaces of init: from outside, so that the parent is nobody there. */
static void enter(const struct space *s, const int ends[3], bool from_outside)
{
	char path[64];
	char *argv[] = {"sbx-guest", "relay-alone", NULL};
	char *envp[] = {NULL};
	static const char *const kinds[] = {"pid", "mnt"};
	int ns[2];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", s->init, kinds[i]);
		ns[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
	for (int i = 0; i < 2; i++)
		if (setns(ns[i], 0) < 0)
			_exit(120);
	for (int more = from_outside ? 1 : 2; more > 0; more--) {
		int status = 0;
		pid_t pid = fork();

		if (pid > 0) {
			(void)waitpid(pid, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 121);
		}
	}
	for (int i = 0; i < 3; i++)
		(void)dup2(ends[i], i);
	(void)fexecve(s->guest, argv, envp);
	_exit(122);
}

static void run_guest(struct space *s, bool from_outside)
{
	int in[2];
	int out[2];
	int said[2];

	assert_true(
	    pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0);
	s->entered = fork();
	assert_true(s->entered >= 0);
	if (s->entered == 0) {
		(void)close(in[1]);
		(void)close(out[0]);
		enter(s, (const int[3]){in[0], out[1], said[1]}, from_outside);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	(void)close(said[1]);
	s->to = in[1];
	s->from = out[0];
	s->said = said[0];
}

static int end_guest(struct space *s)
{
	int status = -1;

	(void)close(s->to);
	(void)close(s->from);
	(void)close(s->said);
	assert_int_equal(waitpid(s->entered, &status, 0), s->entered);
	return status;
}

static void test_nothing_of_the_one_before_is_left(void **state)
{
	struct space *s = *state;
	struct pollfd p = {.events = POLLIN};
	char byte;

	if (!s->init)
		skip();
	assert_true(count(s, VICTIM) >= 3);
	run_guest(s, true);
	p.fd = s->from;
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(read(s->from, &byte, 1), 1); /* it says hello, and does so alone */
	assert_int_equal(count(s, VICTIM), 0);
	assert_int_equal(count(s, "sbx-guest") + count(s, "3"), 2);
	assert_int_equal(kill(s->init, 0), 0);
	assert_int_equal(end_guest(s), 0);
}

/* It cannot tell the box's processes from those of what started it. */
static void test_who_has_a_parent_there_ends_nobody(void **state)
{
	struct space *s = *state;
	char text[200] = "";
	char byte;

	if (!s->init)
		skip();
	run_guest(s, false);
	assert_int_equal(read(s->from, &byte, 1), 0); /* it ends, and has said nothing there */
	assert_true(read(s->said, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "take over the box: it was not started from outside\n");
	assert_int_not_equal(end_guest(s), 0);
	assert_true(count(s, VICTIM) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_nothing_of_the_one_before_is_left, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_who_has_a_parent_there_ends_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
