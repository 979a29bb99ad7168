/* worker_int: what the files of a worker's link share among themselves. */
#ifndef SBXD_SUPERVISOR_WORKER_INT_H
#define SBXD_SUPERVISOR_WORKER_INT_H

#include "lib/loop.h"
#include "supervisor/client.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_link.h"

#define WORKER_QUEUE_MAX 512 /* messages kept for a worker that takes none */

struct outgoing {
	TAILQ_ENTRY(outgoing) link;
	uint16_t type;
	int fd; /* owned; -1 none */
	union ctl_body body;
	size_t tail_len;
	uint8_t tail[];
};

struct worker {
	struct sbxd *s;
	uint32_t slot;
	uint64_t gen;
	pid_t pid;
	uint64_t start;
	uint64_t spawned_ns;
	uint64_t heard_ns; /* when it said anything last */
	uint64_t asked_ns; /* when it was asked whether it lives, 0: it has answered */
	bool greeted;
	bool adopted;	      /* it was another supervisor's: not our child */
	bool settling;	      /* adopted, and has not said all of what it has in its hands */
	uint32_t held_due;    /* CTL_HELD that are still to come */
	uint64_t check_ns;    /* when the running health check was sent */
	uint32_t stop_number; /* of the newest order to stop, 0: none was given */
	struct worker_figures figures;
	int pidfd;
	int ctl; /* -1: it closed its end, or could not be connected to */
	struct loop_watch ctl_watch;
	struct loop_watch pid_watch;
	bool permit; /* holds one of boot_slots */
	TAILQ_HEAD(, outgoing) queue;
	uint32_t queued;
	struct client_list handed; /* connections in its hands */
};

/* A record without a process, in s->workers[slot]. NULL without memory. */
struct worker *worker_new(struct sbxd *s, uint32_t slot, uint64_t gen);

/* Sends what is queued, as far as the socket takes it. */
void worker_flush(struct worker *w);

/* Gives back its boot permit, if it has one. */
void worker_return_permit(struct worker *w);

/* Reads and serves at most `batch` messages. */
void worker_read(struct worker *w, int batch);

/* Forgets the process; whatever becomes of it. */
void worker_free(struct worker *w);

loop_watch_fn worker_on_ctl;
loop_watch_fn worker_on_exit;

#endif
