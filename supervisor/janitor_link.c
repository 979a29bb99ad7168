/*
 * janitor_link: the janitor as sbxd sees it. Runs in sbxd; when sbxd dies the janitor sees its
 * control socket end and exits.
 */
#include "supervisor/janitor_link.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <bsd/sys/queue.h>

#include "drivers/driver.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "supervisor/sbxd.h"
#include "supervisor/spawn.h"

#define JANITOR_TRIES 3
#define JANITOR_PAUSE (1 * NS_PER_S) /* before what could not be started is started again */

/* How long one order may take, from the last CTL_BUSY on; drivers have bounds of their own, which
 * are shorter. */
static const uint64_t order_time[CTL_TYPES] = {
    [CTL_PREPARE] = DRIVER_ANSWER_NS + 20 * NS_PER_S, /* a large image is made into a disk */
    [CTL_CLEANUP] = 8 * NS_PER_S,
    [CTL_SWEEP] = 120 * NS_PER_S, /* many boxes */
    [CTL_FINISH] = 20 * NS_PER_S,
};

struct order {
	TAILQ_ENTRY(order) link;
	enum ctl_type type;
	uint64_t seq;
	int fd; /* whoever ordered owns it */
	bool sent;
	unsigned int tries;
	janitor_done_fn *fn;
	void *ctx;
	union ctl_body body;
};

struct janitor {
	struct sbxd *s;
	int pidfd;
	int ctl;
	struct loop_watch pid_watch;
	struct loop_watch ctl_watch;
	struct loop_timer timer; /* for the order it is at; without a process: to start one */
	uint64_t started;
	uint64_t next_seq;
	TAILQ_HEAD(, order) orders; /* the first is being done */
};

static void on_timer(struct loop *l, struct loop_timer *t);

static void order_end(
    struct janitor *j, struct order *o, const struct ctl_done *done, struct janitor_more *more)
{
	TAILQ_REMOVE(&j->orders, o, link);
	o->fn(j->s, o->ctx, done, more);
	free(o);
}

static void set_order_timer(struct janitor *j, const struct order *o)
{
	if (loop_timer_set(j->s->loop, &j->timer,
		loop_now(j->s->loop) + order_time[o->type] * FAULT_SLOW(), on_timer) < 0)
		log_warn("no memory for a timer: a hung janitor is not noticed");
}

/* The janitor works serially: it gets one order at a time. */
static void send_next(struct janitor *j)
{
	struct order *o = TAILQ_FIRST(&j->orders);
	int rc;

	if (!o || o->sent || j->ctl < 0)
		return;
	rc = ctl_send(j->ctl, o->type, o->seq, 0, &o->body, buf_head(&j->s->options),
	    j->s->options.len, o->fd);
	if (rc < 0) {
		log_warn("order %s to the janitor: %s", ctl_type_name(o->type), strerror(-rc));
		(void)proc_signal(j->pidfd, SIGKILL); /* its exit brings the next one */
		return;
	}
	o->sent = true;
	o->tries++; /* one that it never got cannot have killed it */
	set_order_timer(j, o);
}

static void on_message(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	static uint8_t packet[CTL_MSG_MAX]; /* one thread, used within this call only */
	struct janitor *j = LOOP_OWNER(watch, struct janitor, ctl_watch);
	struct sbxd *s = j->s;
	struct order *o = TAILQ_FIRST(&j->orders);
	struct ctl_msg m;
	int rc = ctl_recv(j->ctl, packet, &m);

	(void)events;
	if (rc == -EAGAIN)
		return;
	if (rc <= 0) {
		loop_del(l, &j->ctl_watch);
		(void)proc_signal(j->pidfd, SIGKILL); /* without its channel it is of no use */
		return;
	}
	if (m.head.type == CTL_BUSY && o && m.head.seq == o->seq)
		set_order_timer(j, o);
	if (m.head.type == CTL_DONE && o && m.head.seq == o->seq) {
		loop_timer_clear(l, &j->timer);
		order_end(j, o, &m.body.done,
		    &(struct janitor_more){.fd = &m.fd, .tail = m.tail, .tail_len = m.tail_len});
		send_next(j);
	}
	fd_close(&m.fd);
	sbxd_settle(s);
}

static void hang_up(struct janitor *j)
{
	struct loop *l = j->s->loop;

	loop_del(l, &j->ctl_watch);
	loop_del(l, &j->pid_watch);
	loop_timer_clear(l, &j->timer);
	fd_close(&j->ctl);
	fd_close(&j->pidfd);
}

static void on_exit_event(struct loop *l, struct loop_watch *watch, uint32_t events);

