/* Tests of shm/segment_attach.c. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "tests/unit/shm/attach_testing.h"

static void test_absent(void **state)
{
	struct segment seg;
	struct err err = {0};

	assert_int_equal(segment_probe(*state, &err), SEGMENT_ABSENT);
	assert_int_equal(err.code, 0);
	assert_int_equal(segment_attach(*state, false, &seg, &err), -ENOENT);
	assert_int_equal(err.code, ENOENT);
}

static void test_live_may_be_read_but_not_taken(void **state)
{
	const char *name = *state;
	struct segment seg;
	struct segment view;
	struct err err = {0};
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
	assert_int_equal(segment_create(name, "unit", SLOTS, 2, &seg, NULL), 0);
	assert_int_equal(segment_probe(name, &err), SEGMENT_LIVE);
	assert_non_null(strstr(err.text, pid));
	assert_int_equal(segment_attach(name, true, &view, &err), -EBUSY);
	assert_non_null(strstr(err.text, pid));

	assert_int_equal(segment_attach(name, false, &view, &err), 0);
	assert_int_equal(view.fd, -1);
	assert_false(view.writable);
	assert_int_equal(segment_validate(&view, NULL, 0), 0);
	segment_close(&view);
	/* Closing a view does not let the supervisor's lock go. */
	assert_int_equal(segment_attach(name, true, &view, &err), -EBUSY);
	segment_close(&seg);
}

static void write_to_view(void *ctx)
{
	struct segment view;

	if (segment_attach(ctx, false, &view, NULL) < 0)
		_exit(1);
	(void)signal(SIGSEGV, SIG_DFL);
	atomic_store(&view.header->heartbeat_ns, 0);
	_exit(2);
}

static void test_a_view_is_read_only_memory(void **state)
{
	struct segment seg;
	int status = 0;
	pid_t pid;

	assert_int_equal(segment_create(*state, "unit", SLOTS, 2, &seg, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_to_view(*state);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	segment_close(&seg);
}

static void test_orphaned_is_taken_over(void **state)
{
	const char *name = *state;
	struct segment seg;
	struct err err = {0};
	uint64_t start = 0;

	die_after(create_and_leave, *state);
	assert_int_equal(segment_probe(name, &err), SEGMENT_ORPHANED);
	assert_int_equal(segment_attach(name, true, &seg, &err), 0);
	assert_true(seg.writable);
	assert_true(seg.fd >= 0);
	assert_int_equal(proc_start_time(getpid(), &start), 0);
	assert_int_equal(atomic_load(&seg.header->supervisor_pid), getpid());
	assert_int_equal(atomic_load(&seg.header->supervisor_start), start);
	assert_int_equal(atomic_load(&seg.header->supervisor_gen), 2);
	assert_int_equal(segment_probe(name, &err), SEGMENT_LIVE);
	assert_int_equal(segment_validate(&seg, NULL, 0), 0);
	segment_close(&seg);

	/* Left on purpose: the lock is free and the segment waits, though this process lives on. */
	assert_int_equal(segment_probe(name, &err), SEGMENT_ORPHANED);
	assert_int_equal(segment_attach(name, true, &seg, &err), 0);
	assert_int_equal(atomic_load(&seg.header->supervisor_gen), 3);
	segment_close(&seg);
}

/* A supervisor that is dead but not yet reaped is dead. */
static void test_a_zombie_supervises_nothing(void **state)
{
	siginfo_t info;
	struct segment seg;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		create_and_leave(*state);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(segment_probe(*state, NULL), SEGMENT_ORPHANED);
	assert_int_equal(segment_attach(*state, true, &seg, NULL), 0);
	segment_close(&seg);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The pid runs, but it is not the process that signed. */
static void test_a_reused_pid_is_not_the_supervisor(void **state)
{
	int32_t pid = (int32_t)getpid();
	uint64_t start = 1;

	die_after(create_and_leave, *state);
	scribble(*state, offsetof(struct shm_header, supervisor_pid), &pid, sizeof(pid));
	scribble(*state, offsetof(struct shm_header, supervisor_start), &start, sizeof(start));
	assert_int_equal(segment_probe(*state, NULL), SEGMENT_ORPHANED);
	assert_false(segment_supervisor_alive(0, 0));
	assert_false(segment_supervisor_alive(-1, 0));
	assert_int_equal(proc_start_time(getpid(), &start), 0);
	assert_true(segment_supervisor_alive(pid, start));
}

static void create_and_die_unfinished(void *ctx)
{
	(void)setenv("SBX_FAULT", "segment-create=kill", 1);
	create_and_leave(ctx);
}

static void test_never_finished_by_a_dead_maker(void **state)
{
	die_after(create_and_die_unfinished, *state);
	assert_foreign(*state, "never finished");
}

static void test_being_made_by_a_live_maker(void **state)
{
	struct segment seg;
	struct err why = {0};
	uint64_t magic = 0;

	assert_int_equal(segment_create(*state, "unit", SLOTS, 2, &seg, NULL), 0);
	scribble(*state, 0, &magic, sizeof(magic));
	assert_int_equal(segment_probe(*state, &why), SEGMENT_LIVE);
	assert_non_null(strstr(why.text, "being made"));
	segment_close(&seg);
}

static void test_files_that_others_may_write_are_foreign(void **state)
{
	int fd;

	die_after(create_and_leave, *state);
	fd = shm_open(*state, O_RDWR | O_CLOEXEC, 0);
	assert_int_equal(fchmod(fd, 0660), 0);
	assert_foreign(*state, "may write");
	assert_int_equal(fchmod(fd, 0642), 0);
	assert_foreign(*state, "may write");
	assert_int_equal(fchmod(fd, SHM_MODE), 0);
	assert_int_equal(segment_probe(*state, NULL), SEGMENT_ORPHANED);
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, 12345, (gid_t)-1), 0);
		assert_foreign(*state, "uid 12345");
	}
	fd_close(&fd);
}

/* Anybody may put anything into /dev/shm under our name; nothing of it may make us wait. */
static void test_things_that_are_no_files_are_foreign(void **state)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "/dev/shm%s", (const char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_foreign(*state, "regular");
	assert_int_equal(unlink(path), 0);

	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_foreign(*state, "");
	assert_int_equal(unlink(path), 0);
}

static void test_a_damaged_supervisor_lock_is_not_taken(void **state)
{
	struct segment seg;
	pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
	struct err err = {0};

	die_after(create_and_leave, *state);
	scribble(*state, offsetof(struct shm_header, supervisor_lock), &plain, sizeof(plain));
	assert_int_equal(segment_attach(*state, true, &seg, &err), -ENOTRECOVERABLE);
	assert_int_equal(segment_attach(*state, false, &seg, &err), 0);
	assert_int_not_equal(segment_validate(&seg, NULL, 0), 0);
	segment_close(&seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_absent),
	    WITH(test_live_may_be_read_but_not_taken),
	    WITH(test_a_view_is_read_only_memory),
	    WITH(test_orphaned_is_taken_over),
	    WITH(test_a_zombie_supervises_nothing),
	    WITH(test_a_reused_pid_is_not_the_supervisor),
	    WITH(test_never_finished_by_a_dead_maker),
	    WITH(test_being_made_by_a_live_maker),
	    WITH(test_files_that_others_may_write_are_foreign),
	    WITH(test_things_that_are_no_files_are_foreign),
	    WITH(test_a_damaged_supervisor_lock_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
