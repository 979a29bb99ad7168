/* The real sbx-guest behind a stream that carries text only. */
#include "tests/unit/guest/process.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "drivers/boxlite/program/pieces.h"
#include "wire/piece.h"

struct relayed {
	pid_t pid;
	int in;
	int out;
	struct piece_way to;
	struct pieces from;
	struct buf bytes; /* what the guest has said, from the beginning */
};

/* It makes directories for its box: not on the host that tests it. */
static bool leave_host(void)
{
	return geteuid() != 0 || (unshare(CLONE_NEWNS) == 0 &&
				     mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
				     mount("mnt", "/mnt", "tmpfs", 0, "mode=0755") == 0);
}

static struct relayed *relayed_start(const char *helper)
{
	struct relayed *r = calloc(1, sizeof(*r));
	int in[2];
	int out[2];

	assert_non_null(r);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		if (!leave_host())
			_exit(97);
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		execl(drive_binary(), "sbx-guest", "relay", helper, (char *)NULL);
		_exit(98);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	r->in = in[1];
	r->out = out[0];
	piece_begin(&r->to);
	pieces_begin(&r->from);
	buf_init(&r->bytes, 1U << 20);
	return r;
}

/* Reads on until `want` bytes are there. False: the stream ended, or was wrong. */
static bool relayed_read(struct relayed *r, size_t want)
{
	while (r->bytes.len < want) {
		char text[4096];
		ssize_t n = read(r->out, text, sizeof(text));

		if (n <= 0 || pieces_take(&r->from, text, (size_t)n, &r->bytes) < 0)
			return false;
	}
	return true;
}

/* One piece with these bytes, of which `flip` (0: none) is another afterwards. */
static void relayed_write(struct relayed *r, const void *bytes, size_t n, size_t flip)
{
	uint8_t piece[PIECE_MAX];

	memcpy(piece + PIECE_HEAD_LEN, bytes, n);
	piece_seal(&r->to, PIECE_DATA, piece, n);
	if (flip)
		piece[flip] ^= 4;
	assert_int_equal(write(r->in, piece, PIECE_HEAD_LEN + n), PIECE_HEAD_LEN + n);
}

static int relayed_end(struct relayed *r)
{
	int status = -1;

	(void)close(r->in);
	(void)close(r->out);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	buf_free(&r->bytes);
	free(r);
	return status;
}

#define HELLO_LEN (AGENT_HEAD_LEN + sizeof(struct agent_hello))

static struct relayed *relayed_greeted(void)
{
	struct relayed *r = relayed_start(drive_files());
	struct agent_head head;

	assert_true(relayed_read(r, HELLO_LEN));
	assert_int_equal(agent_get_head(buf_head(&r->bytes), r->bytes.len, &head), 1);
	assert_int_equal(head.type, AGENT_HELLO);
	return r;
}

#define PING_LEN (AGENT_HEAD_LEN + 3)

static const uint8_t *ping(void)
{
	static uint8_t frame[PING_LEN];

	agent_put_head(frame, AGENT_PING, 0, 0, 0, 3);
	memcpy(frame + AGENT_HEAD_LEN, "\xff\x00\x80", 3);
	return frame;
}

/* A frame in one piece, and one in a piece for each byte. */
static void test_frames_go_through(void **state)
{
	struct relayed *r = relayed_greeted();

	(void)state;
	relayed_write(r, ping(), PING_LEN, 0);
	assert_true(relayed_read(r, HELLO_LEN + PING_LEN));
	assert_memory_equal(buf_head(&r->bytes) + HELLO_LEN + AGENT_HEAD_LEN, "\xff\x00\x80", 3);
	for (size_t i = 0; i < PING_LEN; i++)
		relayed_write(r, ping() + i, 1, 0);
	assert_true(relayed_read(r, HELLO_LEN + 2 * PING_LEN));
	assert_memory_equal(
	    buf_head(&r->bytes) + HELLO_LEN + PING_LEN + AGENT_HEAD_LEN, "\xff\x00\x80", 3);
	assert_int_equal(relayed_end(r), 0);
}

