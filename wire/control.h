/*
 * control: the whole contract between sbxd and a worker (and the janitor), over one AF_UNIX
 * SOCK_SEQPACKET pair.
 *
 * One message is one packet: struct ctl_head, then the fixed struct of its type, then `tail` bytes
 * where the type has a tail. Both ends check sizes before they look inside; text fields are
 * NUL-terminated or the message is refused. The worker trusts sbxd; sbxd trusts nothing a worker
 * says: it answers or drops, and a worker that breaks the contract is killed.
 *
 * Both are the same program, exec'ed by sbxd:
 *
 *     sbx-worker box SLOT    with the descriptors CTL_FD_*
 *     sbx-worker janitor     with CTL_FD_CONTROL only
 *     sbx-worker image       as the janitor: one order about the image store, then it exits; or
 *                            about templates, with CTL_FD_GUEST and CTL_FD_HELPER, too, and to
 *                            make one with CTL_FD_PREPARED and CTL_FD_IMAGE
 *
 * A worker outlives its sbxd. The next one connects to the worker's own socket (wire/rendezvous.h)
 * and is told CTL_HELLO, CTL_BOOTED once more where the box is up, and CTL_HELD; then that
 * connection is as the pair was.
 */
#ifndef SBXD_WIRE_CONTROL_H
#define SBXD_WIRE_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/fd.h"

#define CTL_VERSION 2U
#define CTL_MSG_MAX 98304U  /* 96 KiB: one packet, head included */
#define CTL_TAIL_MAX 81920U /* 80 KiB: bytes after the fixed part */

/* Fixed descriptors of a worker. 0 and 1 are /dev/null, 2 is sbxd's log. */
#define CTL_FD_CONTROL 3  /* the socket pair's end */
#define CTL_FD_SEGMENT 4  /* the shared segment; closed once the own page is mapped */
#define CTL_FD_PREPARED 5 /* memfd: what the driver prepared for the box's image */
#define CTL_FD_GUEST 6	  /* the sbx-guest binary, for execveat() */
#define CTL_FD_HELPER 7	  /* the sbx-files binary, for execveat() in the box; may be missing */
#define CTL_FD_IMAGE 8	  /* keeps the box's image in the store while it is open; may be missing */

enum ctl_type {
	CTL_NONE = 0,

	/* sbxd -> worker */
	CTL_BOOT, /* struct ctl_boot, tail: environment "K=V\0"...; first message a worker gets */
	CTL_HANDOVER, /* struct ctl_conn, tail: bytes already read, fd: the connection */
	CTL_CHECK,    /* no body: health check; answered by CTL_CHECKED */
	CTL_PARK,     /* no body: the box is warm now (a driver may pause it) */
	CTL_PROMOTE,  /* no body: the box is active now */
	CTL_CLAIM,    /* struct ctl_claim: whose the box is now, if it was made for stock; may come
			 again */
	CTL_PING,     /* no body: does the worker's loop turn? answered by CTL_PONG at once */
	CTL_CLOSE,    /* struct ctl_close: sync, stop the box, answer CTL_CLOSED, exit */
	CTL_STOP,     /* struct ctl_stop: end every process in the box, answer CTL_STOPPED; what is
			 handed over afterwards starts it again. A stop under way is joined: of all
			 orders the newest is answered */

	/* worker -> sbxd */
	CTL_HELLO, /* struct ctl_hello: first message a worker sends, to each supervisor it has */
	CTL_HELD, /* struct ctl_conn, fd: a connection in its hands; `conns` of them follow hello */
	CTL_BOOTED,   /* struct ctl_booted; to each supervisor, of which the one before may not have
			 heard it */
	CTL_FAILED,   /* struct ctl_failed: boot failed; the worker exits */
	CTL_PONG,     /* no body */
	CTL_CHECKED,  /* struct ctl_failed with code 0 when healthy */
	CTL_HANDBACK, /* struct ctl_conn, tail: bytes read and not used, fd: the connection */
	CTL_CONN_GONE, /* struct ctl_conn: the client went, or the worker closed the connection */
	CTL_BOX_DIED,  /* struct ctl_failed: the transport broke, or a box that boots was killed, or
			  what was prepared for it is gone (code ESTALE); clients are answered,
			  then exit */
	CTL_CLOSED,    /* struct ctl_failed: the box is closed (code 0) or how that failed */
	CTL_STOPPED,   /* struct ctl_failed: no process is left (code 0) or how that failed */
	CTL_LEFT,      /* no body, after CTL_BOX_DIED: only what drove the box has died, the box is
			  as it was; to each supervisor */

