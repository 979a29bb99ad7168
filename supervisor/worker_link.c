/*
 * worker_link: a worker process as sbxd sees it. Runs in sbxd; when sbxd dies the worker sees its
 * control socket end and goes on serving what it has.
 */
#include "supervisor/worker_link.h"

#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "shm/hist.h"
#include "supervisor/client.h"
#include "supervisor/sbxd.h"
#include "supervisor/spawn.h"

#define WORKER_QUEUE_MAX 512 /* messages kept for a worker that takes none */
#define WORKER_READ_BATCH 32

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
	uint64_t check_ns; /* when the running health check was sent */
	int pidfd;
	int ctl; /* -1 once the worker closed its end */
	struct loop_watch ctl_watch;
	struct loop_watch pid_watch;
	bool permit; /* holds one of boot_slots */
	TAILQ_HEAD(, outgoing) queue;
	uint32_t queued;
	struct client_list handed; /* connections in its hands */
};

pid_t worker_pid(const struct worker *w)
{
	return w->pid;
}

uint64_t worker_start_time(const struct worker *w)
{
	return w->start;
}

void worker_kill(struct worker *w)
{
	(void)proc_signal(w->pidfd, SIGKILL); /* -ESRCH: it is gone, and the pidfd says so */
}

/* ---- sending ---- */

static void outgoing_free(struct outgoing *o)
{
	fd_close(&o->fd);
	free(o);
}

