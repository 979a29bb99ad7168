/*
 * engine: the whole contract between the BoxLite driver (in a worker, or in the janitor) and
 * sbx-boxlite, the program that has BoxLite's library in it, over one AF_UNIX SOCK_SEQPACKET pair.
 *
 * One message is one packet: struct eng_head, then the fixed struct of its type, then `tail` bytes
 * where the type has a tail. Both ends check sizes before they look inside; text fields are
 * NUL-terminated or the message is refused. The driver gives one order at a time and waits for its
 * ENG_DONE, within the time that the order allows. After ENG_START only ENG_STATS and ENG_STOP are
 * taken: by then whoever holds the socket may not be trusted any more. sbx-boxlite serves one box,
 * or none: it ends with its box, and with the end of the socket. Both are of one build.
 *
 * What the box's sbx-guest says and is told goes over the stream that comes with ENG_START, as the
 * guest's own stream does with other drivers.
 */
#ifndef SBXD_DRIVERS_BOXLITE_ENGINE_H
#define SBXD_DRIVERS_BOXLITE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#define ENG_VERSION 1U
#define ENG_MSG_MAX 32768U
#define ENG_TAIL_MAX 24576U
#define ENG_FD_CONTROL 3 /* the socket pair's end in sbx-boxlite; 0 and 1 are /dev/null */

#define ENG_SEQ_DIED 0U /* no order's */

enum eng_type {
	ENG_NONE = 0,

	/* driver -> sbx-boxlite; each is answered by ENG_DONE with the same seq */
	ENG_OPEN,   /* struct eng_open, tail: the options of section `boxlite.`, as struct
		       driver_options has them. First: loads the library, makes its runtime */
	ENG_PULL,   /* struct eng_image: the image is in the home directory afterwards */
	ENG_START,  /* struct eng_start, fd: the stream. The box runs, and its agent has said HELLO
		     */
	ENG_STATS,  /* struct eng_name: what the box in hand uses */
	ENG_STOP,   /* struct eng_name: the box in hand is removed; then sbx-boxlite ends */
	ENG_REMOVE, /* struct eng_name: the box of that name is removed, if there is one */
	ENG_LOOK,   /* struct eng_name: is there one, and does it run? */
	ENG_LIST,   /* struct eng_name, name: a prefix. ENG_NAME for each, then ENG_DONE */

	/* sbx-boxlite -> driver */
	ENG_NAME, /* struct eng_name, time_ms 0 */
	ENG_DONE, /* struct eng_done. With ENG_SEQ_DIED, unasked and before the stream ends: what
		     was wrong with the box */

	ENG_TYPES,
};

struct eng_head {
	uint16_t version;
	uint16_t type; /* enum eng_type */
	uint32_t tail; /* bytes after the fixed part */
	uint64_t seq;
};

struct eng_open {
	char home[256];	  /* BoxLite's home directory; empty: remote mode */
	uint32_t time_ms; /* how long it may take, as in all orders */
	uint32_t reserved;
};

struct eng_image {
	char image[128];
	uint32_t time_ms;
	uint32_t reserved;
};

#define ENG_START_HELPER 1U    /* the file helper goes into the box, too */
#define ENG_START_TAKE_OVER 2U /* the box is there and runs; its agent is started anew, alone */

struct eng_start {
	char name[64];
	char image[128]; /* of a registry, or the path of a directory */
	uint32_t memory_mib;
	uint32_t cpus_milli; /* 0: BoxLite's default */
	uint32_t disk_mib;
	uint32_t flags; /* ENG_START_* */
	uint32_t time_ms;
	uint32_t reserved;
};

struct eng_name {
	char name[64];
	uint32_t time_ms;
	uint32_t reserved;
};

#define ENG_DONE_GONE 1U    /* the error says that the box is there no more */
#define ENG_DONE_RUNNING 2U /* ENG_LOOK: it runs */
#define ENG_DONE_SHELL 4U   /* ENG_START: sbx-guest could not be had in the box; its shell serves */
#define ENG_DONE_CUT 8U	    /* ENG_LIST: there were more than could be read */
#define ENG_DONE_OUTLIVES 16U /* ENG_START: the box can be taken over when its driver dies */

struct eng_done {
	int32_t code;	 /* errno value, 0 done */
	int32_t library; /* BoxLite's own code, 0 none */
	uint32_t flags;	 /* ENG_DONE_* */
	uint32_t reserved;
	uint64_t cpu_ns; /* ENG_STATS */
	uint64_t memory_bytes;
	char version[32]; /* ENG_OPEN: of the library */
	char text[200];	  /* what failed, BoxLite's own words included */
};

union eng_body {
	struct eng_open open;
	struct eng_image image;
	struct eng_start start;
	struct eng_name name;
	struct eng_done done;
};

/* A received message. tail points into the receive buffer, valid until the next receive. fd is the
 * caller's or -1. */
struct eng_msg {
	struct eng_head head;
	union eng_body body;
	const uint8_t *tail;
	size_t tail_len;
	int fd;
};

/* Name for log lines; "?" when out of range. */
const char *eng_type_name(uint32_t type);

/* Sends one message without waiting; fd -1 for none (stays the caller's). 0, -EAGAIN, -EPIPE,
 * -EMSGSIZE, -EINVAL or -errno. */
int eng_send(int sock, enum eng_type type, uint64_t seq, const void *body, const void *tail,
    size_t tail_len, int fd);

/*
 * Receives one message into buf (ENG_MSG_MAX bytes). 1: *msg is filled; 0: the peer closed;
 * -EAGAIN: nothing there; -EBADMSG: the packet breaks the contract (its descriptors are closed); or
 * -errno.
 */
int eng_recv(int sock, uint8_t *buf, struct eng_msg *msg);

/* Checks one packet of n bytes as eng_recv() does: the fuzz target's entry. 0 or -EBADMSG. */
int eng_parse(const uint8_t *buf, size_t n, struct eng_msg *msg);

#endif