	/* sbxd -> janitor; each is answered by CTL_DONE with the same seq; tail: what the drivers'
	 * sections of the configuration say, as struct driver_options has it */
	CTL_PREPARE, /* struct ctl_prepare, fd: a memfd to write what is prepared for the image to.
			The driver may be `auto`: the answer says which it is. Code ENODATA: the
			image is to be pulled first */
	CTL_CLEANUP, /* struct ctl_cleanup: prove a box's processes gone, remove what it left. With
			the driver `auto`, whatever driver made it */
	CTL_SWEEP,   /* struct ctl_prepare, fd: a memfd of names to keep, each after its CTL_KEEP_*
			and ended by a NUL. Cleans up every box of the instance that is not among
			them, whatever driver made it, and looks whether those are there that are to
			live on */
	CTL_FINISH,  /* struct ctl_prepare: remove what drivers keep for the whole instance */

	/* sbxd -> image process, which answers CTL_PROGRESS as often as it likes, then CTL_DONE */
	CTL_IMAGE, /* struct ctl_image, fd: a memfd that gets the result as JSON, tail: as above */

	/* janitor or image process -> sbxd */
	CTL_BUSY, /* no body, from the janitor: it is at the order of that seq, which takes long but
		     gets on */
	CTL_DONE, /* struct ctl_done. To CTL_PREPARE, where the image is of the store: fd, which
		     keeps it there, and tail: its user, its working directory, its environment */
	CTL_PROGRESS, /* struct ctl_progress */

	CTL_TYPES,
};

struct ctl_head {
	uint16_t version;
	uint16_t type; /* enum ctl_type */
	uint32_t tail; /* bytes after the fixed part */
	uint64_t seq;  /* answers carry the seq of what they answer */
	uint64_t gen;  /* of the box, 0 for the janitor; a worker drops a stale one, sbxd takes it
			  for a lie */
};

#define CTL_TEXT 160
#define CTL_WHY 248 /* all of a struct err's text */
#define CTL_PATH 256
#define CTL_BOX_NAME 136 /* what a client calls its box */
#define CTL_USER 136	 /* name or uid, and after a colon group or gid */
#define CTL_WORKING_DIR 1024

/* What a driver needs to know of the service; the same in every message that has one. */
struct ctl_site {
	char instance[32];
	char driver[16];
	char state_dir[CTL_PATH];
	char runtime_dir[CTL_PATH];
	uint32_t
	    uid_base; /* first of the host uids given to boxes; 0: no uid of their own (not root) */
	uint32_t reserved;
};

/* What the clients of a box may use, as the configuration says; defaults: wire/limits.h. Times in
 * ms. */
struct ctl_limits {
	uint32_t head_bytes;
	uint32_t json_depth;
	uint32_t connections; /* in the worker's hands; at most SHM_CONNS */
	uint32_t idle_ms; /* a connection between two requests, then it goes back; 0: for ever */
	uint32_t run_output_bytes;     /* kept of each of stdout and stderr */
	uint32_t max_executions;       /* at once; and as many that have ended are kept */
	uint32_t exec_detach_grace_ms; /* without a client; 0: for ever */
	uint32_t exec_keep_ms;	       /* after their end */
	uint32_t op_stall_ms;	       /* of a transfer or a question, in the guest; 0: for ever */
	uint32_t reserved;
	uint64_t run_body_bytes;
	uint64_t exec_body_bytes;
	uint64_t file_bytes; /* of one file, up or down */
};

