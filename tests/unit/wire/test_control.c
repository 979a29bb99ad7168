/* Unit tests of wire/control.c: every type there and back, and every way to break the contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/control.h"

struct pair {
	int a;
	int b;
	uint8_t *buf;
	int fds; /* open descriptors when the test began */
};

static int setup(void **state)
{
	struct pair *p = malloc(sizeof(*p));
	int ends[2];

	assert_non_null(p);
	p->fds = fd_count_open();
	p->buf = malloc(CTL_MSG_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	p->a = ends[0];
	p->b = ends[1];
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	fd_close(&p->a);
	fd_close(&p->b);
	assert_int_equal(fd_count_open(), p->fds); /* no test may leak what a packet carried */
	free(p->buf);
	free(p);
	return 0;
}

/* What each type is, stated once more, independently of the table that is tested. */
static const struct {
	enum ctl_type type;
	size_t fixed;
	const char *tail; /* with its own last NUL */
	bool fd;
	const char *name;
} kinds[] = {
    {CTL_BOOT, sizeof(struct ctl_boot), "A=B", false, "boot"},
    {CTL_HANDOVER, sizeof(struct ctl_conn), "GET", true, "handover"},
    {CTL_CHECK, 0, NULL, false, "check"}, {CTL_PARK, 0, NULL, false, "park"},
    {CTL_PROMOTE, 0, NULL, false, "promote"},
    {CTL_CLAIM, sizeof(struct ctl_claim), NULL, false, "claim"}, {CTL_PING, 0, NULL, false, "ping"},
    {CTL_CLOSE, sizeof(struct ctl_close), NULL, false, "close"},
    {CTL_STOP, sizeof(struct ctl_stop), NULL, false, "stop"},
    {CTL_HELLO, sizeof(struct ctl_hello), NULL, false, "hello"},
    {CTL_HELD, sizeof(struct ctl_conn), NULL, true, "held"},
    {CTL_BOOTED, sizeof(struct ctl_booted), NULL, false, "booted"},
    {CTL_FAILED, sizeof(struct ctl_failed), NULL, false, "failed"},
    {CTL_PONG, 0, NULL, false, "pong"},
    {CTL_CHECKED, sizeof(struct ctl_failed), NULL, false, "checked"},
    {CTL_HANDBACK, sizeof(struct ctl_conn), "PUT", true, "handback"},
    {CTL_CONN_GONE, sizeof(struct ctl_conn), NULL, false, "conn_gone"},
    {CTL_BOX_DIED, sizeof(struct ctl_failed), NULL, false, "box_died"},
    {CTL_CLOSED, sizeof(struct ctl_failed), NULL, false, "closed"},
    {CTL_STOPPED, sizeof(struct ctl_failed), NULL, false, "stopped"},
    {CTL_LEFT, 0, NULL, false, "left"},
    {CTL_PREPARE, sizeof(struct ctl_prepare), "qemu.accel=tcg", true, "prepare"},
    {CTL_CLEANUP, sizeof(struct ctl_cleanup), "qemu.accel=tcg", false, "cleanup"},
    {CTL_SWEEP, sizeof(struct ctl_prepare), "qemu.accel=tcg", true, "sweep"},
    {CTL_FINISH, sizeof(struct ctl_prepare), "qemu.accel=tcg", false, "finish"},
    {CTL_BUSY, 0, NULL, false, "busy"},
    {CTL_IMAGE, sizeof(struct ctl_image), "images.cache_mib=1", true, "image"},
    {CTL_PROGRESS, sizeof(struct ctl_progress), NULL, false, "progress"},
    {CTL_DONE, sizeof(struct ctl_done), NULL, false, "done"},
    {CTL_DONE, sizeof(struct ctl_done), "A=B", true, "done"}, /* it may bring both */
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
_Static_assert(KINDS == CTL_TYPES, "every type is tested, and one twice");

/* A body full of text, each field ended in its last byte: fixed bytes of 'x' and the NULs. */
static void fill(union ctl_body *body, size_t i)
{
	memset(body, 0, sizeof(*body));
	switch (kinds[i].type) {
	case CTL_BOOT:
		memset(body->boot.site.instance, 'i', sizeof(body->boot.site.instance) - 1);
		memset(body->boot.image, 'x', sizeof(body->boot.image) - 1);
		body->boot.slots_off = UINT64_MAX;
		break;
	case CTL_HANDOVER:
	case CTL_HANDBACK:
	case CTL_HELD:
	case CTL_CONN_GONE:
		body->conn.cookie = 0x1122334455667788ULL;
		memset(body->conn.traceparent, 't', sizeof(body->conn.traceparent) - 1);
		break;
	case CTL_DONE:
		memset(body->done.text, 'd', sizeof(body->done.text) - 1);
		break;
	default:
		if (kinds[i].fixed)
			((uint8_t *)body)[0] = 7; /* a number, or a one-letter text */
		break;
	}
}

static void test_round_trip(void **state)
{
	struct pair *p = *state;

	for (size_t i = 0; i < KINDS; i++) {
		size_t tail_len = kinds[i].tail ? strlen(kinds[i].tail) + 1 : 0;
		union ctl_body body;
		struct ctl_msg msg;
		struct stat st;

		fill(&body, i);
		assert_int_equal(
		    ctl_send(p->a, kinds[i].type, i + 5, i + 9, kinds[i].fixed ? &body : NULL,
			kinds[i].tail, tail_len, kinds[i].fd ? STDERR_FILENO : -1),
		    0);
		assert_int_equal(ctl_recv(p->b, p->buf, &msg), 1);
		assert_int_equal(msg.head.type, kinds[i].type);
		assert_int_equal(msg.head.seq, i + 5);
		assert_int_equal(msg.head.gen, i + 9);
		assert_memory_equal(&msg.body, &body, sizeof(body));
		assert_int_equal(msg.tail_len, tail_len);
		if (tail_len)
			assert_memory_equal(msg.tail, kinds[i].tail, tail_len);
		assert_int_equal(msg.fd >= 0, kinds[i].fd);
		if (msg.fd >= 0) {
			assert_int_equal(fstat(msg.fd, &st), 0);
			assert_true(fcntl(msg.fd, F_GETFD) & FD_CLOEXEC);
			fd_close(&msg.fd);
		}
		assert_string_equal(ctl_type_name((uint32_t)kinds[i].type), kinds[i].name);
	}
	assert_string_equal(ctl_type_name(CTL_TYPES), "?");
	assert_string_equal(ctl_type_name(UINT32_MAX), "?");
}

/* Sends a packet as it is, with nfds descriptors, and expects it to be refused. */
static void refused(struct pair *p, const void *packet, size_t n, size_t nfds)
{
	const int fds[FD_PASS_MAX] = {p->a, p->b, p->a, p->b};
	struct ctl_msg msg = {.fd = 77};

	assert_int_equal(fd_send_msg(p->a, packet, n, fds, nfds), n);
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), -EBADMSG);
	assert_int_equal(msg.fd, 77);
}