static int run(struct janitor *j)
{
	static const char *const argv[] = {"sbx-worker", "janitor", NULL};
	struct sbxd *s = j->s;
	FD_SCOPED int theirs = -1;
	struct spawned child;
	int pair[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	j->ctl = pair[0];
	theirs = pair[1];
	rc = spawn_process(
	    s->worker_path, argv, (const int[SPAWN_FDS]){theirs, -1, -1, -1, -1, -1}, &child);
	if (rc < 0)
		return rc;
	j->pidfd = child.pidfd;
	j->started = loop_now(s->loop);
	rc = loop_add(s->loop, &j->pid_watch, j->pidfd, EPOLLIN, on_exit_event);
	if (rc == 0)
		rc = loop_add(s->loop, &j->ctl_watch, j->ctl, EPOLLIN, on_message);
	return rc;
}

static void end_process(struct janitor *j)
{
	if (j->pidfd >= 0) {
		(void)proc_signal(j->pidfd, SIGKILL);
		(void)spawn_reap(j->pidfd); /* SIGKILL: it ends at once */
	}
	hang_up(j);
}

/* Whether it had an order again and again, and never answered it. */
static void lose_if_hopeless(struct janitor *j)
{
	const struct ctl_done lost = {.code = ETIMEDOUT, .text = "the janitor died or hung at it"};
	struct order *o = TAILQ_FIRST(&j->orders);

	if (o && o->tries >= JANITOR_TRIES)
		order_end(j, o, &lost, NULL);
}

static void pause_start(struct janitor *j)
{
	INVARIANT(loop_timer_set(
		      j->s->loop, &j->timer, loop_now(j->s->loop) + JANITOR_PAUSE, on_timer) == 0);
}

static void start_again(struct janitor *j)
{
	int rc = run(j);

	if (rc == 0) {
		send_next(j);
		return;
	}
	log_error("start the janitor: %s", strerror(-rc));
	end_process(j);
	if (!TAILQ_EMPTY(&j->orders))
		TAILQ_FIRST(&j->orders)->tries++;
	lose_if_hopeless(j);
	pause_start(j);
}

static void on_timer(struct loop *l, struct loop_timer *t)
{
	struct janitor *j = LOOP_OWNER(t, struct janitor, timer);
	struct sbxd *s = j->s;

	(void)l;
	if (j->pidfd < 0) {
		start_again(j);
		sbxd_settle(s);
		return;
	}
	log_warn("the janitor does not answer: replaced");
	(void)proc_signal(j->pidfd, SIGKILL); /* its exit brings the next one */
}

static void on_exit_event(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct janitor *j = LOOP_OWNER(watch, struct janitor, pid_watch);
	struct sbxd *s = j->s;
	struct order *o = TAILQ_FIRST(&j->orders);
	char how[96];

	(void)events;
	spawn_describe(spawn_reap(j->pidfd), how, sizeof(how));
	log_warn("the janitor %s", how);
	hang_up(j);
	if (o)
		o->sent = false;
	lose_if_hopeless(j);
	if (!o && loop_now(l) - j->started < JANITOR_PAUSE)
		pause_start(j); /* it dies of itself: not as fast as it can */
	else
		start_again(j);
	sbxd_settle(s);
}

int janitor_start(struct sbxd *s, struct err *err)
{
	struct janitor *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return err_set(err, ENOMEM, "no memory for the janitor");
	j->s = s;
	j->pidfd = j->ctl = j->pid_watch.fd = j->ctl_watch.fd = -1;
	TAILQ_INIT(&j->orders);
	s->janitor = j;
	rc = run(j);
	if (rc == 0)
		return 0;
	janitor_stop(s); /* without its process it would answer nothing */
	return err_sys(err, -rc, "start %s", s->worker_path);
}

int janitor_order(struct sbxd *s, const struct janitor_order *order)
{
	struct janitor *j = s->janitor;
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->type = order->type;
	o->seq = ++j->next_seq;
	o->fd = order->fd;
	o->fn = order->fn;
	o->ctx = order->ctx;
	memcpy(&o->body, order->body, order->len);
	TAILQ_INSERT_TAIL(&j->orders, o, link);
	send_next(j);
	return 0;
}

void janitor_stop(struct sbxd *s)
{
	struct janitor *j = s->janitor;
	struct order *o;

	if (!j)
		return;
	end_process(j);
	while ((o = TAILQ_FIRST(&j->orders))) {
		TAILQ_REMOVE(&j->orders, o, link);
		free(o);
	}
	free(j);
	s->janitor = NULL;
}
