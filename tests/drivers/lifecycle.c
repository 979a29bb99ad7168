/* lifecycle: start, watch, kill, list, cleanup, failed starts, many at once. */
#include "tests/drivers/conformance.h"
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"
#include "wire/entry.h"

#define MANY 20

static void test_started_box_answers(void **state)
{
	struct fixture_box *b = *state;
	struct pollfd p = {.fd = fixture_current()->driver->watch_fd(b->box), .events = POLLIN};

	assert_int_equal(agent_client_ping(&b->client, patience_ms()), 0);
	assert_string_equal(fixture_shell(b, "", "echo $((6*7))", 0), "42\n");
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* Its own answer is a record that says which version it speaks. */
static void test_helper_runs_in_the_box(void **state)
{
	static const char *const version[] = {"version", NULL};
	static const char *const unknown[] = {"no-such-command", NULL};
	struct fixture_box *b = *state;
	struct agent_result *r = &b->result;
	struct entry_head head;
	struct entry_done done;

	assert_int_equal(agent_client_files(&b->client, version, patience_ms(), r), 0);
	assert_int_equal(r->error, 0);
	assert_int_equal(r->end.exit_code, 0);
	assert_int_equal(r->len, sizeof(head) + sizeof(done));
	memcpy(&head, r->out, sizeof(head));
	memcpy(&done, r->out + sizeof(head), sizeof(done));
	assert_int_equal(head.type, ENTRY_DONE);
	assert_int_equal(done.version, AGENT_VERSION);

	assert_int_equal(agent_client_files(&b->client, unknown, patience_ms(), r), 0);
	assert_int_equal(r->end.exit_code, AGENT_E_INVALID);
	assert_non_null(strstr(r->out, "no-such-command"));
	/* It is the guest's alone. */
	(void)fixture_shell(b, "", "test -e /proc/self/fd/3", 1);
}

static void test_box_without_helper(void **state)
{
	static const char *const version[] = {"version", NULL};
	struct fixture_box *b = fixture_box_new(fixture_current(), 3);

	(void)state;
	b->spec.helper = -1;
	fixture_box_start(fixture_current(), b);
	assert_int_equal(agent_client_files(&b->client, version, patience_ms(), &b->result), 0);
	assert_int_equal(b->result.error, AGENT_E_EXEC);
	assert_non_null(strstr(b->result.out, "sbx-files"));
	assert_string_equal(fixture_shell(b, "", "echo well", 0), "well\n");
	fixture_box_end(fixture_current(), b);
}

static void test_born_names_the_first_process(void **state)
{
	struct fixture_box *b = *state;
	int fd;

	assert_int_equal(b->born->calls, 1);
	fd = proc_open_exact(b->born->pid, b->born->start);
	assert_true(fd >= 0);
	(void)close(fd);
}

static void test_stream_does_not_block(void **state)
{
	struct fixture_box *b = *state;

	assert_true(fcntl(b->stream, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(b->stream, F_GETFD) & FD_CLOEXEC);
}

static void test_kill_is_final_and_idempotent(void **state)
{
	struct fixture_box *b = *state;
	const struct driver *d = fixture_current()->driver;
	struct pollfd p = {.fd = d->watch_fd(b->box), .events = POLLIN};
	char c;

	assert_int_equal(d->kill(b->box, patience_soon()), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(proc_open_exact(b->born->pid, b->born->start), -ESRCH);
	assert_int_equal(read(b->stream, &c, 1), 0);
	assert_int_equal(d->kill(b->box, patience_soon()), 0);
}

static void test_kill_ends_children_too(void **state)
{
	struct fixture_box *b = *state;
	struct host_state now;

	(void)fixture_shell(b, "", "for i in 1 2 3 4; do sleep 1000 >/dev/null 2>&1 & done", 0);
	assert_int_equal(fixture_current()->driver->kill(b->box, patience_soon()), 0);
	host_state_take(&fixture_current()->site, &now);
	assert_int_equal(now.box_uids, 0);
	assert_int_equal(now.children, 0);
}

/* What a worker does after start(): no privilege, and the box's own uid range does not hold it. */
static int worker_drops_and_kills(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};
	uid_t uid = f->site.uid_base + b->spec.slot * DRIVER_UIDS + DRIVER_WORKER_UID;
	struct driver_stats stats = {0};

	if (f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err) < 0)
		return 1;
	if (f->driver->unprivileged && f->driver->unprivileged(b->box, &err) < 0)
		return 2;
	if (f->site.uid_base &&
	    (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 || geteuid() != uid))
		return 3;
	agent_client_init(&b->client, b->stream);
	if (agent_client_hello(&b->client, patience_ms()) < 0)
		return 4;
	if (agent_client_shell(&b->client, "", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done",
		patience_ms(), &b->result) < 0)
		return 5;
	if (f->driver->stats(b->box, &stats) < 0)
		return 6;
	if (!f->facts.warning[0] && (!stats.cpu_ns || !stats.memory_bytes))
		return 7;
	if (f->driver->kill(b->box, patience_soon()) < 0)
		return 8;
	f->driver->free(b->box);
	return 0;
}

static void test_unprivileged_worker_can_kill(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 2);
	struct host_state now;
	struct err err = {0};

	(void)state;
	assert_int_equal(fixture_wait(fixture_fork(f, b, worker_drops_and_kills)), 0);
	assert_int_equal(
	    f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err), 0);
	fixture_box_free(b);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

