/*
 * box: what sbxd, the guest and the clients want of a running box. sbx-worker. If we die here, sbxd
 * sees it, answers our clients, and has the box's processes proven gone.
 */
#include "worker/box.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "worker/conn.h"
#include "worker/op.h"

static struct box *box_of(struct service *s)
{
	return (struct box *)(void *)s;
}

/* ---- what connections and operations want ---- */

/* The word of a connection goes only with what is said of it. False: there is no sbxd. */
static bool box_tell_of_conn(struct service *s, enum ctl_type type, unsigned int index,
    uint64_t seq, const struct ctl_conn *who, const void *bytes, size_t n, int fd)
{
	bool told;

	s->held[index] = true;
	told = control_link_send(
	    &box_of(s)->control, type, seq, who, sizeof(*who), bytes, n, fd, index);
	if (!told)
		s->held[index] = false;
	return told;
}

static bool box_hand_back(struct service *s, int fd, unsigned int index, uint64_t seq,
    const struct ctl_conn *who, const void *bytes, size_t n)
{
	return box_tell_of_conn(s, CTL_HANDBACK, index, seq, who, bytes, n, fd);
}

static void box_conn_gone(struct service *s, unsigned int index, uint64_t seq, uint64_t cookie)
{
	struct box *b = box_of(s);
	const struct ctl_conn who = {.cookie = cookie};

	/* Without sbxd nobody wants to know. */
	if (index >= SHM_CONNS)
		(void)control_link_send(&b->control, CTL_CONN_GONE, seq, &who, sizeof(who), NULL, 0,
		    -1, CONTROL_NO_WORD);
	else if (!box_tell_of_conn(s, CTL_CONN_GONE, index, seq, &who, NULL, 0, -1))
		report_conn(s->report, index, 0, CONN_FREE);
	box_leave_if_done(b);
}

static void box_broken(struct service *s, const char *why)
{
	box_die(box_of(s), EPROTO, why);
}

static const struct service_ops box_service_ops = {
    .hand_back = box_hand_back,
    .conn_gone = box_conn_gone,
    .broken = box_broken,
};

/* ---- what sbxd wants ---- */

static void box_on_handover(struct box *b, struct ctl_msg *msg)
{
	b->service.resting = false; /* sbxd has started the box */
	conn_open(&b->service, msg->fd, &msg->body.conn, msg->head.seq, msg->tail, msg->tail_len);
	msg->fd = -1;
}

static void box_on_check(struct box *b, struct ctl_msg *msg)
{
	box_check_begin(b, msg->head.seq);
}

static void box_on_close(struct box *b, struct ctl_msg *msg)
{
	box_close(b, msg->body.close.grace_ms, msg->head.seq);
}

static void box_on_stop(struct box *b, struct ctl_msg *msg)
{
	box_stop(b, &msg->body.stop);
}

static void box_on_ping(struct box *b, struct ctl_msg *msg)
{
	/* Without sbxd nobody asks. */
	(void)control_link_send(
	    &b->control, CTL_PONG, msg->head.seq, NULL, 0, NULL, 0, -1, CONTROL_NO_WORD);
}

static void box_on_claim(struct box *b, struct ctl_msg *msg)
{
	memcpy(b->boot.token, msg->body.claim.token, sizeof(b->boot.token));
	FAULT_POINT("worker.claim");
}

static void box_on_park(struct box *b, struct ctl_msg *msg)
{
	(void)msg; /* has nothing to say but that */
	box_park(b);
}

static void box_on_promote(struct box *b, struct ctl_msg *msg)
{
	(void)msg; /* likewise */
	box_unpark(b);
}

static void (*const box_orders[CTL_TYPES])(struct box *b, struct ctl_msg *msg) = {
    [CTL_HANDOVER] = box_on_handover,
    [CTL_CHECK] = box_on_check,
    [CTL_PARK] = box_on_park,
    [CTL_PROMOTE] = box_on_promote,
    [CTL_CLAIM] = box_on_claim,
    [CTL_PING] = box_on_ping,
    [CTL_CLOSE] = box_on_close,
    [CTL_STOP] = box_on_stop,
};

