/* Tests of drivers/boxlite/engine.c: every message there and back, and every way to break the
 * contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/boxlite/engine.h"
#include "lib/fd.h"

#define TEXT(type, member)                                                           \
	{                                                                            \
		offsetof(struct type, member), sizeof(((struct type *)NULL)->member) \
	}

/* What each type is, stated once more, independently of the table that is tested. */
static const struct {
	enum eng_type type;
	size_t fixed;
	const char *tail; /* with its own last NUL */
	bool fd;
	const char *name;
	struct {
		size_t off;
		size_t size;
	} texts[2];
} kinds[] = {
    {ENG_OPEN, sizeof(struct eng_open), "boxlite.url=x", false, "open", {TEXT(eng_open, home)}},
    {ENG_PULL, sizeof(struct eng_image), NULL, false, "pull", {TEXT(eng_image, image)}},
    {ENG_START, sizeof(struct eng_start), NULL, true, "start",
	{TEXT(eng_start, name), TEXT(eng_start, image)}},
    {ENG_STATS, sizeof(struct eng_name), NULL, false, "stats", {TEXT(eng_name, name)}},
    {ENG_STOP, sizeof(struct eng_name), NULL, false, "stop", {TEXT(eng_name, name)}},
    {ENG_REMOVE, sizeof(struct eng_name), NULL, false, "remove", {TEXT(eng_name, name)}},
    {ENG_LOOK, sizeof(struct eng_name), NULL, false, "look", {TEXT(eng_name, name)}},
    {ENG_LIST, sizeof(struct eng_name), NULL, false, "list", {TEXT(eng_name, name)}},
    {ENG_NAME, sizeof(struct eng_name), NULL, false, "name", {TEXT(eng_name, name)}},
    {ENG_DONE, sizeof(struct eng_done), NULL, false, "done",
	{TEXT(eng_done, version), TEXT(eng_done, text)}},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
_Static_assert(KINDS == ENG_TYPES - 1, "every type is tested");

struct pair {
	int a;
	int b;
	int fds; /* open descriptors when the test began */
	uint8_t buf[ENG_MSG_MAX];
};

static int setup(void **state)
{
	static struct pair p;
	int ends[2];

	p.fds = fd_count_open();
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	p.a = ends[0];
	p.b = ends[1];
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	fd_close(&p->a);
	fd_close(&p->b);
	assert_int_equal(fd_count_open(), p->fds); /* no test may leak what a packet carried */
	return 0;
}

static int send_kind(struct pair *p, size_t i, const union eng_body *body)
{
	return eng_send(p->a, kinds[i].type, i + 5, body, kinds[i].tail,
	    kinds[i].tail ? strlen(kinds[i].tail) + 1 : 0, kinds[i].fd ? STDERR_FILENO : -1);
}

static void test_round_trip(void **state)
{
	struct pair *p = *state;
	union eng_body body;
	struct eng_msg msg;

	for (size_t i = 0; i < KINDS; i++) {
		memset(&body, 0, sizeof(body));
		memset(&body, 7, kinds[i].fixed);
		for (size_t t = 0; t < 2 && kinds[i].texts[t].size; t++)
			((char *)&body)[kinds[i].texts[t].off + kinds[i].texts[t].size - 1] = '\0';
		assert_int_equal(send_kind(p, i, &body), 0);
		assert_int_equal(eng_recv(p->b, p->buf, &msg), 1);
		assert_int_equal(msg.head.type, kinds[i].type);
		assert_int_equal(msg.head.seq, i + 5);
		assert_memory_equal(&msg.body, &body, sizeof(body));
		assert_int_equal(msg.tail_len, kinds[i].tail ? strlen(kinds[i].tail) + 1 : 0);
		assert_int_equal(msg.fd >= 0, kinds[i].fd);
		assert_string_equal(eng_type_name(kinds[i].type), kinds[i].name);
		fd_close(&msg.fd);
	}
	assert_string_equal(eng_type_name(ENG_TYPES), "?");
	assert_int_equal(eng_recv(p->b, p->buf, &msg), -EAGAIN);
	fd_close(&p->a);
	assert_int_equal(eng_recv(p->b, p->buf, &msg), 0);
}

/* The bytes of a good packet of that kind. */
static size_t packet_of(struct pair *p, size_t i, uint8_t *out, size_t size)
{
	static const union eng_body zero;
	int fds[FD_PASS_MAX];
	ssize_t n;

	assert_int_equal(send_kind(p, i, &zero), 0);
	n = fd_recv_msg(p->b, out, size, fds);
	assert_true(n > 0);
	fd_close(&fds[0]);
	return (size_t)n;
}

static void refused(struct pair *p, const uint8_t *packet, size_t n, size_t nfds)
{
	const int fds[2] = {STDERR_FILENO, STDERR_FILENO};
	struct eng_msg msg;

	assert_int_equal(fd_send_msg(p->a, packet, n, fds, nfds), (ssize_t)n);
	assert_int_equal(eng_recv(p->b, p->buf, &msg), -EBADMSG);
}

static void test_each_way_to_be_wrong(void **state)
{
	struct pair *p = *state;
	uint8_t packet[4096];
	struct eng_head head;

	for (size_t i = 0; i < KINDS; i++) {
		size_t n = packet_of(p, i, packet, sizeof(packet));
		size_t fds = kinds[i].fd ? 1 : 0;

		for (size_t t = 0; t < 2 && kinds[i].texts[t].size; t++) {
			uint8_t *text = packet + sizeof(head) + kinds[i].texts[t].off;

			memset(text, 'x', kinds[i].texts[t].size);
			refused(p, packet, n, fds);
			memset(text, 0, kinds[i].texts[t].size);
		}
		refused(p, packet, n - 1, fds);
		refused(p, packet, n, fds + 1);
		refused(p, packet, n, 1 - fds);
		packet[n] = 'x';
		refused(p, packet, n + 1, fds); /* more than it says */
		memcpy(&head, packet, sizeof(head));
		head.tail++;
		memcpy(packet, &head, sizeof(head));
		refused(p, packet, n + 1, fds); /* a tail where none is, or one without its end */
		head.tail--;
		head.version++;
		memcpy(packet, &head, sizeof(head));
		refused(p, packet, n, fds);
		head.version--;
		head.type = ENG_TYPES;
		memcpy(packet, &head, sizeof(head));
		refused(p, packet, n, 0);
	}
	refused(p, packet, sizeof(head) - 1, 0);
	refused(p, packet, 1, 1);
}

static void test_what_cannot_be_sent(void **state)
{
	static const union eng_body zero;
	static char tail[ENG_TAIL_MAX + 1];
	struct pair *p = *state;

	assert_int_equal(eng_send(p->a, ENG_NONE, 0, &zero, NULL, 0, -1), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_TYPES, 0, &zero, NULL, 0, -1), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_STOP, 0, NULL, NULL, 0, -1), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_STOP, 0, &zero, "x", 2, -1), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_STOP, 0, &zero, NULL, 0, p->a), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_START, 0, &zero, NULL, 0, -1), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_OPEN, 0, &zero, "x", 1, -1), -EINVAL);
	assert_int_equal(eng_send(p->a, ENG_OPEN, 0, &zero, tail, sizeof(tail), -1), -EMSGSIZE);
	fd_close(&p->b);
	assert_int_equal(eng_send(p->a, ENG_STOP, 0, &zero, NULL, 0, -1), -EPIPE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_each_way_to_be_wrong, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_what_cannot_be_sent, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
