/* Tests of shm/segment.c. */
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "shm/ring.h"
#include "shm/warm.h"
#include "tests/unit/shm/shm_testing.h"

static bool name_exists(const char *name)
{
	int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return false;
	fd_close(&fd);
	return true;
}

static void test_names(void **state)
{
	char name[64];
	char small[12];

	(void)state;
	assert_int_equal(segment_name(name, sizeof(name), 1000, "default"), 0);
	assert_string_equal(name, "/sbxd-1000-default");
	assert_int_equal(segment_name(small, sizeof(small), 1000, "a"), -ENAMETOOLONG);
	assert_int_equal(segment_name(small, sizeof(small), 100, "a"), 0);
	assert_string_equal(small, "/sbxd-100-a");
	assert_int_equal(segment_name(name, sizeof(name), 0, ""), -EINVAL);
	assert_int_equal(segment_name(name, sizeof(name), 0, "a/b"), -EINVAL);
	assert_int_equal(segment_name(name, sizeof(name), 0, "1234567890123456789012345678901"), 0);
	assert_int_equal(
	    segment_name(name, sizeof(name), 0, "12345678901234567890123456789012"), -ENAMETOOLONG);
}

static void test_a_new_segment_is_complete(void **state)
{
	struct table t;
	struct err finding = {0};
	struct stat st;
	uint64_t start = 0;
	uint32_t none[1];
	int permits = 0;
	mode_t before = umask(0077);

	(void)state;
	table_open(&t, 33);
	(void)umask(before);
	assert_int_equal(segment_validate(&t.seg, &finding, 1), 0);
	assert_int_equal(fstat(t.seg.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, SHM_MODE);
	assert_int_equal(st.st_size, t.seg.size);
	/* Every block is there: no later write can meet a full file system. */
	assert_true((uint64_t)st.st_blocks * 512 >= t.seg.size);
	assert_int_equal(fcntl(t.seg.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);

	assert_int_equal(proc_start_time(getpid(), &start), 0);
	assert_int_equal(atomic_load(&t.seg.header->supervisor_pid), getpid());
	assert_int_equal(atomic_load(&t.seg.header->supervisor_start), start);
	assert_int_equal(atomic_load(&t.seg.header->supervisor_gen), 1);
	assert_int_equal(atomic_load(&t.seg.header->supervisor_state), SUPERVISOR_STARTING);
	assert_int_equal(atomic_load(&t.seg.header->state_count[SLOT_FREE]), 33);
	assert_int_equal(t.seg.header->owner_uid, geteuid());
	assert_string_equal(t.seg.header->instance, "unit");
	assert_int_equal(sem_getvalue(&t.seg.header->boot_slots, &permits), 0);
	assert_int_equal(permits, 4);
	assert_int_equal(ring_newest(&t.seg), 0);
	assert_int_equal(warm_list(&t.seg, none, 1), 0);
	/* The lock is held by this thread. */
	assert_int_equal(pthread_mutex_trylock(&t.seg.header->supervisor_lock), EBUSY);

	assert_int_equal(segment_reset_boots(&t.seg, 7), 0);
	assert_int_equal(sem_getvalue(&t.seg.header->boot_slots, &permits), 0);
	assert_int_equal(permits, 7);
	assert_int_equal(segment_reset_boots(&t.seg, 0), -EINVAL);
	table_close(&t);
	assert_false(name_exists(t.name));
}

static void test_a_name_that_is_taken_is_left_alone(void **state)
{
	struct table t;
	struct segment other = {.fd = 7};
	struct err err = {0};

	(void)state;
	table_open(&t, 2);
	assert_int_equal(segment_create(t.name, "unit", 2, 1, &other, &err), -EEXIST);
	assert_int_equal(err.code, EEXIST);
	assert_non_null(strstr(err.text, t.name));
	assert_int_equal(other.fd, 7);
	assert_int_equal(segment_validate(&t.seg, NULL, 0), 0);
	table_close(&t);
}

static void test_impossible_wishes_leave_nothing(void **state)
{
	static const struct {
		uint32_t slots;
		uint32_t boots;
		int code;
	} wishes[] = {
	    {0, 1, EINVAL},
	    {SHM_MAX_SLOTS + 1, 1, EINVAL},
	    {UINT32_MAX, 1, EINVAL},
	    {1, 0, EINVAL},
	    {1, UINT32_MAX, EINVAL},
	};
	struct segment seg;
	struct err err;
	char name[64];

	(void)state;
	table_name(name);
	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		assert_int_equal(
		    segment_create(name, "unit", wishes[i].slots, wishes[i].boots, &seg, &err),
		    -wishes[i].code);
		assert_false(name_exists(name));
	}
	assert_int_equal(
	    segment_create(name, "a-name-of-more-than-thirty-one-characters", 1, 1, &seg, &err),
	    -ENAMETOOLONG);
	assert_false(name_exists(name));
}

static void test_a_failure_half_way_leaves_nothing(void **state)
{
	struct segment seg;
	struct err err = {0};
	char name[64];
	int fds = fd_count_open();

	(void)state;
	table_name(name);
	(void)setenv("SBX_FAULT", "segment-reserve=fail", 1);
	assert_int_equal(segment_create(name, "unit", 4, 1, &seg, &err), -ENOSPC);
	(void)unsetenv("SBX_FAULT");
	assert_non_null(strstr(err.text, "No space left"));
	assert_false(name_exists(name));
	assert_int_equal(fd_count_open(), fds);
}

/* In a mount namespace of its own whose /dev/shm holds next to nothing. Exit: 0 fine, 77 not
 * possible here. */
static void create_in_full_shm(void)
{
	struct segment seg;
	struct err err = {0};
	char name[64];

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") < 0)
		_exit(77);
	(void)segment_name(name, sizeof(name), geteuid(), "full");
	if (segment_create(name, "unit", 1024, 1, &seg, &err) != -ENOSPC)
		_exit(1);
	_exit(name_exists(name) ? 2 : 0);
}

static void test_a_full_dev_shm_is_an_error_not_a_signal(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		create_in_full_shm();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_closing_twice_and_closing_a_copy(void **state)
{
	struct table t;
	int status = 0;
	int fds = fd_count_open();
	pid_t pid;

	(void)state;
	table_open(&t, 2);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) { /* a forked child's copy is not the supervisor's */
		segment_close(&t.seg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(atomic_load(&t.seg.header->supervisor_state), SUPERVISOR_STARTING);
	segment_close(&t.seg);
	assert_int_equal(fd_count_open(), fds);
	assert_null(t.seg.header);
	segment_close(&t.seg);
	table_close(&t);
	assert_int_equal(segment_unlink(t.name), -ENOENT);
}

static void test_only_pages_of_slots_can_be_mapped(void **state)
{
	struct table t;
	uint64_t off;

	(void)state;
	table_open(&t, 4);
	off = t.seg.header->slots_off;
	for (uint32_t i = 0; i < 4; i++) {
		struct shm_page *page = segment_map_page(t.seg.fd, off, i);

		assert_non_null(page);
		assert_int_equal(page->slot, i);
		assert_int_equal(munmap(page, SHM_PAGE), 0);
	}
	static const struct {
		int64_t shift;
		uint32_t slot;
	} wrong[] = {{0, 4}, {0, SHM_MAX_SLOTS}, {0, UINT32_MAX}, {1, 0}, {SHM_PAGE, 3}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		errno = 0;
		assert_null(
		    segment_map_page(t.seg.fd, off + (uint64_t)wrong[i].shift, wrong[i].slot));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(segment_map_page(t.seg.fd, 0, 0)); /* the header is no slot */
	assert_null(segment_map_page(t.seg.fd, UINT64_MAX - SHM_PAGE + 1, 1));
	errno = 0;
	assert_null(segment_map_page(-1, off, 0));
	assert_int_equal(errno, EBADF);
	table_close(&t);
}

/* How many lines of /proc/self/maps are of the segment, and the range of the last one. */
static int count_mappings(const char *name, unsigned long *from, unsigned long *to)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 200];
	int count = 0;

	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, name))
			continue;
		count++;
		if (sscanf(line, "%lx-%lx", from, to) != 2)
			count = -1000;
	}
	(void)fclose(maps);
	return count;
}

