/* sbx-worker as a process: a real box, sbxd played by the test. */
#include <dirent.h>

#include "tests/unit/worker/stage.h"

/* Such a build has no system call filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void test_boot_and_close(void **state)
{
	struct stage *t = stage_boot(state);
	struct slot_work work;
	uint64_t start = 0;

	assert_true(t->msg.body.booted.box_pid > 0);
	assert_true(t->msg.body.booted.boot_ns > 0);
	assert_string_equal(t->msg.body.booted.isolation, ""); /* nothing else than of all */
	assert_int_equal(slot_read_work(t->page, &work), 0);
	assert_int_equal(work.generation, STAGE_GEN);
	assert_int_equal(work.box_pid, t->msg.body.booted.box_pid);
	assert_int_equal(proc_start_time(work.box_pid, &start), 0);
	assert_int_equal(work.box_start, start);
	assert_int_equal(pthread_mutex_trylock(&t->page->scope_lock), 0); /* not held any more */
	assert_int_equal(pthread_mutex_unlock(&t->page->scope_lock), 0);
	{
		pid_t box = work.box_pid;
		const struct ctl_close close = {.grace_ms = 5000};

		stage_send(t, CTL_CLOSE, &close);
		stage_expect(t, CTL_CLOSED);
		assert_int_equal(t->msg.head.seq, t->seq);
		assert_int_equal(t->msg.body.failed.code, 0);
		assert_int_equal(stage_wait(t), 0);
		assert_int_equal(proc_start_time(box, &start), -ESRCH);
		assert_int_equal(slot_read_work(t->page, &work), 0);
		assert_int_equal(work.box_pid, 0);
	}
	stage_free(t);
}

static void read_status(pid_t pid, char *out, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	assert_true(fd_read_file_at(AT_FDCWD, path, out, size) > 0);
}

static void test_confined(void **state)
{
	struct stage *t = stage_boot(state);
	char status[4096];
	char want[64];
	int fds = 0;
	DIR *dir;

	read_status(t->pid, status, sizeof(status));
	assert_non_null(strstr(status, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(status, "CapEff:\t0000000000000000\n"));
	assert_non_null(strstr(status, "CapPrm:\t0000000000000000\n"));
	if (!SANITIZED)
		assert_non_null(strstr(status, "Seccomp:\t2\n"));
	if (getuid() == 0) {
		(void)snprintf(want, sizeof(want), "Uid:\t%u\t%u\t%u\t%u\n",
		    STAGE_UID_BASE + DRIVER_WORKER_UID, STAGE_UID_BASE + DRIVER_WORKER_UID,
		    STAGE_UID_BASE + DRIVER_WORKER_UID, STAGE_UID_BASE + DRIVER_WORKER_UID);
		assert_non_null(strstr(status, want));
		assert_non_null(strstr(status, "Groups:\t \n"));
	}
	(void)snprintf(want, sizeof(want), "/proc/%d/fd", (int)t->pid);
	dir = opendir(want);
	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		char link[512];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		if (n < 0)
			continue;
		link[n] = '\0';
		fds++;
		assert_null(strstr(link, "/dev/shm")); /* the segment is closed */
		assert_null(strstr(link, "memfd"));
		assert_null(strstr(link, "sbx-guest"));
		assert_null(strstr(link, "sbx-files"));
	}
	(void)closedir(dir);
	assert_true(fds >= 6);
	stage_close(t);
}

