/*
 * AGENT_WAKE: what a machine does before it says that it is a box of its own. Each call to the
 * kernel is ours here, so that none can be left out unseen: what copies of a machine draw from
 * their kernels differs anyhow, by their interrupts, whether they were given fresh bytes or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest/mux.h"
#include "guest/vm.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NONCE 0x1122334455667788ULL
#define BITS (8 * (int)sizeof(((struct agent_wake *)NULL)->seed))
#define TEXT_MAX 256
#define ANSWER_MAX 1024

/* What a machine does, in the order in which it must. */
enum call {
	CALL_CLOCK,
	CALL_URANDOM, /* opened */
	CALL_ENTROPY,
	CALL_RESEED,
	CALL_HOSTNAME,
	CALL_MACHINE_ID,
	CALL_HOSTNAME_FILE,
	CALL_DISK,
	CALL_THREADS,
	CALLS,
};

static const char *const files[CALLS] = {
    [CALL_URANDOM] = "/dev/urandom",
    [CALL_MACHINE_ID] = "/etc/machine-id",
    [CALL_HOSTNAME_FILE] = "/etc/hostname",
    [CALL_THREADS] = "/proc/sys/kernel/threads-max",
};

/* The step that is named when it fails. */
static const char *const steps[CALLS] = {
    [CALL_CLOCK] = "set the clock",
    [CALL_URANDOM] = "reseed the random pool",
    [CALL_ENTROPY] = "reseed the random pool",
    [CALL_RESEED] = "reseed the random pool",
    [CALL_HOSTNAME] = "set the names",
    [CALL_MACHINE_ID] = "set the names",
    [CALL_HOSTNAME_FILE] = "set the names",
    [CALL_DISK] = "set the size of the disk",
    [CALL_THREADS] = "limit the number of processes",
};

/* The kernel, as the machine under test sees it. */
static struct {
	bool on;
	enum call log[2 * CALLS];
	size_t calls;
	enum call fails; /* CALLS: none */
	int urandom;	 /* the descriptor */
	int fds[CALLS];	 /* what was written to those files */
	struct timespec clock;
	int bits;
	uint8_t pool[sizeof(((struct agent_wake *)NULL)->seed)];
	char hostname[64];
	char disk[128];
} kernel;

/* 0, or -1 with errno when it is this one's turn to fail. */
static int kernel_note(enum call call)
{
	assert_true(kernel.calls < COUNT(kernel.log));
	kernel.log[kernel.calls++] = call;
	if (call != kernel.fails)
		return 0;
	errno = EPERM;
	return -1;
}

/* ---- in place of the C library's ---- */

int clock_settime(clockid_t id, const struct timespec *ts)
{
	assert_int_equal(id, CLOCK_REALTIME);
	kernel.clock = *ts;
	return kernel_note(CALL_CLOCK);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	unsigned int mode = 0;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, unsigned int);
	va_end(ap);
	for (int i = 0; i < CALLS && kernel.on; i++) {
		if (!files[i] || strcmp(files[i], path) != 0)
			continue;
		if (kernel_note((enum call)i) < 0)
			return -1;
		return i == CALL_URANDOM ? (kernel.urandom = dup(kernel.fds[i]))
					 : dup(kernel.fds[i]);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	const struct rand_pool_info *info;
	va_list ap;

	assert_int_equal(fd, kernel.urandom);
	if (request == RNDRESEEDCRNG)
		return kernel_note(CALL_RESEED);
	assert_int_equal(request, RNDADDENTROPY);
	va_start(ap, request);
	info = va_arg(ap, const struct rand_pool_info *);
	va_end(ap);
	assert_int_equal(info->buf_size, sizeof(kernel.pool));
	kernel.bits = info->entropy_count;
	memcpy(kernel.pool, info->buf, sizeof(kernel.pool));
	return kernel_note(CALL_ENTROPY);
}

int sethostname(const char *name, size_t len)
{
	(void)snprintf(kernel.hostname, sizeof(kernel.hostname), "%.*s", (int)len, name);
	return kernel_note(CALL_HOSTNAME);
}

int mount(const char *from, const char *to, const char *type, unsigned long flags, const void *data)
{
	(void)from;
	(void)to;
	(void)type;
	assert_true(flags & MS_REMOUNT);
	(void)snprintf(kernel.disk, sizeof(kernel.disk), "%s", (const char *)data);
	return kernel_note(CALL_DISK);
}

int unlink(const char *path)
{
	if (!kernel.on)
		return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	return 0;
}

/* ---- the machine ---- */

/* What it has said, frame after frame. */
static struct {
	int theirs;
	int ours;
	uint8_t bytes[ANSWER_MAX];
	size_t len;
	size_t at; /* of the next frame */
} answer;

static struct agent_wake copy_of_one(void)
{
	struct agent_wake w = {
	    .nonce = NONCE,
	    .realtime_ns = 1900000000123456789ULL,
	    .flags = AGENT_WAKE_NEW,
	    .disk_mib = 32,
	    .pids_max = 64,
	    .hostname = "box-01020304",
	};

	for (size_t i = 0; i < sizeof(w.seed); i++)
		w.seed[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(w.machine_id); i++)
		w.machine_id[i] = (uint8_t)(i + 1);
	return w;
}

/* Wakes it; vm_wake()'s result. */
static int wake(struct guest *g, const void *w, size_t n, enum call fails)
{
	ssize_t got;
	int rc;

	for (int i = 0; i < CALLS; i++)
		assert_int_equal(
		    ftruncate(kernel.fds[i], 0) | lseek(kernel.fds[i], 0, SEEK_SET), 0);
	kernel.calls = 0;
	kernel.fails = fails;
	kernel.urandom = -1;
	kernel.on = true;
	rc = vm_wake(g, w, n);
	kernel.on = false;
	assert_int_equal(out_flush(&g->out), 0);
	got = recv(answer.ours, answer.bytes, sizeof(answer.bytes), MSG_DONTWAIT);
	answer.len = got > 0 ? (size_t)got : 0;
	answer.at = 0;
	return rc;
}

