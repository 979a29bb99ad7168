/*
 * worker_link: what sbxd sends to a worker process, and its end. Runs in sbxd; when sbxd dies the
 * worker sees its control socket end and goes on serving what it has.
 */
#include "supervisor/worker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "supervisor/spawn.h"
#include "supervisor/worker_adopt.h"
#include "supervisor/worker_int.h"

#define WORKER_PATIENCE 4 /* times health_check_timeout, for a worker to say that it lives */

pid_t worker_pid(const struct worker *w)
{
	return w->pid;
}

uint64_t worker_start_time(const struct worker *w)
{
	return w->start;
}

struct worker_figures *worker_figures(struct worker *w)
{
	return &w->figures;
}

void worker_kill(struct worker *w)
{
	(void)proc_signal(w->pidfd, SIGKILL); /* -ESRCH: it is gone, and the pidfd says so */
}

void worker_pulse(struct worker *w)
{
	uint64_t now = loop_now(w->s->loop);
	uint64_t silence = pool_rules(w->s->pool)->check_timeout;

	/* However much it says meanwhile: others wait for what it must say. */
	if (w->settling && now - w->spawned_ns > silence) {
		pool_not_adopted(w->s->pool, now, w->slot, w->gen, "its worker did not say hello");
		worker_kill(w);
		worker_adopt_done(w);
	} else if (w->asked_ns && now - w->asked_ns > WORKER_PATIENCE * silence) {
		log_warn("worker %d of slot %u hangs: killed", (int)w->pid, w->slot);
		worker_kill(w);
	} else if (!w->asked_ns && !TAILQ_EMPTY(&w->handed) && now - w->heard_ns > silence) {
		w->asked_ns = now;
		worker_tell(w, CTL_PING, NULL, 0);
	}
}

void worker_return_permit(struct worker *w)
{
	if (w->permit)
		(void)sem_post(&w->s->seg.header->boot_slots); /* cannot overflow: taken before */
	w->permit = false;
}

/* ---- sending ---- */

static void outgoing_free(struct outgoing *o)
{
	fd_close(&o->fd);
	free(o);
}

void worker_flush(struct worker *w)
{
	struct outgoing *o;
	int rc;

	while (w->ctl >= 0 && (o = TAILQ_FIRST(&w->queue))) {
		rc = ctl_send(w->ctl, o->type, 0, w->gen, &o->body, o->tail, o->tail_len, o->fd);
		if (rc == -EAGAIN)
			break;
		if (rc <
		    0) { /* what is missing would be waited for: an order, or a client's request */
			log_warn("worker %d: %s not sent: %s: killed", (int)w->pid,
			    ctl_type_name(o->type), strerror(-rc));
			worker_kill(w);
		}
		TAILQ_REMOVE(&w->queue, o, link);
		w->queued--;
		outgoing_free(o); /* a worker that is gone needs no message */
	}
	if (w->ctl >= 0)
		(void)loop_mod(w->s->loop, &w->ctl_watch,
		    EPOLLIN | (TAILQ_EMPTY(&w->queue) ? 0 : (uint32_t)EPOLLOUT));
}

static int worker_queue(struct worker *w, uint16_t type, const void *body, size_t body_len,
    const void *tail, size_t n, int fd)
{
	struct outgoing *o;

	if (w->queued >= WORKER_QUEUE_MAX) {
		log_warn("worker %d takes no messages: killed", (int)w->pid);
		worker_kill(w);
		return -ENOBUFS;
	}
	o = calloc(1, sizeof(*o) + n);
	if (!o)
		return -ENOMEM;
	o->type = type;
	o->fd = fd;
	if (body_len)
		memcpy(&o->body, body, body_len);
	if (n)
		memcpy(o->tail, tail, n);
	o->tail_len = n;
	TAILQ_INSERT_TAIL(&w->queue, o, link);
	w->queued++;
	worker_flush(w);
	return 0;
}

void worker_tell(struct worker *w, uint16_t type, const void *body, size_t len)
{
	int rc;

	if (type == CTL_CHECK)
		w->check_ns = loop_now(w->s->loop);
	if (TAILQ_EMPTY(&w->queue)) {
		rc = w->ctl < 0 ? -EPIPE : ctl_send(w->ctl, type, 0, w->gen, body, NULL, 0, -1);
		if (rc != -EAGAIN)
			return; /* sent; or there is nobody to send to, and the pidfd will say so */
	}
	(void)worker_queue(w, type, body, len, NULL, 0, -1);
}