/* The box is there already: its worker died, and it did not. It is taken over, not made. */
#define CTL_BOOT_TAKE_OVER 1U

struct ctl_boot {
	struct ctl_site site;
	char name[64];	/* box name, sbxd-<instance>-... */
	char token[24]; /* box id, for log lines and answers */
	char image[128];
	uint32_t slot;
	uint32_t memory_mib;
	uint32_t cpus_milli; /* thousandths of a cpu; 0: no limit */
	uint32_t disk_mib;
	uint32_t pids_max;
	uint32_t boot_timeout_ms;
	uint32_t check_timeout_ms;
	uint32_t orphan_grace_ms;
	uint32_t flags; /* CTL_BOOT_* */
	uint32_t reserved;
	uint64_t slots_off;	     /* where the slot pages begin in the segment */
	char box_name[CTL_BOX_NAME]; /* its other id; empty: none */
	char user[CTL_USER]; /* of every command that names none; empty: the guest's default */
	char working_dir[CTL_WORKING_DIR]; /* likewise */
	struct ctl_limits limits;
};

/*
 * Each request of the connection must be looked at by sbxd first (it came over TCP, and brings a
 * token): it is handed over for one, and back when that is answered.
 */
#define CTL_CONN_ONCE 1U
/* With CTL_CONN_ONCE: sbxd has read on, past this request. If it dies, what it read is lost, and
 * the connection can serve no more than this. */
#define CTL_CONN_READ_ON 2U
/* Handed back because nothing came for limits.idle_ms. */
#define CTL_CONN_IDLE 4U
/* Of TCP: a client that leaves is told by the end of what it sends (EPOLLRDHUP) and by no hang-up.
 */
#define CTL_CONN_TCP 8U

struct ctl_conn {
	uint64_t cookie; /* SO_COOKIE of the connection */
	uint32_t uid;	 /* whose client it is, as sbxd knows */
	uint32_t flags;	 /* CTL_CONN_* */
	char request_id[64];
	char traceparent[64];
};

struct ctl_claim {
	char token[24]; /* box id from now on */
};

struct ctl_close {
	uint32_t grace_ms; /* for sync and an orderly stop; then the box is killed */
	uint32_t reserved;
};

struct ctl_stop {
	uint32_t timeout_ms; /* for processes to end by themselves; then they are killed */
	uint32_t number;     /* of this order: its answer has it as seq */
};

enum ctl_hello_state {
	CTL_STARTING, /* before CTL_BOOT */
	CTL_UP,
	CTL_ENDING, /* being closed, or dying */
};

struct ctl_hello {
	uint32_t slot;
	int32_t pid;
	uint32_t conns; /* connections in its hands */
	uint32_t state; /* enum ctl_hello_state */
};

#define CTL_BOOTED_OUTLIVES 1U /* the box lives on when its worker dies */

struct ctl_booted {
	int32_t box_pid;
	uint32_t flags; /* CTL_BOOTED_* */
	uint64_t box_start;
	uint64_t boot_ns;   /* from CTL_BOOT received to guest agent ready */
	char isolation[16]; /* of this box; empty: as CTL_PREPARE was answered */
};

struct ctl_failed {
	int32_t code; /* errno value, 0 none */
	uint32_t reserved;
	char reason[32]; /* an INTERFACE.md reason, e.g. boot_failed */
	char text[CTL_TEXT];
};

struct ctl_prepare {
	struct ctl_site site;
	char image[128];
};

enum ctl_image_op {
	CTL_IMAGE_NONE = 0,
	CTL_IMAGE_PULL,	  /* result: as of a list, of that image alone */
	CTL_IMAGE_LIST,	  /* result: {"images":[...]} */
	CTL_IMAGE_REMOVE, /* `image` is a reference or a digest; result as of CTL_IMAGE_PRUNE */
	CTL_IMAGE_PRUNE,  /* what is not in use; result: {"removed":[...],"freed_bytes":N} */
	CTL_IMAGE_SWEEP,  /* only what crashes have left, and what is past the cache's bound; no
			     result */