/* The packet of kind i, as ctl_send() makes it. Returns its size. */
static size_t packet_of(struct pair *p, size_t i, uint8_t *out, size_t size)
{
	size_t tail_len = kinds[i].tail ? strlen(kinds[i].tail) + 1 : 0;
	union ctl_body body;
	ssize_t n;
	int fds[FD_PASS_MAX];

	fill(&body, i);
	assert_int_equal(ctl_send(p->a, kinds[i].type, 1, 2, kinds[i].fixed ? &body : NULL,
			     kinds[i].tail, tail_len, kinds[i].fd ? STDERR_FILENO : -1),
	    0);
	n = fd_recv_msg(p->b, out, size, fds);
	assert_int_equal(n, sizeof(struct ctl_head) + kinds[i].fixed + tail_len);
	for (size_t k = 0; k < FD_PASS_MAX; k++)
		fd_close(&fds[k]);
	return (size_t)n;
}

static void test_wrong_sizes(void **state)
{
	struct pair *p = *state;
	uint8_t packet[4096];

	for (size_t i = 0; i < KINDS; i++) {
		size_t n = packet_of(p, i, packet, sizeof(packet));
		size_t nfds = kinds[i].fd ? 1 : 0;

		for (size_t cut = 1; cut < n; cut++)
			refused(p, packet, cut, nfds);
		packet[n] = 0;
		refused(p, packet, n + 1, nfds);
	}
}

static void test_tail_where_none_belongs(void **state)
{
	struct pair *p = *state;
	uint8_t packet[4096];

	for (size_t i = 0; i < KINDS; i++) {
		size_t n = packet_of(p, i, packet, sizeof(packet));
		struct ctl_head head;

		if (kinds[i].tail || kinds[i].type == CTL_DONE)
			continue;
		memcpy(&head, packet, sizeof(head));
		head.tail = 1;
		memcpy(packet, &head, sizeof(head));
		packet[n] = 0;
		refused(p, packet, n + 1, 0);
	}
}