static void test_run(void **state)
{
	struct stage *t = stage_boot(state);

	stage_request(t, STAGE_RUN,
	    "{\"command\":\"echo out $FROM_BOX $MINE; echo err >&2; exit "
	    "3\",\"env\":{\"MINE\":\"m\"}}");
	stage_expect_text(t, "\"duration_ms\"");
	assert_true(stage_has(t, "HTTP/1.1 200 OK\r\n"));
	assert_true(stage_has(t, "\"exit_code\":3,\"signal\":null"));
	assert_true(stage_has(t, "\"stdout\":\"out yes m\\n\""));
	assert_true(stage_has(t, "\"stderr\":\"err\\n\""));
	stage_request(t, STAGE_RUN, "{\"argv\":[\"sh\",\"-c\",\"kill -TERM $$\"]}");
	stage_expect_text(t, "\"exit_code\":null,\"signal\":15");
	stage_request(t, STAGE_RUN, "{\"argv\":[\"/no/such/program\"]}");
	stage_expect_text(t, "\"reason\":\"execution_failed\"");
	assert_true(stage_has(t, "HTTP/1.1 422 "));
	stage_request(t, STAGE_RUN, "{\"argv\":[\"cat\"],\"stdin\":\"from stdin\"}");
	stage_expect_text(t, "\"stdout\":\"from stdin\"");
	stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\",\"timeout_seconds\":0.05}");
	stage_expect_text(t, "\"signal\":9,\"timed_out\":true");
	stage_close(t);
}

static void test_run_stream(void **state)
{
	static const char request[] =
	    STAGE_RUN " HTTP/1.1\r\nHost: x\r\n"
		      "Accept: application/x-ndjson\r\n"
		      "Content-Length: 49\r\n\r\n"
		      "{\"command\":\"echo first; read x; echo second >&2\"}";
	struct stage *t = stage_boot(state);

	stage_hand_over(t, request, strlen(request));
	stage_expect_text(
	    t, "{\"stream\":\"stderr\",\"data\":\"second\\n\",\"encoding\":\"utf-8\"}\n");
	stage_expect_text(t, "{\"exit_code\":0,");
	assert_true(stage_has(t, "{\"stream\":\"stdout\",\"data\":\"first\\n\""));
	stage_close(t);
}

static void test_large_output_and_input(void **state)
{
	enum { SIZE = 8 << 20 };
	struct stage *t = stage_boot(state);
	char head[256];
	size_t sent = 0;
	char *bytes = malloc(SIZE);

	assert_non_null(bytes);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (char)(i * 2654435761U >> 13);
	(void)snprintf(head, sizeof(head),
	    "PUT " STAGE_BOX
	    "/fs/write?path=/tmp/big HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
	    SIZE);
	stage_hand_over(t, head, strlen(head));
	while (sent < SIZE) {
		ssize_t n = send(t->client, bytes + sent, SIZE - sent, MSG_NOSIGNAL);

		assert_true(n > 0);
		sent += (size_t)n;
	}
	stage_expect_text(t, "{\"path\":\"/tmp/big\",\"bytes\":8388608}");
	stage_request(t, "GET " STAGE_BOX "/fs/read?path=/tmp/big", "");
	stage_expect_text(t, "\r\n\r\n");
	assert_true(stage_has(t, "Content-Length: 8388608\r\n"));
	{
		size_t skip_head = (size_t)(strstr(stage_text(t), "\r\n\r\n") + 4 - stage_text(t));

		while (t->answer.len < skip_head + SIZE)
			assert_true(stage_read(t) > 0);
		assert_memory_equal(buf_head(&t->answer) + skip_head, bytes, SIZE);
	}
	stage_request(
	    t, STAGE_RUN, "{\"command\":\"cat /tmp/big | md5sum; head -c 9000000 /dev/zero\"}");
	stage_expect_text(t, "\"duration_ms\"");
	assert_true(stage_has(t, "\"truncated\":false"));
	free(bytes);
	stage_close(t);
}

