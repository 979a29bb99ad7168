/*
 * control: sending and checking the messages between sbxd and its workers. Both processes; holds no
 * state. What arrives is the other side's word: a packet is looked into only after its sizes fit.
 */
#include "wire/control.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define CTL_TEXTS_MAX 12

enum ctl_tail {
	TAIL_NONE,
	TAIL_BYTES,
	TAIL_STRINGS, /* each ended by a NUL */
};

enum ctl_passed {
	FD_NONE,
	FD_ONE, /* exactly one descriptor comes along */
	FD_MAY, /* or none */
};

struct ctl_text {
	uint16_t off;
	uint16_t size;
};

struct ctl_shape {
	const char *name;
	enum ctl_tail tail;
	uint16_t fixed; /* bytes of the struct of this type */
	enum ctl_passed fd;
	struct ctl_text texts[CTL_TEXTS_MAX]; /* ends with size 0 */
};

#define TEXT(type, member)                                                           \
	{                                                                            \
		offsetof(struct type, member), sizeof(((struct type *)NULL)->member) \
	}
#define SITE_TEXTS(type)                                                                \
	TEXT(type, site.instance), TEXT(type, site.driver), TEXT(type, site.state_dir), \
	    TEXT(type, site.runtime_dir)

#define CONN_TEXTS                                                      \
	{                                                               \
		TEXT(ctl_conn, request_id), TEXT(ctl_conn, traceparent) \
	}
#define FAILED_TEXTS                                             \
	{                                                        \
		TEXT(ctl_failed, reason), TEXT(ctl_failed, text) \
	}
#define PREPARE_TEXTS                                             \
	{                                                         \
		SITE_TEXTS(ctl_prepare), TEXT(ctl_prepare, image) \
	}

static const struct ctl_shape shapes[] = {
    [CTL_NONE] = {"none", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_BOOT] = {"boot", TAIL_STRINGS, sizeof(struct ctl_boot), FD_NONE,
	{SITE_TEXTS(ctl_boot), TEXT(ctl_boot, name), TEXT(ctl_boot, token), TEXT(ctl_boot, image),
	    TEXT(ctl_boot, box_name), TEXT(ctl_boot, user), TEXT(ctl_boot, working_dir)}},
    [CTL_HANDOVER] = {"handover", TAIL_BYTES, sizeof(struct ctl_conn), FD_ONE, CONN_TEXTS},
    [CTL_CHECK] = {"check", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PARK] = {"park", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PROMOTE] = {"promote", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PING] = {"ping", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_CLAIM] = {"claim", TAIL_NONE, sizeof(struct ctl_claim), FD_NONE, {TEXT(ctl_claim, token)}},
    [CTL_CLOSE] = {"close", TAIL_NONE, sizeof(struct ctl_close), FD_NONE, {{0, 0}}},
    [CTL_STOP] = {"stop", TAIL_NONE, sizeof(struct ctl_stop), FD_NONE, {{0, 0}}},
    [CTL_HELLO] = {"hello", TAIL_NONE, sizeof(struct ctl_hello), FD_NONE, {{0, 0}}},
    [CTL_HELD] = {"held", TAIL_NONE, sizeof(struct ctl_conn), FD_ONE, CONN_TEXTS},
    [CTL_BOOTED] = {"booted", TAIL_NONE, sizeof(struct ctl_booted), FD_NONE,
	{TEXT(ctl_booted, isolation)}},
    [CTL_FAILED] = {"failed", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_PONG] = {"pong", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_CHECKED] = {"checked", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_HANDBACK] = {"handback", TAIL_BYTES, sizeof(struct ctl_conn), FD_ONE, CONN_TEXTS},
    [CTL_CONN_GONE] = {"conn_gone", TAIL_NONE, sizeof(struct ctl_conn), FD_NONE, CONN_TEXTS},
    [CTL_BOX_DIED] = {"box_died", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_CLOSED] = {"closed", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_STOPPED] = {"stopped", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_PREPARE] = {"prepare", TAIL_STRINGS, sizeof(struct ctl_prepare), FD_ONE, PREPARE_TEXTS},
    [CTL_CLEANUP] = {"cleanup", TAIL_STRINGS, sizeof(struct ctl_cleanup), FD_NONE,
	{SITE_TEXTS(ctl_cleanup), TEXT(ctl_cleanup, name)}},
    [CTL_SWEEP] = {"sweep", TAIL_STRINGS, sizeof(struct ctl_prepare), FD_ONE, PREPARE_TEXTS},
    [CTL_FINISH] = {"finish", TAIL_STRINGS, sizeof(struct ctl_prepare), FD_NONE, PREPARE_TEXTS},
    [CTL_BUSY] = {"busy", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_IMAGE] = {"image", TAIL_STRINGS, sizeof(struct ctl_image), FD_ONE,
	{SITE_TEXTS(ctl_image), TEXT(ctl_image, image)}},
    [CTL_PROGRESS] = {"progress", TAIL_NONE, sizeof(struct ctl_progress), FD_NONE,
	{TEXT(ctl_progress, stage)}},
    [CTL_DONE] = {"done", TAIL_STRINGS, sizeof(struct ctl_done), FD_MAY,
	{TEXT(ctl_done, driver), TEXT(ctl_done, isolation), TEXT(ctl_done, warning),
	    TEXT(ctl_done, text), TEXT(ctl_done, passed)}},
};
_Static_assert(sizeof(shapes) / sizeof(shapes[0]) == CTL_TYPES, "every type has its row");

