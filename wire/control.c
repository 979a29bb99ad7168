/*
 * control: sending and checking the messages between sbxd and its workers. Both processes; holds no
 * state.
 */
#include "wire/control.h"

#include <errno.h>
#include <string.h>

#include "wire/packet.h"

#define SITE_TEXTS(type)                                                  \
	PACKET_TEXT(type, site.instance), PACKET_TEXT(type, site.driver), \
	    PACKET_TEXT(type, site.state_dir), PACKET_TEXT(type, site.runtime_dir)

#define CONN_TEXTS                                                                    \
	{                                                                             \
		PACKET_TEXT(ctl_conn, request_id), PACKET_TEXT(ctl_conn, traceparent) \
	}
#define FAILED_TEXTS                                                           \
	{                                                                      \
		PACKET_TEXT(ctl_failed, reason), PACKET_TEXT(ctl_failed, text) \
	}
#define PREPARE_TEXTS                                                    \
	{                                                                \
		SITE_TEXTS(ctl_prepare), PACKET_TEXT(ctl_prepare, image) \
	}

static const struct packet_shape shapes[] = {
    [CTL_NONE] = {"none", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_BOOT] = {"boot", TAIL_STRINGS, sizeof(struct ctl_boot), FD_NONE,
	{SITE_TEXTS(ctl_boot), PACKET_TEXT(ctl_boot, name), PACKET_TEXT(ctl_boot, token),
	    PACKET_TEXT(ctl_boot, image), PACKET_TEXT(ctl_boot, box_name),
	    PACKET_TEXT(ctl_boot, user), PACKET_TEXT(ctl_boot, working_dir)}},
    [CTL_HANDOVER] = {"handover", TAIL_BYTES, sizeof(struct ctl_conn), FD_ONE, CONN_TEXTS},
    [CTL_CHECK] = {"check", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PARK] = {"park", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PROMOTE] = {"promote", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PING] = {"ping", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_CLAIM] = {"claim", TAIL_NONE, sizeof(struct ctl_claim), FD_NONE,
	{PACKET_TEXT(ctl_claim, token)}},
    [CTL_CLOSE] = {"close", TAIL_NONE, sizeof(struct ctl_close), FD_NONE, {{0, 0}}},
    [CTL_STOP] = {"stop", TAIL_NONE, sizeof(struct ctl_stop), FD_NONE, {{0, 0}}},
    [CTL_HELLO] = {"hello", TAIL_NONE, sizeof(struct ctl_hello), FD_NONE, {{0, 0}}},
    [CTL_HELD] = {"held", TAIL_NONE, sizeof(struct ctl_conn), FD_ONE, CONN_TEXTS},
    [CTL_BOOTED] = {"booted", TAIL_NONE, sizeof(struct ctl_booted), FD_NONE,
	{PACKET_TEXT(ctl_booted, isolation)}},
    [CTL_FAILED] = {"failed", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_PONG] = {"pong", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_CHECKED] = {"checked", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_HANDBACK] = {"handback", TAIL_BYTES, sizeof(struct ctl_conn), FD_ONE, CONN_TEXTS},
    [CTL_CONN_GONE] = {"conn_gone", TAIL_NONE, sizeof(struct ctl_conn), FD_NONE, CONN_TEXTS},
    [CTL_BOX_DIED] = {"box_died", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_CLOSED] = {"closed", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_STOPPED] = {"stopped", TAIL_NONE, sizeof(struct ctl_failed), FD_NONE, FAILED_TEXTS},
    [CTL_LEFT] = {"left", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_PREPARE] = {"prepare", TAIL_STRINGS, sizeof(struct ctl_prepare), FD_ONE, PREPARE_TEXTS},
    [CTL_CLEANUP] = {"cleanup", TAIL_STRINGS, sizeof(struct ctl_cleanup), FD_NONE,
	{SITE_TEXTS(ctl_cleanup), PACKET_TEXT(ctl_cleanup, name)}},
    [CTL_SWEEP] = {"sweep", TAIL_STRINGS, sizeof(struct ctl_prepare), FD_ONE, PREPARE_TEXTS},
    [CTL_FINISH] = {"finish", TAIL_STRINGS, sizeof(struct ctl_prepare), FD_NONE, PREPARE_TEXTS},
    [CTL_BUSY] = {"busy", TAIL_NONE, 0, FD_NONE, {{0, 0}}},
    [CTL_IMAGE] = {"image", TAIL_STRINGS, sizeof(struct ctl_image), FD_ONE,
	{SITE_TEXTS(ctl_image), PACKET_TEXT(ctl_image, image)}},
    [CTL_PROGRESS] = {"progress", TAIL_NONE, sizeof(struct ctl_progress), FD_NONE,
	{PACKET_TEXT(ctl_progress, stage)}},
    [CTL_DONE] = {"done", TAIL_STRINGS, sizeof(struct ctl_done), FD_MAY,
	{PACKET_TEXT(ctl_done, driver), PACKET_TEXT(ctl_done, isolation),
	    PACKET_TEXT(ctl_done, warning), PACKET_TEXT(ctl_done, text),
	    PACKET_TEXT(ctl_done, passed)}},
};
_Static_assert(sizeof(shapes) / sizeof(shapes[0]) == CTL_TYPES, "every type has its row");