static void test_files(void **state)
{
	struct stage *t = stage_boot(state);

	stage_request(t, "PUT " STAGE_BOX "/fs/write?path=/tmp/a&mode=0600", "one\ntwo\nthree\n");
	stage_expect_text(t, "{\"path\":\"/tmp/a\",\"bytes\":14}");
	stage_request(t, "PUT " STAGE_BOX "/fs/write?path=/tmp/a&append=1", "four\n");
	stage_expect_text(t, "\"bytes\":5");
	stage_request(t, "GET " STAGE_BOX "/fs/read?path=/tmp/a&start_line=2&end_line=3", "");
	stage_expect_text(t, "two\nthree\n\r\n0\r\n\r\n");
	stage_request(t, "GET " STAGE_BOX "/fs/read?path=/tmp/a&offset=4&limit=3", "");
	stage_expect_text(t, "\r\n\r\ntwo");
	stage_request(t, "GET " STAGE_BOX "/fs/read?path=/proc/self/comm", "");
	stage_expect_text(t, "\r\n0\r\n\r\n");
	stage_request(t, "GET " STAGE_BOX "/fs/read?path=/tmp/missing", "");
	stage_expect_text(t, "\"reason\":\"not_found\"");
	stage_request(t, "GET " STAGE_BOX "/fs/read?path=/tmp", "");
	stage_expect_text(t, "\"reason\":\"is_directory\"");
	stage_request(t, "PUT " STAGE_BOX "/fs/write?path=/tmp/a/b", "x");
	stage_expect_text(t, "\"reason\":\"not_a_directory\"");
	stage_close(t);
}

static void test_check(void **state)
{
	struct stage *t = stage_boot(state);
	struct slot_work before;
	struct slot_work after;

	assert_int_equal(slot_read_work(t->page, &before), 0);
	for (int i = 0; i < 3; i++) {
		stage_send(t, CTL_CHECK, NULL);
		stage_expect(t, CTL_CHECKED);
		assert_int_equal(t->msg.head.seq, t->seq);
		assert_int_equal(t->msg.body.failed.code, 0);
	}
	assert_int_equal(slot_read_work(t->page, &after), 0);
	assert_int_equal(after.activity_ns, before.activity_ns);
	stage_close(t);
}

static void test_stale_messages_are_dropped(void **state)
{
	struct stage *t = stage_boot(state);

	assert_int_equal(ctl_send(t->ctl, CTL_CHECK, 99, STAGE_GEN + 1, NULL, NULL, 0, -1), 0);
	stage_send(t, CTL_CHECK, NULL);
	stage_expect(t, CTL_CHECKED);
	assert_int_equal(t->msg.head.seq, t->seq);
	stage_close(t);
}

static void test_hand_back(void **state)
{
	static const char elsewhere[] = "GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n";
	struct stage *t = stage_boot(state);
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	stage_request(t, STAGE_RUN, "{\"argv\":[\"true\"]}");
	stage_expect_text(t, "\"exit_code\":0");
	assert_int_equal(send(t->client, elsewhere, strlen(elsewhere), 0), strlen(elsewhere));
	stage_expect(t, CTL_HANDBACK);
	assert_int_equal(t->msg.tail_len, strlen(elsewhere));
	assert_memory_equal(t->msg.tail, elsewhere, strlen(elsewhere));
	assert_int_equal(getsockopt(t->msg.fd, SOL_SOCKET, SO_COOKIE, &cookie, &len), 0);
	assert_int_equal(cookie, t->msg.body.conn.cookie);
	fd_close(&t->msg.fd);
	stage_catch_up(t);
	assert_int_equal(atomic_load(&t->page->conns[0]), 0);
	stage_close(t);
}

static void test_client_goes(void **state)
{
	struct stage *t = stage_boot(state);

	stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\"}");
	stage_catch_up(t);
	assert_int_equal(atomic_load(&t->page->in_flight), 1);
	fd_close(&t->client);
	stage_expect(t, CTL_CONN_GONE);
	/* The tree is killed, and then the operation is over. */
	stage_request(t, STAGE_RUN,
	    "{\"command\":\"while pgrep -x sleep >/dev/null; do :; done\",\"timeout_seconds\":10}");
	stage_expect_text(t, "\"exit_code\":0");
	stage_close(t);
}