static void box_on_message(void *ctx, struct ctl_msg *msg)
{
	struct box *b = ctx;

	if (msg->head.gen != b->gen || !box_orders[msg->head.type]) {
		log_warn("dropped a %s of generation %llu", ctl_type_name(msg->head.type),
		    (unsigned long long)msg->head.gen);
		if (msg->fd >= 0)
			conn_refuse(fd_take(&msg->fd), &msg->body.conn, API_STALE_GENERATION,
			    "the box was replaced");
		return;
	}
	box_orders[msg->head.type](b, msg);
	fd_close(&msg->fd);
}

static void box_on_sent(void *ctx, uint32_t word)
{
	struct box *b = ctx;

	b->service.held[word] = false;
	report_conn(&b->report, word, 0, CONN_FREE);
	box_leave_if_done(b);
}

static const struct control_link_ops box_control_ops = {
    .message = box_on_message,
    .sent = box_on_sent,
    .gone = box_on_control_gone,
};

int box_take_control(struct box *b, int fd)
{
	return control_link_init(&b->control, b->loop, fd, b->gen, b->scratch, &box_control_ops, b);
}

/* ---- the box itself ---- */

static void box_on_exit(struct loop *loop, struct loop_watch *w, uint32_t events)
{
	struct box *b = LOOP_OWNER(w, struct box, watch);

	(void)loop; /* the box knows its loop */
	(void)events;
	agent_link_poll(&b->link); /* its last words */
	box_die(b, ECHILD, "the box's first process is gone");
}

static void box_on_beat(struct report *r, bool last)
{
	struct box *b = LOOP_OWNER(r, struct box, report);
	struct driver_stats stats = {0};

	if (b->handle && b->driver->stats && b->driver->stats(b->handle, &stats) == 0) {
		r->work.cpu_ns = stats.cpu_ns;
		r->work.memory_bytes = stats.memory_bytes;
	}
	if (last) {
		service_trim(&b->service);
		box_park_if_idle(b);
		b->pulse.quiet = 0;
	} else {
		op_beat(&b->service);
		box_check_pulse(b);
	}
}

static void box_fill_service(struct box *b)
{
	struct service *s = &b->service;

	s->loop = b->loop;
	s->link = &b->link;
	s->report = &b->report;
	s->ops = &box_service_ops;
	s->limits = &b->boot.limits;
	s->check_ns = b->boot.check_timeout_ms * NS_PER_MS;
	s->token = b->boot.token;
	s->name = b->boot.box_name;
	s->env = b->env;
	s->env_len = b->env_len;
	s->default_cwd = b->boot.working_dir;
	s->default_user = b->boot.user;
	s->scratch = b->scratch;
	LIST_INIT(&s->ops_running);
	LIST_INIT(&s->executions);
}

int box_serve(struct box *b)
{
	int rc;

	box_fill_service(b);
	b->report.on_beat = box_on_beat;
	rc = box_take_control(b, CTL_FD_CONTROL); /* that it has ended, the loop will say */
	if (rc == 0)
		rc = box_open_door(b);
	if (rc == 0)
		rc = loop_add(
		    b->loop, &b->watch, b->driver->watch_fd(b->handle), EPOLLIN, box_on_exit);
	if (rc == 0) {
		b->state = BOX_UP;
		report_touch(&b->report);
		if (!b->boot.token[0])
			box_park(b); /* made for stock: it waits for whose it will be */
		rc = loop_run(b->loop);
	}
	if (rc < 0)
		log_error("box %s: cannot be served: %s", b->boot.name, strerror(-rc));
	if (b->handle)
		(void)box_end_all(b); /* sbxd has the janitor prove it in any case */
	return rc < 0 || b->end.type == CTL_BOX_DIED ? 1 : 0;
}