static void worker_flush(struct worker *w)
{
	struct outgoing *o;
	int rc;

	while (w->ctl >= 0 && (o = TAILQ_FIRST(&w->queue))) {
		rc = ctl_send(w->ctl, o->type, 0, w->gen, &o->body, o->tail, o->tail_len, o->fd);
		if (rc == -EAGAIN)
			break;
		if (rc < 0)
			log_debug("worker %d: %s not sent: %s", (int)w->pid, ctl_type_name(o->type),
			    strerror(-rc));
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

void worker_tell(struct worker *w, uint16_t type, const void *body)
{
	int rc;

	if (type == CTL_CHECK)
		w->check_ns = loop_now(w->s->loop);
	if (TAILQ_EMPTY(&w->queue)) {
		rc = w->ctl < 0 ? -EPIPE : ctl_send(w->ctl, type, 0, w->gen, body, NULL, 0, -1);
		if (rc != -EAGAIN)
			return; /* sent; or there is nobody to send to, and the pidfd will say so */
	}
	(void)worker_queue(w, type, body, body ? sizeof(struct ctl_close) : 0, NULL, 0, -1);
}

int worker_hand_over(struct worker *w, struct client *c, const void *bytes, size_t n)
{
	struct ctl_conn conn;
	int rc = -EAGAIN;
	int dup_fd;

	if (w->ctl < 0)
		return -EPIPE;
	client_fill_conn(c, &conn);
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
	client_handed_over(c, w, &w->handed);
	publish_count(w->s, COUNTER_HANDOVERS);
	return 0;
}

/* ---- receiving ---- */

static void permit_return(struct worker *w)
{
	if (w->permit)
		(void)sem_post(&w->s->seg.header->boot_slots); /* cannot overflow: taken before */
	w->permit = false;
}

static void on_hello(struct worker *w, struct ctl_msg *m)
{
	log_debug("worker %d: slot %u up, state %u", (int)w->pid, m->body.hello.slot,
	    m->body.hello.state);
}

static void on_booted(struct worker *w, struct ctl_msg *m)
{
	uint64_t now = loop_now(w->s->loop);

	permit_return(w);
	hist_add(&w->s->seg.header->hists[HIST_BOOT], now - w->spawned_ns);
	log_debug("worker %d: box booted in %llu us", (int)w->pid,
	    (unsigned long long)(m->body.booted.boot_ns / 1000));
	pool_booted(w->s->pool, now, w->slot, w->gen);
}

static void on_failed(struct worker *w, struct ctl_msg *m)
{
	permit_return(w);
	publish_count(w->s, COUNTER_BOOT_FAILURES);
	log_warn("slot %u: boot failed: %s", w->slot, m->body.failed.text);
	pool_boot_failed(w->s->pool, loop_now(w->s->loop), w->slot, w->gen, m->body.failed.text);
}

static void on_checked(struct worker *w, struct ctl_msg *m)
{
	uint64_t now = loop_now(w->s->loop);
	bool healthy = m->body.failed.code == 0;

	hist_add(&w->s->seg.header->hists[HIST_CHECK], now - w->check_ns);
	if (!healthy)
		publish_count(w->s, COUNTER_CHECK_FAILURES);
	pool_checked(w->s->pool, now, w->slot, w->gen, healthy, m->body.failed.text);
}

static void on_handback(struct worker *w, struct ctl_msg *m)
{
	struct client *c = client_find_handed(&w->handed, m->body.conn.cookie);
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	/* Only a socket that this worker was given comes back; what it calls the socket proves
	 * nothing. */
	if (!c || getsockopt(m->fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0 ||
	    cookie != m->body.conn.cookie) {
		log_warn("worker %d handed back a connection it was never given", (int)w->pid);
		return;
	}
	publish_count(w->s, COUNTER_HANDBACKS);
	client_handed_back(c, m->tail, m->tail_len);
}

static void on_conn_gone(struct worker *w, struct ctl_msg *m)
{
	struct client *c = client_find_handed(&w->handed, m->body.conn.cookie);

	if (c)
		client_close(c);
}

static void on_box_died(struct worker *w, struct ctl_msg *m)
{
	permit_return(w);
	log_warn("slot %u: box died: %s", w->slot, m->body.failed.text);
	pool_box_failed(w->s->pool, loop_now(w->s->loop), w->slot, w->gen, m->body.failed.text);
}

static void on_closed(struct worker *w, struct ctl_msg *m)
{
	if (m->body.failed.code)
		log_warn("slot %u: close: %s", w->slot, m->body.failed.text);
}

typedef void worker_msg_fn(struct worker *w, struct ctl_msg *m);

static worker_msg_fn *const on_message[CTL_TYPES] = {
    [CTL_HELLO] = on_hello,
    [CTL_BOOTED] = on_booted,
    [CTL_FAILED] = on_failed,
    [CTL_CHECKED] = on_checked,
    [CTL_HANDBACK] = on_handback,
    [CTL_CONN_GONE] = on_conn_gone,
    [CTL_BOX_DIED] = on_box_died,
    [CTL_CLOSED] = on_closed,
};

static void ctl_lost(struct worker *w, const char *why)
{
	if (w->ctl < 0)
		return;
	log_debug("worker %d: control channel: %s", (int)w->pid, why);
	loop_del(w->s->loop, &w->ctl_watch);
	fd_close(&w->ctl);
	worker_kill(
	    w); /* without its channel it can only hold the box; its end is what we act on */
}

/* Reads at most `batch` messages. */
static void worker_read(struct worker *w, int batch)
{
	static uint8_t packet[CTL_MSG_MAX]; /* one thread, used within this call only */
	struct ctl_msg m;
	int rc;

	while (w->ctl >= 0 && batch-- > 0) {
		rc = ctl_recv(w->ctl, packet, &m);
		if (rc == -EAGAIN)
			return;
		if (rc == 0) {
			ctl_lost(w, "closed");
		} else if (rc < 0 || !on_message[m.head.type]) {
			log_warn("worker %d breaks the control contract: killed", (int)w->pid);
			ctl_lost(w, "bad message");
		} else if (m.head.gen == w->gen) {
			on_message[m.head.type](w, &m);
		}
		if (rc > 0)
			fd_close(&m.fd);
	}
}

static void on_ctl_event(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct worker *w = LOOP_OWNER(watch, struct worker, ctl_watch);
	struct sbxd *s = w->s;

	(void)l;
	if (events & EPOLLOUT)
		worker_flush(w);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		worker_read(w, WORKER_READ_BATCH);
	sbxd_settle(s);
}

/* ---- the end ---- */

static void worker_free(struct worker *w)
{
	struct outgoing *o;

	permit_return(w);
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
	const struct shm_slot *slot = &w->s->seg.slots[w->slot];
	struct client *c;

	while ((c = TAILQ_FIRST(&w->handed)))
		client_worker_died(c, slot);
}

static void on_worker_exit(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct worker *w = LOOP_OWNER(watch, struct worker, pid_watch);
	struct sbxd *s = w->s;
	char how[96];
	int status;

	(void)events;
	worker_read(w, WORKER_QUEUE_MAX); /* what it said before it ended still counts */
	status = spawn_reap(w->pidfd);
	spawn_describe(status, how, sizeof(how));
	log_debug("worker %d of slot %u %s", (int)w->pid, w->slot, how);
	settle_connections(w);
	pool_worker_gone(s->pool, loop_now(l), w->slot, w->gen, status, how);
	worker_free(w);
	sbxd_settle(s);
}

void workers_forget_all(struct sbxd *s)
{
	for (uint32_t i = 0; i < s->seg.header->slot_count; i++) {
		if (s->workers[i])
			worker_free(s->workers[i]);
	}
}

/* ---- the beginning ---- */

static void fill_boot(const struct sbxd *s, const struct pool_box *b, struct ctl_boot *boot)
{
	const struct config *c = &s->config;

	*boot = (struct ctl_boot){
	    .slot = b->slot,
	    .memory_mib = b->spec.memory_mib,
	    .cpus_milli = b->spec.cpus_milli,
	    .disk_mib = b->spec.disk_mib,
	    .pids_max = b->spec.pids_max,
	    .boot_timeout_ms = (uint32_t)(c->boot_timeout_ns / NS_PER_MS),
	    .check_timeout_ms = (uint32_t)(c->health_check_timeout_ns / NS_PER_MS),
	    .orphan_grace_ms = (uint32_t)(c->orphan_grace_ns / NS_PER_MS),
	    .slots_off = s->seg.header->slots_off,
	};
	sbxd_fill_site(s, &boot->site);
	(void)snprintf(
	    boot->name, sizeof(boot->name), "sbxd-%s-%u-%s", s->instance, b->slot, b->token);
	(void)strlcpy(boot->token, b->token, sizeof(boot->token));
	(void)strlcpy(boot->image, b->spec.image, sizeof(boot->image));
}

static int worker_exec(struct worker *w, int prepared)
{
	struct sbxd *s = w->s;
	FD_SCOPED int theirs = -1;
	char slot_text[16];
	const char *argv[] = {"sbx-worker", "box", slot_text, NULL};
	struct spawned child;
	int pair[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	w->ctl = pair[0];
	theirs = pair[1];
	(void)snprintf(slot_text, sizeof(slot_text), "%u", w->slot);
	rc = spawn_process(s->worker_path, argv,
	    (const int[SPAWN_FDS]){theirs, s->seg.fd, prepared, s->guest_fd}, &child);
	if (rc < 0)
		return rc;
	w->pid = child.pid;
	w->pidfd = child.pidfd;
	w->start = child.start;
	rc = loop_add(s->loop, &w->pid_watch, w->pidfd, EPOLLIN, on_worker_exit);
	if (rc == 0)
		rc = loop_add(s->loop, &w->ctl_watch, w->ctl, EPOLLIN, on_ctl_event);
	return rc;
}

static void worker_send_boot(struct worker *w, const struct pool_box *b)
{
	const struct config_environment *env = &w->s->config.environment;
	struct ctl_boot boot;
	int rc;

	fill_boot(w->s, b, &boot);
	rc = ctl_send(w->ctl, CTL_BOOT, 0, w->gen, &boot, env->data, env->len, -1);
	if (rc < 0) /* a new socket takes one message; if not, the boot times out and is reported */
		log_error("worker %d: boot order not sent: %s", (int)w->pid, strerror(-rc));
}

void worker_spawn(struct sbxd *s, const struct pool_box *b, int prepared)
{
	struct worker *w = calloc(1, sizeof(*w));
	char why[CTL_PATH + 128];
	int rc;

	if (w) {
		w->s = s;
		w->slot = b->slot;
		w->gen = b->generation;
		w->spawned_ns = loop_now(s->loop);
		w->ctl = w->pidfd = w->ctl_watch.fd = w->pid_watch.fd = -1;
		TAILQ_INIT(&w->queue);
		TAILQ_INIT(&w->handed);
		s->workers[b->slot] = w;
		w->permit = sem_trywait(&s->seg.header->boot_slots) ==
			    0; /* the pool counts the same permits */
		publish_count(s, COUNTER_BOOTS);
		rc = worker_exec(w, prepared);
	} else {
		rc = -ENOMEM;
	}
	if (rc == 0) {
		worker_send_boot(w, b);
		return;
	}
	(void)snprintf(why, sizeof(why), "start %s: %s", s->worker_path, strerror(-rc));
	log_error("slot %u: %s", b->slot, why);
	pool_boot_failed(s->pool, loop_now(s->loop), b->slot, b->generation, why);
	if (w && w->pidfd >= 0) {
		worker_kill(w); /* it runs, but cannot be watched by the loop */
		(void)spawn_reap(w->pidfd);
	}
	pool_worker_gone(s->pool, loop_now(s->loop), b->slot, b->generation, 0, why);
	if (w)
		worker_free(w);
}