static void test_wrong_head(void **state)
{
	struct pair *p = *state;
	const struct ctl_head good = {.version = CTL_VERSION, .type = CTL_CHECK};
	struct ctl_head head = good;
	struct ctl_msg msg;

	assert_int_equal(fd_send_msg(p->a, &head, sizeof(head), NULL, 0), sizeof(head));
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), 1);
	head.version = CTL_VERSION + 1;
	refused(p, &head, sizeof(head), 0);
	head.version = 0;
	refused(p, &head, sizeof(head), 0);
	head = good;
	head.type = CTL_NONE;
	refused(p, &head, sizeof(head), 0);
	head.type = CTL_TYPES;
	refused(p, &head, sizeof(head), 0);
	head.type = UINT16_MAX;
	refused(p, &head, sizeof(head), 0);
	head = good;
	head.tail = UINT32_MAX;
	refused(p, &head, sizeof(head), 0);
}

static void test_wrong_descriptors(void **state)
{
	struct pair *p = *state;
	uint8_t packet[4096];

	for (size_t i = 0; i < KINDS; i++) {
		size_t n = packet_of(p, i, packet, sizeof(packet));

		for (size_t nfds = 0; nfds <= FD_PASS_MAX; nfds++) {
			if (nfds != (kinds[i].fd ? 1 : 0) &&
			    (kinds[i].type != CTL_DONE || nfds > 1))
				refused(p, packet, n, nfds);
		}
	}
}

static void test_oversized_packet(void **state)
{
	struct pair *p = *state;
	uint8_t *packet = calloc(1, CTL_MSG_MAX + 1);
	const struct ctl_head head = {
	    .version = CTL_VERSION,
	    .type = CTL_HANDOVER,
	    .tail = CTL_TAIL_MAX + 1,
	};

	memcpy(packet, &head, sizeof(head));
	refused(p, packet, CTL_MSG_MAX + 1, 1);
	refused(p, packet, sizeof(head) + sizeof(struct ctl_conn) + CTL_TAIL_MAX + 1, 1);
	free(packet);
}

/* Where the text fields are, stated once more. */
#define FIELD(kind, type, member)                                                          \
	{                                                                                  \
		kind, offsetof(struct type, member), sizeof(((struct type *)NULL)->member) \
	}
#define SITE(kind, type)                                                  \
	FIELD(kind, type, site.instance), FIELD(kind, type, site.driver), \
	    FIELD(kind, type, site.state_dir), FIELD(kind, type, site.runtime_dir)

static const struct {
	enum ctl_type type;
	size_t off;
	size_t size;
} text_fields[] = {
    SITE(CTL_BOOT, ctl_boot),
    FIELD(CTL_BOOT, ctl_boot, name),
    FIELD(CTL_BOOT, ctl_boot, token),
    FIELD(CTL_BOOT, ctl_boot, image),
    FIELD(CTL_BOOT, ctl_boot, box_name),
    FIELD(CTL_BOOT, ctl_boot, user),
    FIELD(CTL_BOOT, ctl_boot, working_dir),
    FIELD(CTL_HANDOVER, ctl_conn, request_id),
    FIELD(CTL_HANDOVER, ctl_conn, traceparent),
    FIELD(CTL_HANDBACK, ctl_conn, request_id),
    FIELD(CTL_HANDBACK, ctl_conn, traceparent),
    FIELD(CTL_CONN_GONE, ctl_conn, request_id),
    FIELD(CTL_CONN_GONE, ctl_conn, traceparent),
    FIELD(CTL_BOOTED, ctl_booted, isolation),
    FIELD(CTL_FAILED, ctl_failed, reason),
    FIELD(CTL_FAILED, ctl_failed, text),
    FIELD(CTL_CHECKED, ctl_failed, reason),
    FIELD(CTL_CHECKED, ctl_failed, text),
    FIELD(CTL_BOX_DIED, ctl_failed, reason),
    FIELD(CTL_BOX_DIED, ctl_failed, text),
    FIELD(CTL_CLOSED, ctl_failed, reason),
    FIELD(CTL_CLOSED, ctl_failed, text),
    FIELD(CTL_STOPPED, ctl_failed, reason),
    FIELD(CTL_STOPPED, ctl_failed, text),
    SITE(CTL_PREPARE, ctl_prepare),
    FIELD(CTL_PREPARE, ctl_prepare, image),
    SITE(CTL_CLEANUP, ctl_cleanup),
    FIELD(CTL_CLEANUP, ctl_cleanup, name),
    SITE(CTL_SWEEP, ctl_prepare),
    FIELD(CTL_SWEEP, ctl_prepare, image),
    SITE(CTL_FINISH, ctl_prepare),
    FIELD(CTL_FINISH, ctl_prepare, image),
    FIELD(CTL_DONE, ctl_done, driver),
    FIELD(CTL_DONE, ctl_done, isolation),
    FIELD(CTL_DONE, ctl_done, passed),
    FIELD(CTL_DONE, ctl_done, warning),
    FIELD(CTL_DONE, ctl_done, text),
};