static void test_close_answers_running_clients(void **state)
{
	struct stage *t = stage_boot(state);
	const struct ctl_close close = {.grace_ms = 5000};

	stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\"}");
	stage_send(t, CTL_CLOSE, &close);
	stage_send(t, CTL_CLOSE, &close);
	stage_expect_text(t, "HTTP/1.1 410 ");
	do {
		assert_int_equal(stage_recv(t), 1);
		fd_close(&t->msg.fd);
	} while (t->msg.head.type != CTL_CLOSED);
	assert_int_equal(stage_wait(t), 0);
	stage_free(t);
}

static void test_box_dies(void **state)
{
	struct stage *t = stage_boot(state);
	struct slot_work work;

	stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\"}");
	stage_catch_up(t);
	assert_int_equal(slot_read_work(t->page, &work), 0);
	assert_int_equal(kill(work.box_pid, SIGKILL), 0);
	stage_expect_text(t, "\"reason\":\"box_died\"");
	assert_true(stage_has(t, "HTTP/1.1 410 "));
	stage_expect(t, CTL_BOX_DIED);
	assert_int_not_equal(t->msg.body.failed.code, 0);
	(void)stage_wait(t);
	stage_free(t);
}

static void test_worker_killed(void **state)
{
	struct stage *t = stage_boot(state);
	struct slot_work work;
	int box;

	assert_int_equal(slot_read_work(t->page, &work), 0);
	box = proc_open_exact(work.box_pid, work.box_start);
	assert_true(box >= 0);
	stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\"}");
	stage_catch_up(t);
	assert_int_equal(CONN_STATE(atomic_load(&t->page->conns[0])), CONN_REQUEST);
	assert_int_equal(kill(t->pid, SIGKILL), 0);
	(void)stage_wait(t);
	/* What sbxd needs to answer the client, and to have the box proven gone, is there. */
	assert_int_equal(CONN_STATE(atomic_load(&t->page->conns[0])), CONN_REQUEST);
	assert_int_equal(proc_wait_gone(box, STAGE_WAIT_MS), 0);
	fd_close(&box);
	stage_free(t);
}

static void test_orphan_closes(void **state)
{
	struct stage *t = stage_boot(state);
	struct slot_work work;
	int box;

	assert_int_equal(slot_read_work(t->page, &work), 0);
	box = proc_open_exact(work.box_pid, work.box_start);
	assert_true(box >= 0);
	stage_request(t, STAGE_RUN, "{\"command\":\"echo still here\"}");
	fd_close(&t->ctl); /* sbxd dies */
	stage_expect_text(t, "still here");
	assert_int_equal(send(t->client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, 0), 27);
	stage_expect_text(t, "HTTP/1.1 503 ");
	stage_expect_text(t, "\r\n\r\n");
	assert_true(stage_has(t, "Retry-After: 1\r\n"));
	assert_true(stage_has(t, "Connection: close\r\n"));
	assert_int_equal(stage_wait(t), 0); /* orphan_grace_ms later */
	assert_int_equal(proc_wait_gone(box, STAGE_WAIT_MS), 0);
	fd_close(&box);
	stage_free(t);
}

static void test_boot_fails(void **state)
{
	struct stage *t = stage_new(*state);

	t->fault = "worker.boot.start=fail";
	stage_spawn(t);
	stage_expect(t, CTL_HELLO);
	stage_send_boot(t);
	stage_expect(t, CTL_FAILED);
	assert_int_equal(t->msg.body.failed.code, EIO);
	assert_string_equal(t->msg.body.failed.reason, "boot_failed");
	assert_int_not_equal(stage_wait(t), 0);
	assert_int_equal(pthread_mutex_trylock(&t->page->scope_lock), 0);
	assert_int_equal(pthread_mutex_unlock(&t->page->scope_lock), 0);
	stage_free(t);
}