static int count_name(void *ctx, const char *name)
{
	struct fixture_box *b = ctx;

	b->result.len += !strcmp(name, b->name);
	b->result.end.bytes++;
	return 0;
}

static int stop_listing(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 77;
}

static void test_list_finds_boxes_once(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;

	memset(&b->result, 0, sizeof(b->result));
	assert_int_equal(f->driver->list(&f->site, count_name, b), 0);
	assert_int_equal(b->result.len, 1);
	assert_int_equal(b->result.end.bytes, 1);
	assert_int_equal(f->driver->list(&f->site, stop_listing, NULL), 77);
}

static void test_list_is_empty_afterwards(void **state)
{
	struct fixture *f = fixture_current();

	(void)state;
	assert_int_equal(f->driver->list(&f->site, stop_listing, NULL), 0);
}

static void test_cleanup_kills_a_live_box(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct err err = {0};
	struct pollfd p = {.fd = f->driver->watch_fd(b->box), .events = POLLIN};

	/* By name only, as after a supervisor that lost its table. */
	assert_int_equal(f->driver->cleanup(&f->site, b->name, 0, 0, &err), 0);
	assert_int_equal(poll(&p, 1, patience_ms()), 1);
	assert_int_equal(f->driver->cleanup(&f->site, b->name, 0, 0, &err), 0);
	assert_int_equal(f->driver->list(&f->site, stop_listing, NULL), 0);
}

static void test_cleanup_refuses_foreign_names(void **state)
{
	static const char *const names[] = {"", "sbxd-", "init", "sbxd-other-1-1", "../x", "/"};
	static const char *const rests[] = {"", "1", "1-", "1-1/../..", "b-1-1", "1-1-1", "1-x"};
	struct fixture *f = fixture_current();
	struct err err = {0};
	char name[96];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(f->driver->cleanup(&f->site, names[i], 0, 0, &err), -EINVAL);
	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
		(void)snprintf(name, sizeof(name), "sbxd-%s-%s", f->instance, rests[i]);
		assert_int_equal(f->driver->cleanup(&f->site, name, 0, 0, &err), -EINVAL);
	}
}

/* A pid that is alive but is not who it was must not be touched. */
static void test_cleanup_spares_a_reused_pid(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 3);
	struct err err = {0};

	(void)state;
	assert_int_equal(f->driver->cleanup(&f->site, b->name, getpid(), 1, &err), 0);
	fixture_box_free(b);
}