/* No padding, so nothing of a sender's stack travels; both ends are of one build and one machine.
 */
_Static_assert(sizeof(struct ctl_head) == 24, "layout of ctl_head");
_Static_assert(sizeof(struct ctl_site) == 568, "layout of ctl_site");
_Static_assert(sizeof(struct ctl_limits) == 64, "layout of ctl_limits");
_Static_assert(sizeof(struct ctl_boot) == 2184, "layout of ctl_boot");
_Static_assert(sizeof(struct ctl_conn) == 144, "layout of ctl_conn");
_Static_assert(sizeof(struct ctl_claim) == 24, "layout of ctl_claim");
_Static_assert(sizeof(struct ctl_close) == 8, "layout of ctl_close");
_Static_assert(sizeof(struct ctl_stop) == 8, "layout of ctl_stop");
_Static_assert(sizeof(struct ctl_hello) == 16, "layout of ctl_hello");
_Static_assert(sizeof(struct ctl_booted) == 40, "layout of ctl_booted");
_Static_assert(sizeof(struct ctl_failed) == 200, "layout of ctl_failed");
_Static_assert(sizeof(struct ctl_prepare) == 696, "layout of ctl_prepare");
_Static_assert(sizeof(struct ctl_image) == 720, "layout of ctl_image");
_Static_assert(sizeof(struct ctl_progress) == 32, "layout of ctl_progress");
_Static_assert(sizeof(struct ctl_cleanup) == 648, "layout of ctl_cleanup");
_Static_assert(sizeof(struct ctl_done) == 800, "layout of ctl_done");
_Static_assert(sizeof(struct ctl_head) + sizeof(union ctl_body) + CTL_TAIL_MAX <= CTL_MSG_MAX,
    "the largest message fits a packet");

const char *ctl_type_name(uint32_t type)
{
	return type < CTL_TYPES ? shapes[type].name : "?";
}

static bool ctl_tail_fits(const struct ctl_shape *shape, const uint8_t *tail, size_t len)
{
	switch (shape->tail) {
	case TAIL_NONE:
		return len == 0;
	case TAIL_BYTES:
		return len <= CTL_TAIL_MAX;
	case TAIL_STRINGS:
		return len == 0 || (len <= CTL_TAIL_MAX && tail[len - 1] == '\0');
	}
	return false;
}

static bool ctl_texts_end(const struct ctl_shape *shape, const uint8_t *body)
{
	for (size_t i = 0; i < CTL_TEXTS_MAX && shape->texts[i].size; i++) {
		if (!memchr(body + shape->texts[i].off, '\0', shape->texts[i].size))
			return false;
	}
	return true;
}

