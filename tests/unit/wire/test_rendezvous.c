/* Tests of wire/rendezvous.c. */
#include "wire/rendezvous.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/fd.h"

struct place {
	char dir[256];
	char workers[300];
};

/* Longer than a socket's address may be. */
static int set_up(void **state)
{
	static struct place p;
	char base[] = "/tmp/sbxd-rendezvous-XXXXXX";

	if (!mkdtemp(base))
		return -1;
	(void)snprintf(p.dir, sizeof(p.dir), "%s/%0120d", base, 1);
	(void)snprintf(p.workers, sizeof(p.workers), "%s/" RENDEZVOUS_DIR, p.dir);
	*state = &p;
	return mkdir(p.dir, 0700) < 0 || mkdir(p.workers, 0700) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	if (rmdir(p->workers) < 0 || rmdir(p->dir) < 0)
		return -1; /* a socket was left */
	*strrchr(p->dir, '/') = '\0';
	return rmdir(p->dir);
}

static void test_the_successor_finds_the_worker_of_a_slot(void **state)
{
	const struct place *p = *state;
	FD_SCOPED int listener = rendezvous_listen(p->dir, 12);
	FD_SCOPED int mine = -1;
	FD_SCOPED int theirs = -1;
	char got[3] = "";
	pid_t pid = 0;

	assert_true(listener >= 0);
	assert_int_equal(rendezvous_accept(listener, geteuid()), -EAGAIN);
	mine = rendezvous_connect(p->dir, 12, &pid);
	assert_true(mine >= 0);
	assert_int_equal(pid, getpid());
	theirs = rendezvous_accept(listener, geteuid());
	assert_true(theirs >= 0);
	assert_int_equal(send(mine, "hi", 2, 0), 2);
	assert_int_equal(recv(theirs, got, sizeof(got), 0), 2);
	assert_string_equal(got, "hi");
	assert_int_equal(rendezvous_remove(p->dir, 12), 0);
}

static void test_where_nobody_listens_nothing_is_found(void **state)
{
	const struct place *p = *state;
	int listener = rendezvous_listen(p->dir, 1);
	pid_t pid;

	assert_int_equal(rendezvous_connect(p->dir, 0, &pid), -ENOENT);
	fd_close(&listener);
	assert_int_equal(rendezvous_connect(p->dir, 1, &pid), -ECONNREFUSED);
	assert_int_equal(rendezvous_remove(p->dir, 1), 0);
	assert_int_equal(rendezvous_remove(p->dir, 1), 0);
	assert_int_equal(rendezvous_connect("/nonexistent", 1, &pid), -ENOENT);
	assert_int_equal(rendezvous_listen("/nonexistent", 1), -ENOENT);
}

static void test_the_socket_of_a_dead_worker_is_replaced(void **state)
{
	const struct place *p = *state;
	int old = rendezvous_listen(p->dir, 1);
	FD_SCOPED int fresh = -1;
	FD_SCOPED int mine = -1;
	pid_t pid;

	fd_close(&old);
	fresh = rendezvous_listen(p->dir, 1);
	assert_true(fresh >= 0);
	mine = rendezvous_connect(p->dir, 1, &pid);
	assert_true(mine >= 0);
	assert_int_equal(rendezvous_remove(p->dir, 1), 0);
}

static void test_a_stranger_is_not_taken(void **state)
{
	const struct place *p = *state;
	FD_SCOPED int listener = rendezvous_listen(p->dir, 1);
	FD_SCOPED int mine = -1;
	char byte;
	pid_t pid;

	mine = rendezvous_connect(p->dir, 1, &pid);
	assert_true(mine >= 0);
	assert_int_equal(rendezvous_accept(listener, geteuid() + 1), -EPERM);
	assert_int_equal(recv(mine, &byte, 1, 0), 0); /* and it is told so */
	assert_int_equal(rendezvous_remove(p->dir, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_the_successor_finds_the_worker_of_a_slot, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_where_nobody_listens_nothing_is_found, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_the_socket_of_a_dead_worker_is_replaced, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_a_stranger_is_not_taken, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