void worker_stop(struct worker *w, uint32_t timeout_ms)
{
	const struct ctl_stop order = {.timeout_ms = timeout_ms, .number = ++w->stop_number};

	worker_tell(w, CTL_STOP, &order, sizeof(order));
}

int worker_hand_over(struct worker *w, struct client *c, const void *bytes, size_t n)
{
	struct ctl_conn conn;
	int rc = -EAGAIN;
	int dup_fd;

	if (w->ctl < 0)
		return -EPIPE;
	client_fill_conn(c, n, &conn);
	if (TAILQ_EMPTY(&w->queue))
		rc = ctl_send(w->ctl, CTL_HANDOVER, 0, w->gen, &conn, bytes, n, client_fd(c));
	if (rc == -EAGAIN) {
		dup_fd = fcntl(client_fd(c), F_DUPFD_CLOEXEC, 0);
		if (dup_fd < 0)
			return -errno;
		rc = worker_queue(w, CTL_HANDOVER, &conn, sizeof(conn), bytes, n, dup_fd);
		if (rc < 0)
			fd_close(&dup_fd);
	}
	if (rc < 0)
		return rc;
	FAULT_POINT("sbxd.handover.sent");
	client_handed_over(c, n, w, &w->handed);
	publish_count(w->s, COUNTER_HANDOVERS);
	return 0;
}

bool worker_has_conns(const struct worker *w, uint32_t n)
{
	const struct client *c;
	uint32_t have = 0;

	for (c = TAILQ_FIRST(&w->handed); c && have < n; c = client_next_handed(c))
		have++;
	return have >= n;
}

/* ---- the end ---- */

struct worker *worker_new(struct sbxd *s, uint32_t slot, uint64_t gen)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->s = s;
	w->slot = slot;
	w->gen = gen;
	w->spawned_ns = w->heard_ns = loop_now(s->loop);
	w->ctl = w->pidfd = w->ctl_watch.fd = w->pid_watch.fd = -1;
	TAILQ_INIT(&w->queue);
	TAILQ_INIT(&w->handed);
	s->workers[slot] = w;
	return w;
}

void worker_free(struct worker *w)
{
	struct outgoing *o;

	worker_adopt_done(w);
	worker_return_permit(w);
	loop_del(w->s->loop, &w->ctl_watch);
	loop_del(w->s->loop, &w->pid_watch);
	fd_close(&w->ctl);
	fd_close(&w->pidfd);
	while ((o = TAILQ_FIRST(&w->queue))) {
		TAILQ_REMOVE(&w->queue, o, link);
		outgoing_free(o);
	}
	w->s->workers[w->slot] = NULL;
	free(w);
}

/* Its connections are ours again: each is owed what the worker's last word about it says. */
static void settle_connections(struct worker *w)
{
	const struct shm_page *page = &w->s->seg.slots[w->slot].page;
	struct client *c;

	while ((c = TAILQ_FIRST(&w->handed)))
		client_worker_died(c, page);
}

void worker_on_exit(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct worker *w = LOOP_OWNER(watch, struct worker, pid_watch);
	struct sbxd *s = w->s;
	char how[96];
	int status;

	(void)events;
	worker_read(w, WORKER_QUEUE_MAX); /* what it said before it ended still counts */
	status = w->adopted ? -ECHILD : spawn_reap(w->pidfd); /* only a parent learns how */
	spawn_describe(status, how, sizeof(how));
	log_debug("worker %d of slot %u %s", (int)w->pid, w->slot, how);
	FAULT_POINT("sbxd.worker.exited");
	settle_connections(w);
	usage_retire(s, w->slot, w->gen);
	FAULT_POINT("sbxd.worker.settled");
	pool_worker_gone(s->pool, loop_now(l), w->slot, w->gen, status, how);
	worker_free(w);
	sbxd_settle(s);
}

void workers_forget_all(struct sbxd *s)
{
	for (uint32_t i = 0; i < s->seg.header->slot_count; i++) {
		if (!s->workers[i])
			continue;
		s->workers[i]->settling = false; /* what it holds is for the next sbxd to ask */
		worker_free(s->workers[i]);
	}
}