	CTL_TEMPLATE_LIST,   /* what drivers keep so that boxes begin as copies; result:
				{"templates":[...]} */
	CTL_TEMPLATE_BUILD,  /* that for boxes of `image` and of that size; result: as of a list, of
				that alone, and "built":BOOL */
	CTL_TEMPLATE_REMOVE, /* `image` is its key; result as of CTL_IMAGE_PRUNE */
	CTL_IMAGE_OPS,
};

struct ctl_image {
	struct ctl_site site;
	char image[128];
	uint32_t op;	     /* enum ctl_image_op */
	uint32_t slot;	     /* CTL_TEMPLATE_BUILD, as the rest: one past those of boxes */
	uint32_t memory_mib; /* as in struct ctl_boot, as the next two */
	uint32_t cpus_milli;
	uint32_t disk_mib;
	uint32_t time_ms; /* it may take */
};

struct ctl_progress {
	char stage[16];
	uint64_t done;	/* bytes */
	uint64_t total; /* 0: not known */
};

struct ctl_cleanup {
	struct ctl_site site;
	char name[64];
	int32_t box_pid; /* 0: not known */
	uint32_t reserved;
	uint64_t box_start;
};

/* Why CTL_SWEEP is to keep a box. */
#define CTL_KEEP_LIVE '+'   /* it is taken over */
#define CTL_KEEP_ENDING '-' /* half-made or being closed: its worker or CTL_CLEANUP ends it */

struct ctl_done {
	int32_t code;	 /* errno value, 0 done */
	uint32_t count;	 /* CTL_SWEEP: boxes cleaned up */
	char driver[16]; /* CTL_PREPARE, as the next three: the one that did it */
	char isolation[16];
	char warning[256]; /* limits that this host cannot enforce; empty when it can */
	uint32_t pauses; /* 1: the driver pauses warm boxes, so it wants CTL_PARK and CTL_PROMOTE */
	uint32_t missing;   /* CTL_SWEEP: boxes of CTL_KEEP_LIVE that are not there, or not alive */
	char text[CTL_WHY]; /* why it failed, and how to mend it */
	char passed[CTL_WHY]; /* CTL_PREPARE with the driver `auto`: the drivers before the one that
				 did it, or could, and why none of them; empty: none */
};

union ctl_body {
	struct ctl_boot boot;
	struct ctl_conn conn;
	struct ctl_claim claim;
	struct ctl_close close;
	struct ctl_stop stop;
	struct ctl_hello hello;
	struct ctl_booted booted;
	struct ctl_failed failed;
	struct ctl_prepare prepare;
	struct ctl_image image;
	struct ctl_progress progress;
	struct ctl_cleanup cleanup;
	struct ctl_done done;
};

/* A received message. tail points into the receive buffer, valid until the next receive. fd is the
 * caller's or -1. */
struct ctl_msg {
	struct ctl_head head;
	union ctl_body body;
	const uint8_t *tail;
	size_t tail_len;
	int fd;
};

/* Name for log lines; "?" when out of range. */
const char *ctl_type_name(uint32_t type);

/*
 * Sends one message without waiting. body: the struct of `type` or NULL where it has none; fd -1
 * for none (stays the caller's). 0, -EAGAIN (the peer's queue is full: keep it and wait for
 * EPOLLOUT), -EMSGSIZE, -EPIPE or -errno.
 */
int ctl_send(int sock, enum ctl_type type, uint64_t seq, uint64_t gen, const void *body,
    const void *tail, size_t tail_len, int fd);

/*
 * Receives one message into buf (CTL_MSG_MAX bytes). 1: *msg is filled; 0: the peer closed;
 * -EAGAIN: nothing there; -EBADMSG: the packet breaks the contract (its descriptors are closed); or
 * -errno.
 */
int ctl_recv(int sock, uint8_t *buf, struct ctl_msg *msg);

/* Checks one packet of n bytes as ctl_recv() does: the fuzz target's entry. 0 or -EBADMSG. */
int ctl_parse(const uint8_t *buf, size_t n, struct ctl_msg *msg);

#endif
