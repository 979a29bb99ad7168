/*
 * takeover: what a new supervisor's janitor finds of live boxes, by their names alone, and what two
 * janitors do to one box.
 */
#include "tests/drivers/conformance.h"
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"

#define ROUNDS 8 /* of what is to happen at the same time */

static void assert_adopts(struct fixture *f, const char *name)
{
	struct err err = {0};

	if (f->driver->adopt(&f->site, name, &err) < 0)
		fail_msg("adopt: %s", err.text);
}

static void assert_refuses(const struct driver_site *site, const char *name, int code)
{
	struct err err = {0};
	int rc = fixture_current()->driver->adopt(site, name, &err);

	if (code)
		assert_int_equal(rc, -code);
	assert_true(rc < 0);
	assert_int_equal(err.code, -rc);
	assert_non_null(strstr(err.text, name));
}

/* ---- adopt ---- */

#define COUNTING "(while :; do echo x >>/tmp/count; sleep 0.01; done) >/dev/null 2>&1 & echo $!"
#define COUNTS                                                                             \
	"n=$(wc -l </tmp/count); until [ $(wc -l </tmp/count) -gt $((n + 3)) ]; do sleep " \
	"0.01; done; kill -0 $(cat /tmp/pid)"

static void test_a_live_box_is_adopted_undisturbed(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct pollfd p = {.fd = f->driver->watch_fd(b->box), .events = POLLIN};
	struct host_state before;
	struct host_state after;

	(void)fixture_shell(b, "", COUNTING " >/tmp/pid", 0);
	host_state_take(&f->site, &before);
	for (int i = 0; i < 3; i++)
		assert_adopts(f, b->name);
	(void)fixture_shell(b, "", COUNTS, 0);
	host_state_take(&f->site, &after);
	assert_int_equal(after.fds, before.fds);
	assert_int_equal(after.mounts, before.mounts);
	assert_int_equal(after.cgroups, before.cgroups);
	assert_int_equal(after.files, before.files);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static void test_a_dead_box_is_not_adopted(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct err err = {0};

	assert_int_equal(f->driver->kill(b->box, patience_soon()), 0);
	assert_refuses(&f->site, b->name, EUCLEAN);
	assert_int_equal(f->driver->cleanup(&f->site, b->name, 0, 0, &err), 0);
	assert_refuses(&f->site, b->name, ESRCH);
}

/* Its worker has not reaped it yet. */
static void test_a_box_that_has_just_died_is_not_adopted(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct pollfd p = {.fd = f->driver->watch_fd(b->box), .events = POLLIN};

	assert_int_equal(kill(b->born->pid, SIGKILL), 0);
	assert_int_equal(poll(&p, 1, patience_ms()), 1);
	assert_refuses(&f->site, b->name, EUCLEAN);
}

static void test_adopt_refuses_what_is_not_there(void **state)
{
	static const char *const names[] = {"sbxd-", "init", "sbxd-other-1-1", "../x"};
	struct fixture *f = fixture_current();
	struct driver_site none = f->site;
	char name[96];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_refuses(&f->site, names[i], EINVAL);
	(void)snprintf(name, sizeof(name), "sbxd-%s-1-1e", f->instance);
	assert_refuses(&f->site, name, ESRCH);
	none.instance = "conf-none"; /* nothing was ever prepared for it */
	assert_refuses(&none, "sbxd-conf-none-1-1", ESRCH);
}

/* ---- list ---- */

struct listing {
	char names[4][64];
	int count;
};

static int add_name(void *ctx, const char *name)
{
	struct listing *l = ctx;

	if (l->count < 4)
		(void)snprintf(l->names[l->count], sizeof(l->names[0]), "%s", name);
	l->count++;
	return 0;
}

static void assert_lists(const struct driver_site *site, const char *name)
{
	struct listing l = {.count = 0};

	assert_int_equal(fixture_current()->driver->list(site, add_name, &l), 0);
	assert_int_equal(l.count, name ? 1 : 0);
	if (name)
		assert_string_equal(l.names[0], name);
}

/* An instance whose name begins with ours and could be read as a box of ours. */
struct neighbour {
	char instance[40];
	struct driver_site site;
	struct fixture_box *box;
};

static void neighbour_open(struct fixture *f, struct neighbour *n, const char *rest)
{
	struct err err = {0};

	(void)snprintf(n->instance, sizeof(n->instance), "%s-%s", f->instance, rest);
	n->site = f->site;
	n->site.instance = n->instance;
	n->site.prepared = memfd_create("prepared", MFD_CLOEXEC);
	assert_true(n->site.prepared >= 0);
	assert_int_equal(f->driver->prepare(&n->site, f->image, &err), 0);
	n->box = fixture_box_new(f, 31);
	(void)snprintf(n->box->name, sizeof(n->box->name), "sbxd-%s-31-1f", n->instance);
	if (f->driver->start(&n->site, &n->box->spec, &n->box->box, &n->box->stream, &err) < 0)
		fail_msg("start: %s", err.text);
	agent_client_init(&n->box->client, n->box->stream);
	assert_int_equal(agent_client_hello(&n->box->client, patience_ms()), 0);
}

static void neighbour_close(struct fixture *f, struct neighbour *n)
{
	struct err err = {0};

	assert_int_equal(agent_client_ping(&n->box->client, patience_ms()), 0);
	assert_int_equal(f->driver->kill(n->box->box, patience_soon()), 0);
	f->driver->free(n->box->box);
	assert_int_equal(f->driver->cleanup(&n->site, n->box->name, 0, 0, &err), 0);
	assert_int_equal(f->driver->finish(&n->site, &err), 0);
	fixture_box_free(n->box);
	fd_close(&n->site.prepared);
}

static void test_instances_with_alike_names_are_apart(void **state)
{
	static const char *const rests[] = {"b", "1", "1-1f"};
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct neighbour n;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
		neighbour_open(f, &n, rests[i]);
		assert_lists(&f->site, b->name);
		assert_lists(&n.site, n.box->name);
		assert_refuses(&f->site, n.box->name, EINVAL);
		assert_refuses(&n.site, b->name, EINVAL);
		assert_int_equal(f->driver->cleanup(&f->site, n.box->name, n.box->born->pid,
				     n.box->born->start, &err),
		    -EINVAL);
		neighbour_close(f, &n);
		assert_lists(&n.site, NULL);
		assert_adopts(f, b->name);
	}
}

