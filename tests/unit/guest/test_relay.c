/* The real sbx-guest behind a stream that carries text only. */
#include "tests/unit/guest/process.h"

#include <sched.h>
#include <sys/mount.h>

#include "wire/base64.h"

struct relayed {
	pid_t pid;
	int in;
	int out;
	uint8_t bytes[65536];
	size_t len; /* decoded, from the beginning */
	char text[8];
	size_t text_len; /* not yet decoded: less than four */
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
	return r;
}

/* Reads on until `want` bytes were decoded. False: the stream ended. */
static bool relayed_read(struct relayed *r, size_t want)
{
	while (r->len < want) {
		char c;
		uint8_t *piece;
		size_t n = 0;

		if (read(r->out, &c, 1) != 1)
			return false;
		r->text[r->text_len++] = c;
		if (r->text_len < 4)
			continue;
		piece = base64_decode(r->text, 4, &n);
		assert_non_null(piece);
		memcpy(r->bytes + r->len, piece, n);
		r->len += n;
		r->text_len = 0;
		free(piece);
	}
	return true;
}

static int relayed_end(struct relayed *r)
{
	int status = -1;

	(void)close(r->in);
	(void)close(r->out);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	free(r);
	return status;
}

static void test_frames_come_as_text(void **state)
{
	struct relayed *r = relayed_start(drive_files());
	uint8_t ping[AGENT_HEAD_LEN + 3];
	struct agent_head head;
	size_t hello = AGENT_HEAD_LEN + sizeof(struct agent_hello);

	(void)state;
	assert_true(relayed_read(r, hello));
	assert_int_equal(agent_get_head(r->bytes, r->len, &head), 1);
	assert_int_equal(head.type, AGENT_HELLO);
	agent_put_head(ping, AGENT_PING, 0, 0, 0, 3);
	memcpy(ping + AGENT_HEAD_LEN, "\xff\x00\x80", 3);
	assert_int_equal(write(r->in, ping, sizeof(ping)), sizeof(ping));
	assert_true(relayed_read(r, hello + sizeof(ping)));
	assert_memory_equal(r->bytes + hello + AGENT_HEAD_LEN, "\xff\x00\x80", 3);
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
	    cmocka_unit_test(test_frames_come_as_text),
	    cmocka_unit_test(test_it_ends_with_its_stream_and_with_its_process),
	    cmocka_unit_test(test_without_a_helper),
	    cmocka_unit_test(test_the_shared_directories_are_there),
	    cmocka_unit_test(test_a_helper_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
