/*
 * exec: executions: commands that live on their own, whether or not a client is there. sbx-worker
 * only.
 *
 * exec.c is their life and end, exec_order.c what clients do with one that runs, exec_keep.c what
 * happens to them when nobody looks, exec_output.c what they have written, exec_request.c what
 * clients may ask, exec_api.c the requests, exec_attach.c the client that is attached by a
 * WebSocket, exec_say.c what that one is told.
 *
 * An execution belongs to its service, not to a connection. It counts as an operation in flight (so
 * the box is kept) until the guest has said that it is over; then it can be asked about for a
 * while.
 */
#ifndef SBXD_WORKER_EXEC_H
#define SBXD_WORKER_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/err.h"
#include "lib/loop.h"
#include "worker/agent_link.h"
#include "worker/exec_output.h"
#include "worker/exec_request.h"
#include "worker/service.h"

#define EXEC_ID_LEN 24U /* "exec-" and 16 hex digits, and their NUL */
#define EXEC_MESSAGE_LEN 256U
#define EXEC_STREAMS 2			  /* stdout, stderr */
#define EXEC_GRACE_STEP_NS (5 * NS_PER_S) /* from HUP to TERM, and to KILL */
#define EXEC_DOOMED_NS (10 * NS_PER_S)	  /* for a client that was about to attach */

struct exec_attach;
struct exec_kill;
struct exec_start;

enum exec_state {
	EXEC_STARTING, /* the guest has not said that it runs; nobody knows its id */
	EXEC_RUNNING,
	EXEC_OVER,
};

/* Why it was ended by us. */
enum exec_cause {
	EXEC_CAUSE_NONE,
	EXEC_CAUSE_KILLED, /* DELETE */
	EXEC_CAUSE_TIMEOUT,
	EXEC_CAUSE_ALONE, /* nobody was attached for too long */
	EXEC_CAUSE_MEMORY,
};

struct execution {
	LIST_ENTRY(execution) entry;
	struct service *s;
	char id[EXEC_ID_LEN];
	char command[EXEC_COMMAND_LEN];
	struct agent_chan chan;
	enum exec_state state;
	enum exec_cause cause;
	bool tty;
	bool stdin_open; /* to be written to */
	bool attached_once;
	bool doomed;  /* DELETE: evicted as soon as it is over */
	bool evicted; /* nobody finds it any more but who was about to attach */

	struct exec_output out[EXEC_STREAMS];
	struct exec_start *start;   /* POST exec that waits for it to run */
	struct exec_attach *attach; /* its client */
	LIST_HEAD(exec_kills, exec_kill) kills;

	uint64_t timeout_ns;
	uint64_t started_ns;
	uint64_t started_ms; /* wall clock */
	uint64_t ended_ns;
	int exit_code;			/* when over: negative is a signal */
	char message[EXEC_MESSAGE_LEN]; /* what is to be said of its end, or "" */

	struct loop_timer timeout;
	struct loop_timer patience;
	struct loop_timer alone; /* starting: too late; running: the next step of its end; over: its
				    eviction */
	unsigned int alone_step;
};

/*
 * Starts what r says, for `start` to answer. 0, or -errno with *e and *err: too many run, or the
 * guest cannot be asked.
 */
int exec_create(struct service *s, const struct exec_request *r, struct exec_start *start,
    struct execution **out, enum api_error *e, struct err *err);

/* The execution of that id that is not evicted and not starting, or NULL. */
struct execution *exec_find(struct service *s, const char *id);

/* The same for a client that wants to attach: one that was killed just now is still there. */
struct execution *exec_find_to_attach(struct service *s, const char *id);

/* Ends the whole tree; exec_is_over() comes when it is seen gone. Repeating it changes nothing. */
void exec_end(struct execution *x, enum exec_cause cause);

/* Does it; it is running. EXEC_ORDER_RESIZE: it has a terminal. */
void exec_obey(struct execution *x, const struct exec_order *order);

/* n bytes of stdin, at most agent_chan_room(). */
void exec_write(struct execution *x, const uint8_t *p, size_t n);

/* Frees it, unless it is not over or a client is there. */
void exec_release(struct execution *x);

/* n bytes of output stream i were sent to its client. */
void exec_sent(struct execution *x, unsigned int i, size_t n);

/*
 * Its client does not read while it writes, and waits for us as we wait for it: what the command
 * writes is kept for it, within half of what all operations of the box may keep.
 */
void exec_relieve(struct execution *x);

/* "running", "completed", "killed" or "timed_out". */
const char *exec_status(const struct execution *x);

/* The box is gone, and the operations that knew executions too: frees all of them. */
void exec_drop_all(struct service *s);

/* ---- exec_keep.c ---- */

/* A client comes, and goes. exec_left() may free x. */
void exec_joined(struct execution *x, struct exec_attach *a, bool replay);
void exec_left(struct execution *x);

/* It runs and nobody is attached: how long may it be alone? */
void exec_watch_alone(struct execution *x);

/* It is over: kept for a while, but not too many of them. May free x. */
void exec_keep(struct execution *x);

/* It can be found no more; freed when nobody uses it any more. */
void exec_evict(struct execution *x);

/* ---- exec_api.c and exec_attach.c, as exec.c calls them ---- */

/* It runs; or it could not be started, and is freed by the caller. */
void exec_start_done(struct exec_start *start, struct execution *x);
void exec_start_failed(struct exec_start *start, enum api_error e, const char *message);

/* It is over: who asked for that is answered. */
void exec_kill_done(struct exec_kill *k);

/* There is something for the client; or stdin has room again. */
void exec_attach_pump(struct exec_attach *a);
void exec_attach_listen(struct exec_attach *a);

#endif