/* No padding, so nothing of a sender's stack travels; both ends are of one build and one machine.
 */
_Static_assert(sizeof(struct ctl_head) == 24, "layout of ctl_head");
_Static_assert(sizeof(struct ctl_site) == 568, "layout of ctl_site");
_Static_assert(sizeof(struct ctl_limits) == 64, "layout of ctl_limits");
_Static_assert(sizeof(struct ctl_boot) == 2192, "layout of ctl_boot");
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

_Static_assert(offsetof(struct ctl_head, version) == offsetof(struct packet_head, version) &&
		   offsetof(struct ctl_head, type) == offsetof(struct packet_head, type) &&
		   offsetof(struct ctl_head, tail) == offsetof(struct packet_head, tail),
    "a head begins as every packet's does");

static const struct packet_contract contract = {
    .version = CTL_VERSION,
    .types = CTL_TYPES,
    .head_len = sizeof(struct ctl_head),
    .tail_max = CTL_TAIL_MAX,
    .packet_max = CTL_MSG_MAX,
    .shapes = shapes,
};

const char *ctl_type_name(uint32_t type)
{
	return packet_type_name(&contract, type);
}

int ctl_send(int sock, enum ctl_type type, uint64_t seq, uint64_t gen, const void *body,
    const void *tail, size_t tail_len, int fd)
{
	const struct ctl_head head = {
	    .version = CTL_VERSION,
	    .type = (uint16_t)type,
	    .tail = (uint32_t)tail_len,
	    .seq = seq,
	    .gen = gen,
	};

	if (tail_len > CTL_TAIL_MAX)
		return -EMSGSIZE;
	return packet_send(&contract, sock, &head, body, tail, fd);
}

static void ctl_fill(const uint8_t *buf, const struct packet *p, struct ctl_msg *msg)
{
	memcpy(&msg->head, buf, sizeof(msg->head));
	memset(&msg->body, 0, sizeof(msg->body));
	memcpy(&msg->body, p->body, p->shape->fixed);
	msg->tail = p->tail;
	msg->tail_len = p->tail_len;
	msg->fd = p->fd;
}

int ctl_parse(const uint8_t *buf, size_t n, struct ctl_msg *msg)
{
	struct packet p;
	int rc = packet_parse(&contract, buf, n, &p);

	if (rc == 0)
		ctl_fill(buf, &p, msg);
	return rc;
}

int ctl_recv(int sock, uint8_t *buf, struct ctl_msg *msg)
{
	struct packet p;
	int rc = packet_recv(&contract, sock, buf, &p);

	if (rc == 1)
		ctl_fill(buf, &p, msg);
	return rc;
}
