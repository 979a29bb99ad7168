/*
 * worker_link: a worker process as sbxd sees it: its pidfd, its control socket, the connections in
 * its hands.
 */
#ifndef SBXD_SUPERVISOR_WORKER_LINK_H
#define SBXD_SUPERVISOR_WORKER_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/pool.h"
#include "supervisor/usage.h"

struct client;
struct sbxd;
struct worker;

/*
 * Starts a worker for box b, of whose image `prepared` is, and sends it CTL_BOOT. The worker
 * registers itself in s->workers[slot]. On failure the pool is told that the worker is gone.
 */
void worker_spawn(struct sbxd *s, const struct pool_box *b, int prepared);

/* Queues an order with the struct of its type, if it has one. A worker that takes none is killed.
 */
void worker_tell(struct worker *w, uint16_t type, const void *body, size_t len);

/* Orders the box to be stopped. Only the answer to the newest order counts: one that an earlier
 * supervisor gave may be answered late. */
void worker_stop(struct worker *w, uint32_t timeout_ms);

/*
 * Hands the connection of c over: the bytes read so far and the descriptor go to the worker, c
 * stays with sbxd as a record (and a second descriptor) until it comes back or ends. 0 or -errno; c
 * is then still the caller's.
 */
int worker_hand_over(struct worker *w, struct client *c, const void *bytes, size_t n);

/* It has at least n connections in its hands. */
bool worker_has_conns(const struct worker *w, uint32_t n);

/*
 * Called every second or so: a worker that has clients in its hands and says nothing is asked
 * whether it lives, and killed when it does not answer: no client hangs on a hung worker. One that
 * was adopted and does not even say hello is killed sooner.
 */
void worker_pulse(struct worker *w);

/* SIGKILL through the pidfd. */
void worker_kill(struct worker *w);

/* What is known of a worker's box only to be shown. */
struct worker_figures {
	uint64_t boot_ns;   /* from its start to a box that is up; 0: another supervisor knew */
	uint64_t create_ns; /* from the wish for a box to there; likewise */
	struct cpu_sample cpu;
};

struct worker_figures *worker_figures(struct worker *w);

pid_t worker_pid(const struct worker *w);
uint64_t worker_start_time(const struct worker *w);

/* Frees every worker record at sbxd's end; their processes are not touched. */
void workers_forget_all(struct sbxd *s);

#endif