static void test_unterminated_texts(void **state)
{
	struct pair *p = *state;
	uint8_t packet[4096];

	for (size_t f = 0; f < sizeof(text_fields) / sizeof(text_fields[0]); f++) {
		for (size_t i = 0; i < KINDS; i++) {
			size_t n;

			if (kinds[i].type != text_fields[f].type)
				continue;
			n = packet_of(p, i, packet, sizeof(packet));
			memset(packet + sizeof(struct ctl_head) + text_fields[f].off, 'x',
			    text_fields[f].size);
			refused(p, packet, n, kinds[i].fd ? 1 : 0);
		}
	}
}

static void test_unterminated_environment(void **state)
{
	struct pair *p = *state;
	uint8_t packet[4096];
	size_t n = packet_of(p, 0, packet, sizeof(packet));

	assert_int_equal(kinds[0].type, CTL_BOOT);
	packet[n - 1] = 'x';
	refused(p, packet, n, 0);
}

static void test_send_refuses_nonsense(void **state)
{
	struct pair *p = *state;
	const struct ctl_conn conn = {.uid = 0};
	const struct ctl_boot boot = {.slot = 0};
	const struct ctl_close grace = {.grace_ms = 1};
	static const uint8_t big[CTL_TAIL_MAX + 1];
	struct ctl_msg msg;

	assert_int_equal(ctl_send(p->a, CTL_NONE, 0, 0, NULL, NULL, 0, -1), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_TYPES, 0, 0, NULL, NULL, 0, -1), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_CHECK, 0, 0, &conn, NULL, 0, -1), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_CLOSE, 0, 0, NULL, NULL, 0, -1), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_CLOSE, 0, 0, &grace, "x", 1, -1), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_CLOSE, 0, 0, &grace, NULL, 0, p->a), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_HANDOVER, 0, 0, &conn, NULL, 0, -1), -EINVAL);
	assert_int_equal(ctl_send(p->a, CTL_BOOT, 0, 0, &boot, "A=B", 3, -1), -EINVAL);
	assert_int_equal(
	    ctl_send(p->a, CTL_HANDOVER, 0, 0, &conn, big, sizeof(big), p->a), -EMSGSIZE);
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), -EAGAIN); /* nothing went out */
	assert_int_equal(ctl_send(p->a, CTL_HANDOVER, 0, 0, &conn, big, CTL_TAIL_MAX, p->a), 0);
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), 1);
	assert_int_equal(msg.tail_len, CTL_TAIL_MAX);
	fd_close(&msg.fd);
}

static void test_full_queue_and_end(void **state)
{
	struct pair *p = *state;
	struct ctl_msg msg;
	int sent = 0;
	int rc;

	while ((rc = ctl_send(p->a, CTL_CHECK, (uint64_t)sent, 0, NULL, NULL, 0, -1)) == 0)
		sent++;
	assert_int_equal(rc, -EAGAIN);
	for (int i = 0; i < sent; i++) {
		assert_int_equal(ctl_recv(p->b, p->buf, &msg), 1);
		assert_int_equal(msg.head.seq, i);
	}
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), -EAGAIN);
	fd_close(&p->a);
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), 0);
	assert_int_equal(ctl_send(p->b, CTL_CHECK, 0, 0, NULL, NULL, 0, -1), -EPIPE);
}

/* Who ends with messages unread has sent what it sent all the same. */
static void test_end_of_one_that_did_not_read(void **state)
{
	struct pair *p = *state;
	struct ctl_msg msg;

	assert_int_equal(ctl_send(p->b, CTL_PONG, 0, 0, NULL, NULL, 0, -1), 0);
	assert_int_equal(ctl_send(p->a, CTL_CHECK, 4, 0, NULL, NULL, 0, -1), 0);
	fd_close(&p->a);
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), 1);
	assert_int_equal(msg.head.seq, 4);
	assert_int_equal(ctl_recv(p->b, p->buf, &msg), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_wrong_sizes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_tail_where_none_belongs, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_wrong_head, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_wrong_descriptors, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_oversized_packet, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_unterminated_texts, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_unterminated_environment, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_send_refuses_nonsense, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_full_queue_and_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_end_of_one_that_did_not_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