/* What a worker does with the descriptor it is given; then it misbehaves. */
static void misbehave_as_worker(struct table *t, uint32_t own, _Atomic uint32_t *target)
{
	struct shm_page *page = segment_map_page(t->seg.fd, t->seg.header->slots_off, own);
	unsigned long from = 0;
	unsigned long to = 0;

	/* An exec'ed worker inherits neither the mapping nor, once closed, the descriptor. */
	(void)munmap(t->seg.header, t->seg.size);
	(void)close(t->seg.fd);
	if (!page || count_mappings(t->name, &from, &to) != 1)
		_exit(1);
	if (from != (unsigned long)page || to - from != SHM_PAGE)
		_exit(2);
	slot_publish_work(page, &(struct slot_work){.generation = 5});
	(void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would turn it into an exit */
	atomic_store(target, 1);
	_exit(3);
}

static void test_a_worker_can_write_its_own_page_only(void **state)
{
	struct table t;
	struct slot_work work;

	(void)state;
	table_open(&t, 5);
	_Atomic uint32_t *const targets[] = {
	    &t.seg.slots[0].page.in_flight,
	    &t.seg.slots[1].page.in_flight,
	    &t.seg.slots[2].sup_seq, /* whose box its own is */
	    (_Atomic uint32_t *)(uintptr_t)&t.seg.slots[2].leases[SHM_LEASES - 1].id,
	    &t.seg.slots[3].page.in_flight,
	    &t.seg.slots[3].sup_seq,
	};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		int status = 0;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			misbehave_as_worker(&t, 2, targets[i]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
			fail_msg("wait status %x for target %zu", (unsigned int)status, i);
		assert_int_equal(atomic_load(targets[i]), 0);
	}
	assert_int_equal(slot_read_work(&t.seg.slots[2].page, &work), 0);
	assert_int_equal(work.generation, 5); /* its own page it could write */
	table_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_a_new_segment_is_complete),
	    cmocka_unit_test(test_a_name_that_is_taken_is_left_alone),
	    cmocka_unit_test(test_impossible_wishes_leave_nothing),
	    cmocka_unit_test(test_a_failure_half_way_leaves_nothing),
	    cmocka_unit_test(test_a_full_dev_shm_is_an_error_not_a_signal),
	    cmocka_unit_test(test_closing_twice_and_closing_a_copy),
	    cmocka_unit_test(test_only_pages_of_slots_can_be_mapped),
	    cmocka_unit_test(test_a_worker_can_write_its_own_page_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
