/*
 * engine: sending and checking the messages between the BoxLite driver and sbx-boxlite. Both
 * processes; holds no state.
 */
#include "drivers/boxlite/engine.h"

#include <errno.h>
#include <string.h>

#include "wire/packet.h"

#define NAME_TEXTS                          \
	{                                   \
		PACKET_TEXT(eng_name, name) \
	}

static const struct packet_shape shapes[] = {
    [ENG_NONE] = {"none", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [ENG_OPEN] = {"open", TAIL_STRINGS, sizeof(struct eng_open), FD_NONE,
	{PACKET_TEXT(eng_open, home)}},
    [ENG_PULL] = {"pull", TAIL_NONE, sizeof(struct eng_image), FD_NONE,
	{PACKET_TEXT(eng_image, image)}},
    [ENG_START] = {"start", TAIL_NONE, sizeof(struct eng_start), FD_ONE,
	{PACKET_TEXT(eng_start, name), PACKET_TEXT(eng_start, image)}},
    [ENG_STATS] = {"stats", TAIL_NONE, sizeof(struct eng_name), FD_NONE, NAME_TEXTS},
    [ENG_STOP] = {"stop", TAIL_NONE, sizeof(struct eng_name), FD_NONE, NAME_TEXTS},
    [ENG_REMOVE] = {"remove", TAIL_NONE, sizeof(struct eng_name), FD_NONE, NAME_TEXTS},
    [ENG_LOOK] = {"look", TAIL_NONE, sizeof(struct eng_name), FD_NONE, NAME_TEXTS},
    [ENG_LIST] = {"list", TAIL_NONE, sizeof(struct eng_name), FD_NONE, NAME_TEXTS},
    [ENG_NAME] = {"name", TAIL_NONE, sizeof(struct eng_name), FD_NONE, NAME_TEXTS},
    [ENG_DONE] = {"done", TAIL_NONE, sizeof(struct eng_done), FD_NONE,
	{PACKET_TEXT(eng_done, version), PACKET_TEXT(eng_done, text)}},
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

_Static_assert(offsetof(struct eng_head, version) == offsetof(struct packet_head, version) &&
		   offsetof(struct eng_head, type) == offsetof(struct packet_head, type) &&
		   offsetof(struct eng_head, tail) == offsetof(struct packet_head, tail),
    "a head begins as every packet's does");

static const struct packet_contract contract = {
    .version = ENG_VERSION,
    .types = ENG_TYPES,
    .head_len = sizeof(struct eng_head),
    .tail_max = ENG_TAIL_MAX,
    .packet_max = ENG_MSG_MAX,
    .shapes = shapes,
};

const char *eng_type_name(uint32_t type)
{
	return packet_type_name(&contract, type);
}

int eng_send(int sock, enum eng_type type, uint64_t seq, const void *body, const void *tail,
    size_t tail_len, int fd)
{
	const struct eng_head head = {
	    .version = ENG_VERSION,
	    .type = (uint16_t)type,
	    .tail = (uint32_t)tail_len,
	    .seq = seq,
	};

	if (tail_len > ENG_TAIL_MAX)
		return -EMSGSIZE;
	return packet_send(&contract, sock, &head, body, tail, fd);
}

static void eng_fill(const uint8_t *buf, const struct packet *p, struct eng_msg *msg)
{
	memcpy(&msg->head, buf, sizeof(msg->head));
	memset(&msg->body, 0, sizeof(msg->body));
	memcpy(&msg->body, p->body, p->shape->fixed);
	msg->tail = p->tail;
	msg->tail_len = p->tail_len;
	msg->fd = p->fd;
}

int eng_parse(const uint8_t *buf, size_t n, struct eng_msg *msg)
{
	struct packet p;
	int rc = packet_parse(&contract, buf, n, &p);

	if (rc == 0)
		eng_fill(buf, &p, msg);
	return rc;
}

int eng_recv(int sock, uint8_t *buf, struct eng_msg *msg)
{
	struct packet p;
	int rc = packet_recv(&contract, sock, buf, &p);

	if (rc == 1)
		eng_fill(buf, &p, msg);
	return rc;
}