/* What was said before still comes; then what was wrong, and the end. */
static void assert_ends(struct relayed *r, size_t said, enum piece_wrong wrong, uint64_t number)
{
	int status;

	assert_false(relayed_read(r, HELLO_LEN + 2 * PING_LEN));
	assert_int_equal(r->bytes.len, said);
	assert_true(r->from.told);
	assert_int_equal(r->from.fault.wrong, wrong);
	assert_int_equal(r->from.fault.number, number);
	status = relayed_end(r);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static void test_what_is_wrong_with_the_stream_to_it_is_said(void **state)
{
	static const struct {
		uint64_t skip; /* bytes of the stream that do not come */
		size_t flip;
		enum piece_wrong wrong;
		uint64_t number;
	} cases[] = {
	    {5000, 0, PIECE_LOST, 5000}, {0 - (uint64_t)PING_LEN, 0, PIECE_REPEATED, PING_LEN},
	    {0, PIECE_HEAD_LEN + 2, PIECE_DAMAGED, 0}, {0, 5, PIECE_DAMAGED, 0},
	    {0, 1, PIECE_FOREIGN, 0},
	    {0, 2, PIECE_DAMAGED, 0}, /* once there was one of ours, another version is none */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct relayed *r = relayed_greeted();

		relayed_write(r, ping(), PING_LEN, 0);
		assert_true(relayed_read(r, HELLO_LEN + PING_LEN));
		r->to.offset += cases[i].skip;
		relayed_write(r, ping(), PING_LEN, cases[i].flip);
		assert_ends(r, HELLO_LEN + PING_LEN, cases[i].wrong, cases[i].number);
	}
}

/* One of another version, as from a supervisor that was there before an update. */
static void test_another_version_is_refused(void **state)
{
	struct relayed *r = relayed_greeted();
	uint8_t piece[PIECE_MAX];

	(void)state;
	memcpy(piece + PIECE_HEAD_LEN, ping(), PING_LEN);
	piece_seal(&r->to, PIECE_DATA, piece, PING_LEN);
	piece[2] = PIECE_VERSION + 1;
	assert_int_equal(write(r->in, piece, PIECE_HEAD_LEN + PING_LEN), PIECE_HEAD_LEN + PING_LEN);
	assert_ends(r, HELLO_LEN, PIECE_VERSIONS, PIECE_VERSION + 1);
}

/* Much more each way than pipes and pieces hold, at once: neither way waits for the other. */
static void test_much_goes_both_ways(void **state)
{
	enum { FRAMES = 16000, BYTES = 48, AT_ONCE = 400 };
	const size_t frame = AGENT_HEAD_LEN + BYTES;
	struct relayed *r = relayed_greeted();
	uint8_t *bytes = calloc(AT_ONCE, frame);

	(void)state;
	assert_non_null(bytes);
	buf_free(&r->bytes);
	buf_init(&r->bytes, FRAMES * frame);
	for (size_t i = 0; i < AT_ONCE * frame; i++)
		bytes[i] = (uint8_t)(i * 31 >> 3);
	for (size_t i = 0; i < AT_ONCE; i++)
		agent_put_head(bytes + i * frame, AGENT_PING, 0, 0, 0, BYTES);
	/* The guest's answers fill what is on the way before the last ping is written: a process
	 * of its own writes. */
	if (fork() == 0) {
		for (size_t sent = 0; sent < FRAMES; sent += AT_ONCE)
			relayed_write(r, bytes, AT_ONCE * frame, 0);
		_exit(0);
	}
	assert_true(relayed_read(r, FRAMES * frame));
	for (size_t i = 0; i < FRAMES; i++)
		assert_memory_equal(buf_head(&r->bytes) + i * frame + AGENT_HEAD_LEN,
		    bytes + i % AT_ONCE * frame + AGENT_HEAD_LEN, BYTES);
	free(bytes);
	assert_int_equal(wait(NULL) > 0, 1);
	assert_int_equal(relayed_end(r), 0);
}

/* Both halves end with either of them. */
static void test_it_ends_with_its_stream_and_with_its_process(void **state)
{
	struct relayed *r = relayed_start(drive_files());
	char c;

	(void)state;
	assert_true(relayed_read(r, AGENT_HEAD_LEN));
	assert_int_equal(kill(r->pid, SIGKILL), 0);
	while (read(r->out, &c, 1) == 1)
		continue; /* its end: nobody holds the pipe */
	assert_int_equal(relayed_end(r), SIGKILL);

	r = relayed_start(drive_files());
	assert_true(relayed_read(r, AGENT_HEAD_LEN));
	(void)close(r->in);
	r->in = -1;
	while (read(r->out, &c, 1) == 1)
		continue;
	assert_int_equal(relayed_end(r), 0);
}

/* However early it is killed: a process that it has just started may not have said yet that it is
 * to die with it. */
static void test_nothing_of_a_killed_one_stays(void **state)
{
	enum { TIMES = 100, BOUND_S = 60 };

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	for (int i = 0; i < TIMES; i++) {
		struct relayed *r = relayed_start(drive_files());

		assert_true(relayed_read(r, 1));
		assert_int_equal(kill(r->pid, SIGKILL), 0);
		assert_int_equal(relayed_end(r), SIGKILL);
	}
	(void)alarm(BOUND_S);
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	(void)alarm(0);
	assert_int_equal(errno, ECHILD);
}

static void test_without_a_helper(void **state)
{
	struct relayed *r = relayed_start(NULL);

	(void)state;
	assert_true(relayed_read(r, AGENT_HEAD_LEN));
	assert_int_equal(relayed_end(r), 0);
}

static void test_a_helper_that_is_not_there_is_an_error(void **state)
{
	struct relayed *r = relayed_start("/nowhere/sbx-files");

	(void)state;
	assert_false(relayed_read(r, 1));
	assert_int_equal(WEXITSTATUS(relayed_end(r)), 1);
}

static void test_the_shared_directories_are_there(void **state)
{
	static const char *const names[] = {"mnt/skills", "mnt/user-data/outputs",
	    "mnt/user-data/uploads", "mnt/user-data/workspace"};
	struct relayed *r;
	struct stat st;
	char path[128];

	(void)state;
	if (geteuid() != 0)
		skip();
	r = relayed_start(drive_files());
	assert_true(relayed_read(r, AGENT_HEAD_LEN));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/root/%s", (int)r->pid, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0777);
	}
	assert_int_equal(relayed_end(r), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_frames_go_through),
	    cmocka_unit_test(test_what_is_wrong_with_the_stream_to_it_is_said),
	    cmocka_unit_test(test_another_version_is_refused),
	    cmocka_unit_test(test_much_goes_both_ways),
	    cmocka_unit_test(test_it_ends_with_its_stream_and_with_its_process),
	    cmocka_unit_test(test_nothing_of_a_killed_one_stays),
	    cmocka_unit_test(test_without_a_helper),
	    cmocka_unit_test(test_the_shared_directories_are_there),
	    cmocka_unit_test(test_a_helper_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