static void test_no_orders(void **state)
{
	struct stage *t = stage_new(*state);

	stage_spawn(t);
	stage_expect(t, CTL_HELLO);
	fd_close(&t->ctl);
	assert_int_not_equal(stage_wait(t), 0);
	stage_free(t);
}

/* Also true for one that only waits to be reaped. */
static bool is_gone(pid_t pid, uint64_t start)
{
	FD_SCOPED int fd = proc_open_exact(pid, start);

	return fd == -ESRCH || (fd >= 0 && proc_wait_gone(fd, 0) == 0);
}

/* Dies at each step of a boot: the lock tells of it when it was held, the page names the box. */
static const struct {
	const char *fault;
	bool locked;
	bool born;
} deaths[] = {
    {"worker.boot.hello_sent=kill", false, false},
    {"worker.boot.locked=kill", true, false},
    {"worker.boot.born=kill", true, true},
    {"worker.boot.started=kill", true, true},
    {"worker.boot.listening=kill", true, true},
    {"worker.boot.confined=kill", true, true},
    {"worker.boot.ready=kill", true, true},
    {"worker.boot.published=kill", true, true},
    {"worker.boot.told=kill", false, true},
};

static void test_deaths_while_booting(void **state)
{
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		struct stage *t = stage_new(*state);
		struct slot_work work;
		int rc;

		t->fault = deaths[i].fault;
		stage_spawn(t);
		stage_expect(t, CTL_HELLO);
		if (i > 0)
			stage_send_boot(t);
		assert_int_equal(stage_wait(t), SIGKILL);
		rc = pthread_mutex_trylock(&t->page->scope_lock);
		assert_int_equal(rc, deaths[i].locked ? EOWNERDEAD : 0);
		if (rc == EOWNERDEAD)
			assert_int_equal(pthread_mutex_consistent(&t->page->scope_lock), 0);
		assert_int_equal(pthread_mutex_unlock(&t->page->scope_lock), 0);
		assert_int_equal(slot_read_work(t->page, &work), 0);
		assert_int_equal(work.box_pid != 0, deaths[i].born);
		if (deaths[i].born) {
			struct err err = {0};

			assert_int_equal(t->site->driver->cleanup(&t->site->site, t->site->name,
					     work.box_pid, work.box_start, &err),
			    0);
			assert_true(is_gone(work.box_pid, work.box_start));
		}
		stage_free(t);
	}
}

static void test_dies_while_checking(void **state)
{
	struct stage *t = stage_new(*state);

	t->fault = "worker.check.locked=kill";
	stage_spawn(t);
	stage_expect(t, CTL_HELLO);
	stage_send_boot(t);
	stage_expect(t, CTL_BOOTED);
	stage_send(t, CTL_CHECK, NULL);
	assert_int_equal(stage_wait(t), SIGKILL);
	assert_int_equal(pthread_mutex_trylock(&t->page->scope_lock), EOWNERDEAD);
	assert_int_equal(pthread_mutex_consistent(&t->page->scope_lock), 0);
	assert_int_equal(pthread_mutex_unlock(&t->page->scope_lock), 0);
	stage_free(t);
}

#define TEST(f) cmocka_unit_test_teardown(f, stage_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_boot_and_close),
	    TEST(test_confined),
	    TEST(test_run),
	    TEST(test_run_stream),
	    TEST(test_large_output_and_input),
	    TEST(test_files),
	    TEST(test_check),
	    TEST(test_stale_messages_are_dropped),
	    TEST(test_hand_back),
	    TEST(test_client_goes),
	    TEST(test_close_answers_running_clients),
	    TEST(test_box_dies),
	    TEST(test_worker_killed),
	    TEST(test_orphan_closes),
	    TEST(test_boot_fails),
	    TEST(test_no_orders),
	    TEST(test_deaths_while_booting),
	    TEST(test_dies_while_checking),
	};

	return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