/* Nor one that is who it was told to be, but is in no box: a worker that lies about its box. */
static void test_cleanup_spares_others(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 3);
	struct err err = {0};
	uint64_t start = 0;
	pid_t other = fork();

	(void)state;
	assert_true(other >= 0);
	if (other == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(proc_start_time(other, &start), 0);
	assert_int_equal(f->driver->cleanup(&f->site, b->name, other, start, &err), 0);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	fixture_box_free(b);
}

static void assert_start_fails(struct fixture_box *b, int code)
{
	struct fixture *f = fixture_current();
	struct host_state now;
	struct err err = {0};
	struct driver_box *box = NULL;
	int stream = -1;
	int rc = f->driver->start(&f->site, &b->spec, &box, &stream, &err);

	assert_true(rc < 0);
	if (code)
		assert_int_equal(rc, -code);
	assert_int_equal(err.code, -rc);
	assert_true(err.text[0] != '\0');
	assert_null(box);
	assert_int_equal(stream, -1);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
	fixture_box_free(b);
}

static void test_failed_start_leaves_nothing(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b;
	int guest;

	(void)state;
	if (f->target->traits & TARGET_OWN_WORK) {
		guest = memfd_create("no program", MFD_CLOEXEC);
		/* No format that any kernel executes. */
		assert_int_equal(write(guest, "not a program\n", 14), 14);
		f->quiet.fds++;
		b = fixture_box_new(f, 4);
		b->spec.guest = guest;
		assert_start_fails(b, 0);
		f->quiet.fds--;
		(void)close(guest);
		b = fixture_box_new(f, 4);
		b->spec.image = "/";
		assert_start_fails(b, EINVAL);
	}

	b = fixture_box_new(f, 4);
	b->spec.deadline_ns = 0;
	assert_start_fails(b, ETIMEDOUT);

	b = fixture_box_new(f, 4);
	b->spec.name = "sbxd-other-1-1";
	assert_start_fails(b, EINVAL);
}

static void test_name_in_use_is_refused(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct driver_box *box = NULL;
	struct err err = {0};
	int stream = -1;

	assert_int_equal(f->driver->start(&f->site, &b->spec, &box, &stream, &err), -EEXIST);
	/* The first one is unharmed. */
	assert_int_equal(agent_client_ping(&b->client, patience_ms()), 0);
	b->born->pid = 0; /* cleanup must find it by name */
}

static void test_many_at_once(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *boxes[MANY];
	struct host_state now;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		boxes[i] = fixture_box_new(f, 10 + i);
		fixture_box_start(f, boxes[i]);
	}
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(agent_client_ping(&boxes[i]->client, patience_ms()), 0);
	for (uint32_t i = 0; i < MANY; i++)
		fixture_box_end(f, boxes[i]);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

#define WITH_BOX(t) cmocka_unit_test_setup_teardown(t, fixture_setup_box, fixture_teardown_box)

int conformance_lifecycle(void)
{
	static const struct CMUnitTest tests[] = {
	    WITH_BOX(test_started_box_answers),
	    WITH_BOX(test_helper_runs_in_the_box),
	    cmocka_unit_test(test_box_without_helper),
	    WITH_BOX(test_born_names_the_first_process),
	    WITH_BOX(test_stream_does_not_block),
	    WITH_BOX(test_kill_is_final_and_idempotent),
	    WITH_BOX(test_kill_ends_children_too),
	    cmocka_unit_test(test_unprivileged_worker_can_kill),
	    WITH_BOX(test_list_finds_boxes_once),
	    cmocka_unit_test(test_list_is_empty_afterwards),
	    WITH_BOX(test_cleanup_kills_a_live_box),
	    cmocka_unit_test(test_cleanup_refuses_foreign_names),
	    cmocka_unit_test(test_cleanup_spares_a_reused_pid),
	    cmocka_unit_test(test_cleanup_spares_others),
	    cmocka_unit_test(test_failed_start_leaves_nothing),
	    WITH_BOX(test_name_in_use_is_refused),
	    cmocka_unit_test(test_many_at_once),
	};

	return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