/* The payload of the next thing that it has said, which must be of this type and size. */
static const uint8_t *next(enum agent_type type, size_t size)
{
	struct agent_head head;
	const uint8_t *payload = answer.bytes + answer.at + AGENT_HEAD_LEN;

	assert_int_equal(
	    agent_get_head(answer.bytes + answer.at, answer.len - answer.at, &head), 1);
	assert_int_equal(head.type, type);
	assert_int_equal(head.size, size);
	answer.at += AGENT_HEAD_LEN + size;
	assert_true(answer.at <= answer.len);
	return payload;
}

static void assert_confirms(void)
{
	const uint64_t nonce = NONCE;

	assert_memory_equal(next(AGENT_PONG, sizeof(nonce)), &nonce, sizeof(nonce));
}

static void assert_no_more(void)
{
	assert_int_equal(answer.at, answer.len);
}

static void assert_wrote(enum call call, const char *text)
{
	char got[TEXT_MAX] = "";

	assert_true(pread(kernel.fds[call], got, sizeof(got) - 1, 0) >= 0);
	assert_string_equal(got, text);
}

static void test_row_19_a_copy_is_reseeded_before_it_is_a_box(void **state)
{
	const struct agent_wake w = copy_of_one();

	assert_int_equal(wake(*state, &w, sizeof(w), CALLS), 0);
	assert_int_equal(kernel.calls, CALLS);
	for (size_t i = 0; i < CALLS; i++)
		assert_int_equal(kernel.log[i], i);
	assert_int_equal(kernel.bits, BITS); /* less would not count as fresh */
	assert_memory_equal(kernel.pool, w.seed, sizeof(w.seed));
	assert_confirms();
	(void)next(AGENT_HELLO, sizeof(struct agent_hello));
	assert_no_more();
}

static void test_row_19_its_clock_is_the_hosts(void **state)
{
	struct agent_wake w = copy_of_one();

	assert_int_equal(wake(*state, &w, sizeof(w), CALLS), 0);
	assert_int_equal(kernel.clock.tv_sec, 1900000000);
	assert_int_equal(kernel.clock.tv_nsec, 123456789);
}

static void test_its_names_and_limits_are_its_own(void **state)
{
	struct agent_wake w = copy_of_one();

	assert_int_equal(wake(*state, &w, sizeof(w), CALLS), 0);
	assert_string_equal(kernel.hostname, "box-01020304");
	assert_wrote(CALL_HOSTNAME_FILE, "box-01020304\n");
	assert_wrote(CALL_MACHINE_ID, "0102030405060708090a0b0c0d0e0f10\n");
	assert_non_null(strstr(kernel.disk, "size=32m"));
}

static void test_what_it_could_not_do_is_told_and_makes_no_box(void **state)
{
	const struct agent_wake w = copy_of_one();

	for (int i = 0; i < CALLS; i++) {
		struct agent_error e;
		const uint8_t *payload;

		assert_int_equal(wake(*state, &w, sizeof(w), (enum call)i), 0);
		assert_int_equal(kernel.calls, i + 1); /* nothing more is tried */
		payload = next(AGENT_ERROR, sizeof(e) + strlen(steps[i]));
		memcpy(&e, payload, sizeof(e));
		assert_int_equal(e.sys_err, EPERM);
		assert_memory_equal(payload + sizeof(e), steps[i], strlen(steps[i]));
		assert_no_more();
	}
}

static void test_one_that_goes_on_gets_the_time_only(void **state)
{
	struct agent_wake w = copy_of_one();

	w.flags = 0;
	assert_int_equal(wake(*state, &w, sizeof(w), CALLS), 0);
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(kernel.log[0], CALL_CLOCK);
	assert_confirms();
	assert_no_more();
}

static void test_what_breaks_the_rules_changes_nothing(void **state)
{
	struct agent_wake w = copy_of_one();

	assert_int_equal(wake(*state, &w, sizeof(w) - 1, CALLS), -EBADMSG);
	w.flags |= 2U;
	assert_int_equal(wake(*state, &w, sizeof(w), CALLS), -EBADMSG);
	w = copy_of_one();
	memset(w.hostname, 'x', sizeof(w.hostname));
	assert_int_equal(wake(*state, &w, sizeof(w), CALLS), -EBADMSG);
	assert_int_equal(kernel.calls, 0);
	assert_no_more();
}

static int set_up(void **state)
{
	struct guest *g = calloc(1, sizeof(*g));

	int ends[2];

	if (!g || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
		return -1;
	answer.theirs = ends[0];
	answer.ours = ends[1];
	mux_init(g, ends[0], ends[0]);
	for (int i = 0; i < CALLS; i++)
		kernel.fds[i] = (int)syscall(SYS_memfd_create, "file", 0);
	*state = g;
	return 0;
}

static int tear_down(void **state)
{
	for (int i = 0; i < CALLS; i++)
		(void)close(kernel.fds[i]);
	(void)close(answer.theirs);
	(void)close(answer.ours);
	free(*state);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_row_19_a_copy_is_reseeded_before_it_is_a_box),
	    cmocka_unit_test(test_row_19_its_clock_is_the_hosts),
	    cmocka_unit_test(test_its_names_and_limits_are_its_own),
	    cmocka_unit_test(test_what_it_could_not_do_is_told_and_makes_no_box),
	    cmocka_unit_test(test_one_that_goes_on_gets_the_time_only),
	    cmocka_unit_test(test_what_breaks_the_rules_changes_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
