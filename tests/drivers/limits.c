/* limits: whoever uses too much hurts only his own box. */
#include "tests/drivers/conformance.h"
#include "tests/drivers/fixture.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

/* It burns so long; an emulated processor needs some time to light it. */
#define BOMB_MS 1000
#define BOMB_SLOW_MS 8000

/* A greedy box, and a neighbour that must not notice. */
struct pair {
	struct fixture_box *greedy;
	struct fixture_box *neighbour;
};

static int setup_pair(void **state)
{
	struct fixture *f = fixture_current();
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->greedy = fixture_box_new(f, 1);
	p->neighbour = fixture_box_new(f, 2);
	p->greedy->spec.memory_mib = 64;
	p->greedy->spec.disk_mib = 16;
	p->greedy->spec.pids_max = 32;
	fixture_box_start(f, p->greedy);
	fixture_box_start(f, p->neighbour);
	*state = p;
	return 0;
}

static int teardown_pair(void **state)
{
	struct fixture *f = fixture_current();
	struct pair *p = *state;
	struct host_state now;

	fixture_box_end(f, p->greedy);
	fixture_box_end(f, p->neighbour);
	free(p);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
	return 0;
}

static void assert_neighbour_is_well(struct pair *p)
{
	assert_string_equal(
	    fixture_shell(p->neighbour, "",
		"head -c 4M /dev/zero > /tmp/f && perl -e '$x = \"a\" x (1 << 24); print 1'", 0),
	    "1");
}

/* The driver says itself what it cannot limit here. */
static void skip_unless_limited(const char *what)
{
	if (strstr(fixture_current()->facts.warning, what))
		skip();
}

static void test_memory_hog(void **state)
{
	struct pair *p = *state;
	int rc;

	skip_unless_limited("memory");
	rc = agent_client_shell(&p->greedy->client, "",
	    "exec perl -e '$x = \"a\" x (1 << 29); print length $x'", patience_ms(),
	    &p->greedy->result);
	assert_int_equal(rc, 0);
	assert_int_equal(p->greedy->result.end.signal, 9);
	/* It was the hog that was killed, not the box. */
	assert_int_equal(agent_client_ping(&p->greedy->client, patience_ms()), 0);
	assert_string_equal(fixture_shell(p->greedy, "", "echo alive", 0), "alive\n");
	assert_neighbour_is_well(p);
}

static int bomb_ms(void)
{
	bool slow = !strcmp(fixture_current()->facts.isolation, "microvm-tcg");

	return (slow ? BOMB_SLOW_MS : BOMB_MS) * patience_factor();
}

static void test_fork_bomb(void **state)
{
	struct pair *p = *state;
	struct host_state now;
	int rc;

	skip_unless_limited("pids");
	/* One fork by the shell itself, which would end if it could not. */
	rc = agent_client_shell(&p->greedy->client, "",
	    "bomb() { bomb | bomb & }; bomb & exec sleep 1000", bomb_ms(), &p->greedy->result);
	assert_int_equal(rc, 0);
	host_state_take(&fixture_current()->site, &now);
	assert_in_range(now.box_uids, 0, 32 + 32);
	assert_neighbour_is_well(p);
	/* The tree was killed with its command. */
	assert_true(p->greedy->result.end.flags & AGENT_END_KILLED);
	assert_int_equal(agent_client_ping(&p->greedy->client, patience_ms()), 0);
	assert_string_equal(fixture_shell(p->greedy, "", "echo alive", 0), "alive\n");
}

static void test_process_count(void **state)
{
	struct pair *p = *state;

	skip_unless_limited("pids");
	(void)fixture_shell(p->greedy, "",
	    "perl -e '$n = 0; for (1..100) { my $p = fork; last unless defined $p;"
	    "if (!$p) { sleep 1000; exit } push @p, $p; $n++ } kill 9, @p; wait for @p; print $n'",
	    0);
	assert_in_range(atoi(p->greedy->result.out), 16, 31);
}

static void test_disk_filler(void **state)
{
	struct pair *p = *state;

	(void)fixture_shell(p->greedy, "", "head -c 64M /dev/zero > /mnt/user-data/outputs/f", 1);
	assert_non_null(strstr(p->greedy->result.out, "No space left"));
	(void)fixture_shell(p->greedy, "", "head -c 1M /dev/zero > /dev/shm/f", 1);
	assert_int_equal(agent_client_ping(&p->greedy->client, patience_ms()), 0);
	(void)fixture_shell(p->greedy, "", "rm /mnt/user-data/outputs/f && echo x > /tmp/ok", 0);
	assert_neighbour_is_well(p);
}

static void test_inode_filler(void **state)
{
	struct pair *p = *state;

	(void)fixture_shell(p->greedy, "",
	    "perl -e 'mkdir \"/tmp/d\"; for (1..100000) { open(F, \">/tmp/d/$_\") or exit 3; close "
	    "F }'",
	    3);
	assert_int_equal(agent_client_ping(&p->greedy->client, patience_ms()), 0);
	(void)fixture_shell(p->greedy, "", "rm -r /tmp/d && echo x > /tmp/ok", 0);
	assert_neighbour_is_well(p);
}

#define PAIR(t) cmocka_unit_test_setup_teardown(t, setup_pair, teardown_pair)

int conformance_limits(void)
{
	static const struct CMUnitTest tests[] = {
	    PAIR(test_memory_hog),
	    PAIR(test_fork_bomb),
	    PAIR(test_process_count),
	    PAIR(test_disk_filler),
	    PAIR(test_inode_filler),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
