/*
 * service: what client connections and operations need of the box they belong to. sbx-worker only.
 *
 * box.c fills it; tests fill it with a guest and a control link of their own.
 */
#ifndef SBXD_WORKER_SERVICE_H
#define SBXD_WORKER_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/loop.h"
#include "shm/layout.h"
#include "wire/api_error.h"
#include "wire/control.h"
#include "worker/agent_link.h"
#include "worker/report.h"

#define SERVICE_SCRATCH (256U * 1024U)
#define SERVICE_BUFFER_MAX (256U * 1024U * 1024U) /* input and output kept, of all operations */

struct conn;
struct execution;
struct op;
struct service;

enum service_state {
	SERVICE_UP,
	SERVICE_CLOSING, /* stopping in order: operations run on until the guest has synced */
	SERVICE_DEAD,	 /* no box any more */
};

struct service_ops {
	/*
	 * The connection goes back to sbxd with n unread bytes (<= CTL_TAIL_MAX); takes over fd and
	 * the connection's word: held[index] until the message is sent, then free. False, and
	 * nothing taken, when there is no sbxd.
	 */
	bool (*hand_back)(struct service *s, int fd, unsigned int index, uint64_t seq,
	    const struct ctl_conn *who, const void *bytes, size_t n);
	/*
	 * A handed-over connection is closed. Its word stays, held[index] as above, so that sbxd
	 * writes nothing after a whole or cut response; index SHM_CONNS: there was no word left for
	 * it.
	 */
	void (*conn_gone)(struct service *s, unsigned int index, uint64_t seq, uint64_t cookie);
	/* The guest does not keep its word: the box must go. */
	void (*broken)(struct service *s, const char *why);
};

struct service {
	struct loop *loop;
	struct agent_link *link;
	struct report *report;
	const struct service_ops *ops;
	const struct ctl_limits *limits;
	const char *token; /* box id */
	const char *name;  /* its other id, "" without */
	const char *env;   /* the box's environment: "K=V\0"... */
	size_t env_len;
	const char *default_cwd;  /* of a command that names none; "": the guest's default */
	const char *default_user; /* likewise */
	uint64_t check_ns;	  /* a healthy box may take so long to answer */
	enum service_state state;
	bool resting;	  /* the box is stopped: a request on a connection that we have is for sbxd,
			     which starts the box by handing it over */
	size_t buffered;  /* of SERVICE_BUFFER_MAX */
	uint8_t *scratch; /* SERVICE_SCRATCH bytes, for whoever runs now */
	struct conn *conns[SHM_CONNS]; /* by their word in the slot page */
	bool held[SHM_CONNS];	       /* words of connections that sbxd is to hear of first */
	unsigned int conn_count;
	LIST_HEAD(op_list, op) ops_running;
	LIST_HEAD(exec_list, execution) executions; /* the newest first */
	unsigned int executions_running;
};

/*
 * The box is going: idle connections are handed back (or closed), new requests are answered 410. To
 * SERVICE_DEAD: operations end too, and every client that is owed a response gets `e` at once.
 */
void service_set_state(
    struct service *s, enum service_state state, enum api_error e, const char *message);

/* Counts n more bytes that are kept, to be given back by whoever frees them. False: all operations
 * together keep too much. */
bool service_keep(struct service *s, size_t n);

/* The box is being stopped: requests that are not complete are refused, idle connections handed
 * back. What runs ends by itself. */
void service_rest(struct service *s);

/*
 * How long the guest may take to end what it is told to end; after that it is broken. Where boxes
 * may be slow to answer (emulated ones, a busy host), they may be slow to end things, too.
 */
uint64_t service_patience_ns(const struct service *s);

/* Gives memory back that is not needed while nothing happens. */
void service_trim(struct service *s);

#endif
