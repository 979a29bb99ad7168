/*
 * packet: one message of a contract over an AF_UNIX SOCK_SEQPACKET pair, whatever the contract is
 * (wire/control.h, drivers/boxlite/engine.h).
 *
 * A packet is a head, then the fixed struct of its type, then `tail` bytes where the type has a
 * tail. A contract is a table with one shape for each type. What arrives is the other side's word:
 * a packet is looked into only after its sizes fit, and its text fields end.
 */
#ifndef SBXD_WIRE_PACKET_H
#define SBXD_WIRE_PACKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PACKET_TEXTS_MAX 12

/* What the head of every contract begins with. */
struct packet_head {
	uint16_t version;
	uint16_t type; /* 0: none */
	uint32_t tail; /* bytes after the fixed part */
};

enum packet_tail {
	TAIL_NONE,
	TAIL_BYTES,
	TAIL_STRINGS, /* each ended by a NUL, or nothing */
};

enum packet_fd {
	FD_NONE,
	FD_ONE, /* exactly one descriptor comes along */
	FD_MAY, /* or none */
};

/* A text field of the fixed struct: a NUL is in it. */
struct packet_text {
	uint16_t off;
	uint16_t size;
};

#define PACKET_TEXT(type, member)                                                    \
	{                                                                            \
		offsetof(struct type, member), sizeof(((struct type *)NULL)->member) \
	}

struct packet_shape {
	const char *name;
	enum packet_tail tail;
	uint16_t fixed; /* bytes of the struct of this type; 0: it has none */
	enum packet_fd fd;
	struct packet_text texts[PACKET_TEXTS_MAX]; /* ends with size 0 */
};

/* The sizes are checked by who defines one: head, largest fixed struct and tail fit a packet. */
struct packet_contract {
	uint16_t version;
	uint16_t types; /* shapes; that of type 0 is never sent */
	uint32_t head_len;
	uint32_t tail_max;
	uint32_t packet_max;
	const struct packet_shape *shapes;
};

/* A packet that keeps its contract. body and tail point into the buffer it was read from. */
struct packet {
	const struct packet_shape *shape;
	const uint8_t *body; /* shape->fixed bytes, of no alignment */
	const uint8_t *tail;
	size_t tail_len;
	int fd; /* the receiver's, or -1 */
};

/* Name of a type for log lines; "?" when out of range. */
const char *packet_type_name(const struct packet_contract *c, uint32_t type);

/*
 * Sends one message without waiting. head: c->head_len bytes, with version, type and tail filled
 * in; body: the fixed struct of the type, or NULL where it has none; fd -1 for none (stays the
 * caller's). 0, -EINVAL when it breaks the contract, -EMSGSIZE, -EAGAIN (the peer's queue is full),
 * -EPIPE or -errno.
 */
int packet_send(const struct packet_contract *c, int sock, const void *head, const void *body,
    const void *tail, int fd);

/*
 * Receives one message into buf (c->packet_max bytes). 1: *out is filled; 0: the peer closed;
 * -EAGAIN: nothing there; -EBADMSG: it breaks the contract (its descriptors are closed); or -errno.
 */
int packet_recv(const struct packet_contract *c, int sock, uint8_t *buf, struct packet *out);

/* Checks n bytes as packet_recv() does; without a descriptor. 0 or -EBADMSG. */
int packet_parse(const struct packet_contract *c, const uint8_t *buf, size_t n, struct packet *out);

#endif