static bool ctl_fd_fits(const struct ctl_shape *shape, int fd)
{
	return shape->fd == FD_MAY || (shape->fd == FD_ONE) == (fd >= 0);
}

int ctl_send(int sock, enum ctl_type type, uint64_t seq, uint64_t gen, const void *body,
    const void *tail, size_t tail_len, int fd)
{
	const struct ctl_shape *shape;
	struct ctl_head head = {
	    .version = CTL_VERSION,
	    .type = (uint16_t)type,
	    .tail = (uint32_t)tail_len,
	    .seq = seq,
	    .gen = gen,
	};
	struct iovec iov[3] = {
	    {.iov_base = &head, .iov_len = sizeof(head)},
	    {.iov_base = (void *)(uintptr_t)body},
	    {.iov_base = (void *)(uintptr_t)tail, .iov_len = tail_len},
	};
	ssize_t n;

	if (type <= CTL_NONE || type >= CTL_TYPES)
		return -EINVAL;
	shape = &shapes[type];
	if (tail_len > CTL_TAIL_MAX)
		return -EMSGSIZE;
	if ((shape->fixed != 0) != (body != NULL) || !ctl_fd_fits(shape, fd) ||
	    !ctl_tail_fits(shape, tail, tail_len))
		return -EINVAL;
	iov[1].iov_len = shape->fixed;
	n = fd_send_iov(sock, iov, 3, &fd, fd >= 0 ? 1 : 0);
	return n < 0 ? (int)n : 0;
}

/* The shape of a packet that keeps the contract, else NULL. */
static const struct ctl_shape *ctl_check(const uint8_t *buf, size_t n)
{
	const struct ctl_shape *shape;
	const uint8_t *body = buf + sizeof(struct ctl_head);
	struct ctl_head head;

	if (n < sizeof(head))
		return NULL;
	memcpy(&head, buf, sizeof(head));
	if (head.version != CTL_VERSION || head.type == CTL_NONE || head.type >= CTL_TYPES)
		return NULL;
	shape = &shapes[head.type];
	n -= sizeof(head);
	if (n < shape->fixed || n - shape->fixed != head.tail)
		return NULL;
	if (!ctl_tail_fits(shape, body + shape->fixed, head.tail) || !ctl_texts_end(shape, body))
		return NULL;
	return shape;
}

static void ctl_fill(const struct ctl_shape *shape, const uint8_t *buf, int fd, struct ctl_msg *msg)
{
	memcpy(&msg->head, buf, sizeof(msg->head));
	memset(&msg->body, 0, sizeof(msg->body));
	memcpy(&msg->body, buf + sizeof(msg->head), shape->fixed);
	msg->tail = buf + sizeof(msg->head) + shape->fixed;
	msg->tail_len = msg->head.tail;
	msg->fd = fd;
}

int ctl_parse(const uint8_t *buf, size_t n, struct ctl_msg *msg)
{
	const struct ctl_shape *shape = ctl_check(buf, n);

	if (!shape)
		return -EBADMSG;
	ctl_fill(shape, buf, -1, msg);
	return 0;
}

int ctl_recv(int sock, uint8_t *buf, struct ctl_msg *msg)
{
	const struct ctl_shape *shape;
	int fds[FD_PASS_MAX];
	ssize_t n = fd_recv_msg(sock, buf, CTL_MSG_MAX, fds);

	if (n == -ECONNRESET) /* it ended with unread messages; what it had sent is still there */
		n = fd_recv_msg(sock, buf, CTL_MSG_MAX, fds);
	if (n < 0)
		return n == -EMSGSIZE ? -EBADMSG : (int)n;
	shape = ctl_check(buf, (size_t)n);
	if (shape && fds[1] < 0 && ctl_fd_fits(shape, fds[0])) {
		ctl_fill(shape, buf, fds[0], msg);
		return 1;
	}
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		fd_close(&fds[i]);
	return n == 0 ? 0 : -EBADMSG;
}
