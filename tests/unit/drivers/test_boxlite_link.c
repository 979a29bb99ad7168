/* Tests of drivers/boxlite/link.c: what an sbx-boxlite says while it has an order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "drivers/boxlite/boxlite.h"
#include "lib/fd.h"

static const char lost[] = "BoxLite's stream lost 3 bytes of what the agent said";

/* A box whose sbx-boxlite is the test: its end of the socket. */
static int stage(struct driver_box *box)
{
	int pair[2];

	*box = (struct driver_box){.link = {.control = -1, .pidfd = -1}};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	box->link.control = pair[0];
	return pair[1];
}

static void say(int fd, uint64_t seq, int code, const char *text)
{
	struct eng_done done = {.code = code};

	(void)snprintf(done.text, sizeof(done.text), "%s", text);
	assert_int_equal(eng_send(fd, ENG_DONE, seq, &done, NULL, 0, -1), 0);
}

/* The agent's stream may be damaged before the start is answered. */
static void test_what_a_box_dies_of_is_kept(void **state)
{
	struct driver_box box;
	struct eng_done done = {0};
	struct err err = {0};
	int theirs = stage(&box);

	(void)state;
	assert_null(driver_boxlite.why(&box));
	say(theirs, ENG_SEQ_DIED, 5, lost);
	say(theirs, 1, 0, "");
	assert_int_equal(link_order_name(&box.link, ENG_STATS, "x", 1000, &done, &err), 0);
	assert_string_equal(driver_boxlite.why(&box), lost);
	fd_close(&theirs);
	fd_close(&box.link.control);
}

/* Nor is it an order's answer. */
static void test_it_answers_nothing(void **state)
{
	struct driver_box box;
	struct eng_done done = {0};
	struct err err = {0};
	int theirs = stage(&box);

	(void)state;
	say(theirs, ENG_SEQ_DIED, 5, lost);
	say(theirs, 1, 2, "start the box: NotFound: no such box");
	assert_int_equal(link_order_name(&box.link, ENG_STATS, "x", 1000, &done, &err), -2);
	assert_string_equal(err.text, "start the box: NotFound: no such box");
	fd_close(&theirs);
	fd_close(&box.link.control);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_a_box_dies_of_is_kept),
	    cmocka_unit_test(test_it_answers_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