/* ---- prepare ---- */

/* As by the next supervisor: the boxes there are go on, and new ones can be made. */
static void test_prepare_again_over_a_live_box(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = *state;
	struct fixture_box *second = fixture_box_new(f, 32);
	struct host_state before;
	struct host_state after;
	struct driver_facts facts;
	struct err err = {0};

	host_state_take(&f->site, &before);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->driver->probe(&f->site, &facts, &err), 0);
		assert_int_equal(f->driver->prepare(&f->site, f->image, &err), 0);
	}
	host_state_take(&f->site, &after);
	host_state_assert_same(&before, &after);
	(void)fixture_shell(b, "", "cat /etc/passwd >/dev/null && ls /usr/bin >/dev/null", 0);
	fixture_box_start(f, second);
	(void)fixture_shell(second, "", "cat /etc/passwd >/dev/null", 0);
	fixture_box_end(f, second);
}

/* ---- cleanup ---- */

/* Waits for the pair to end, so that all begin at once. b->stream: our end of it. */
static int janitor_cleans_with_others(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};
	char byte;

	if (read(b->stream, &byte, 1) != 0)
		return 1;
	if (f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err) == 0)
		return 0;
	(void)fprintf(stderr, "%s\n", err.text);
	return 2;
}

static void clean_at_once(struct fixture *f, struct fixture_box *b)
{
	int stream = b->stream;
	int gate[2];
	pid_t janitors[2];
	struct host_state now;

	assert_int_equal(pipe(gate), 0);
	b->stream = gate[0];
	for (int i = 0; i < 2; i++) {
		janitors[i] = fork();
		assert_true(janitors[i] >= 0);
		if (janitors[i] == 0) {
			(void)close(gate[1]);
			_exit(janitor_cleans_with_others(f, b));
		}
	}
	(void)close(gate[1]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fixture_wait(janitors[i]), 0);
	(void)close(gate[0]);
	b->stream = stream;
	assert_refuses(&f->site, b->name, ESRCH);
	fixture_box_kill(f, b);
	f->driver->free(b->box);
	fixture_box_free(b);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

static void test_two_janitors_clean_one_box(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		b = fixture_box_new(f, 33);
		fixture_box_start(f, b);
		(void)fixture_shell(
		    b, "", "for i in 1 2 3 4; do sleep 1000 >/dev/null 2>&1 & done", 0);
		clean_at_once(f, b);
	}
}

#define WITH_BOX(t) cmocka_unit_test_setup_teardown(t, fixture_setup_box, fixture_teardown_box)

int conformance_takeover(void)
{
	static const struct CMUnitTest tests[] = {
	    WITH_BOX(test_a_live_box_is_adopted_undisturbed),
	    WITH_BOX(test_a_dead_box_is_not_adopted),
	    WITH_BOX(test_a_box_that_has_just_died_is_not_adopted),
	    cmocka_unit_test(test_adopt_refuses_what_is_not_there),
	    WITH_BOX(test_instances_with_alike_names_are_apart),
	    WITH_BOX(test_prepare_again_over_a_live_box),
	    cmocka_unit_test(test_two_janitors_clean_one_box),
	};

	return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
