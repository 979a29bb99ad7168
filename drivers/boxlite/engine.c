/*
 * engine: sending and checking the messages between the BoxLite driver and sbx-boxlite. Both
 * processes; holds no state. What arrives is the other side's word: a packet is looked into only
 * after its sizes fit.
 */
#include "drivers/boxlite/engine.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/fd.h"

#define ENG_TEXTS_MAX 2

struct eng_text {
	uint16_t off;
	uint16_t size;
};

struct eng_shape {
	const char *name;
	uint16_t fixed; /* bytes of the struct of this type */
	bool tail;	/* strings, each ended by a NUL, or nothing */
	bool fd;	/* exactly one descriptor comes along, else none */
	struct eng_text texts[ENG_TEXTS_MAX];
};

#define TEXT(type, member)                                                           \
	{                                                                            \
		offsetof(struct type, member), sizeof(((struct type *)NULL)->member) \
	}

static const struct eng_shape shapes[] = {
    [ENG_NONE] = {"none", 0, false, false, {{0, 0}}},
    [ENG_OPEN] = {"open", sizeof(struct eng_open), true, false, {TEXT(eng_open, home)}},
    [ENG_PULL] = {"pull", sizeof(struct eng_image), false, false, {TEXT(eng_image, image)}},
    [ENG_START] = {"start", sizeof(struct eng_start), false, true,
	{TEXT(eng_start, name), TEXT(eng_start, image)}},
    [ENG_STATS] = {"stats", sizeof(struct eng_name), false, false, {TEXT(eng_name, name)}},
    [ENG_STOP] = {"stop", sizeof(struct eng_name), false, false, {TEXT(eng_name, name)}},
    [ENG_REMOVE] = {"remove", sizeof(struct eng_name), false, false, {TEXT(eng_name, name)}},
    [ENG_LOOK] = {"look", sizeof(struct eng_name), false, false, {TEXT(eng_name, name)}},
    [ENG_LIST] = {"list", sizeof(struct eng_name), false, false, {TEXT(eng_name, name)}},
    [ENG_NAME] = {"name", sizeof(struct eng_name), false, false, {TEXT(eng_name, name)}},
    [ENG_DONE] = {"done", sizeof(struct eng_done), false, false,
	{TEXT(eng_done, version), TEXT(eng_done, text)}},
};
_Static_assert(sizeof(shapes) / sizeof(shapes[0]) == ENG_TYPES, "every type has its row");

/* No padding, so nothing of a sender's stack travels. */
_Static_assert(sizeof(struct eng_head) == 16, "layout of eng_head");
_Static_assert(sizeof(struct eng_open) == 264, "layout of eng_open");
_Static_assert(sizeof(struct eng_image) == 136, "layout of eng_image");
_Static_assert(sizeof(struct eng_start) == 216, "layout of eng_start");
_Static_assert(sizeof(struct eng_name) == 72, "layout of eng_name");
_Static_assert(sizeof(struct eng_done) == 264, "layout of eng_done");
_Static_assert(sizeof(struct eng_head) + sizeof(union eng_body) + ENG_TAIL_MAX <= ENG_MSG_MAX,
    "the largest message fits a packet");

const char *eng_type_name(uint32_t type)
{
	return type < ENG_TYPES ? shapes[type].name : "?";
}

static bool eng_tail_fits(const struct eng_shape *shape, const uint8_t *tail, size_t len)
{
	return len == 0 || (shape->tail && len <= ENG_TAIL_MAX && tail[len - 1] == '\0');
}

int eng_send(int sock, enum eng_type type, uint64_t seq, const void *body, const void *tail,
    size_t tail_len, int fd)
{
	struct eng_head head = {
	    .version = ENG_VERSION,
	    .type = (uint16_t)type,
	    .tail = (uint32_t)tail_len,
	    .seq = seq,
	};
	struct iovec iov[3] = {
	    {.iov_base = &head, .iov_len = sizeof(head)},
	    {.iov_base = (void *)(uintptr_t)body},
	    {.iov_base = (void *)(uintptr_t)tail, .iov_len = tail_len},
	};
	ssize_t n;

	if (type <= ENG_NONE || type >= ENG_TYPES || !body || shapes[type].fd != (fd >= 0) ||
	    !eng_tail_fits(&shapes[type], tail, tail_len))
		return -EINVAL;
	iov[1].iov_len = shapes[type].fixed;
	n = fd_send_iov(sock, iov, 3, &fd, fd >= 0 ? 1 : 0);
	return n < 0 ? (int)n : 0;
}

static bool eng_texts_end(const struct eng_shape *shape, const uint8_t *body)
{
	for (size_t i = 0; i < ENG_TEXTS_MAX && shape->texts[i].size; i++) {
		if (!memchr(body + shape->texts[i].off, '\0', shape->texts[i].size))
			return false;
	}
	return true;
}

/* The shape of a packet that keeps the contract, else NULL. */
static const struct eng_shape *eng_check(const uint8_t *buf, size_t n)
{
	const struct eng_shape *shape;
	const uint8_t *body = buf + sizeof(struct eng_head);
	struct eng_head head;

	if (n < sizeof(head))
		return NULL;
	memcpy(&head, buf, sizeof(head));
	if (head.version != ENG_VERSION || head.type == ENG_NONE || head.type >= ENG_TYPES)
		return NULL;
	shape = &shapes[head.type];
	n -= sizeof(head);
	if (n < shape->fixed || n - shape->fixed != head.tail)
		return NULL;
	if (!eng_tail_fits(shape, body + shape->fixed, head.tail) || !eng_texts_end(shape, body))
		return NULL;
	return shape;
}

static void eng_fill(const struct eng_shape *shape, const uint8_t *buf, int fd, struct eng_msg *msg)
{
	memcpy(&msg->head, buf, sizeof(msg->head));
	memset(&msg->body, 0, sizeof(msg->body));
	memcpy(&msg->body, buf + sizeof(msg->head), shape->fixed);
	msg->tail = buf + sizeof(msg->head) + shape->fixed;
	msg->tail_len = msg->head.tail;
	msg->fd = fd;
}

int eng_parse(const uint8_t *buf, size_t n, struct eng_msg *msg)
{
	const struct eng_shape *shape = eng_check(buf, n);

	if (!shape)
		return -EBADMSG;
	eng_fill(shape, buf, -1, msg);
	return 0;
}

int eng_recv(int sock, uint8_t *buf, struct eng_msg *msg)
{
	const struct eng_shape *shape;
	int fds[FD_PASS_MAX];
	ssize_t n = fd_recv_msg(sock, buf, ENG_MSG_MAX, fds);

	if (n == -ECONNRESET) /* it ended with unread messages; what it had sent is still there */
		n = fd_recv_msg(sock, buf, ENG_MSG_MAX, fds);
	if (n < 0)
		return n == -EMSGSIZE ? -EBADMSG : (int)n;
	shape = eng_check(buf, (size_t)n);
	if (shape && fds[1] < 0 && shape->fd == (fds[0] >= 0)) {
		eng_fill(shape, buf, fds[0], msg);
		return 1;
	}
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		fd_close(&fds[i]);
	return n == 0 ? 0 : -EBADMSG;
}
