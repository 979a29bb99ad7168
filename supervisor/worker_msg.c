/*
 * worker_msg: what a worker says to sbxd: one function per message. Nothing of it is trusted. Runs
 * in sbxd.
 */
#include <bsd/string.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "shm/hist.h"
#include "supervisor/images.h"
#include "supervisor/worker_adopt.h"
#include "supervisor/worker_int.h"

/* Without its channel a worker can only hold the box: it is killed, and we act on its end. */
static void ctl_lost(struct worker *w, const char *why)
{
	if (w->ctl < 0)
		return;
	log_debug("worker %d: control channel: %s", (int)w->pid, why);
	loop_del(w->s->loop, &w->ctl_watch);
	fd_close(&w->ctl);
	worker_kill(w);
}

static void contract_broken(struct worker *w, const char *how)
{
	log_warn("worker %d breaks the control contract: killed: %s", (int)w->pid, how);
	ctl_lost(w, how);
}

static void on_hello(struct worker *w, struct ctl_msg *m)
{
	const char *wrong = w->greeted ? "a second hello" : NULL;

	w->greeted = true;
	log_debug("worker %d: slot %u up, state %u", (int)w->pid, m->body.hello.slot,
	    m->body.hello.state);
	if (!wrong && w->adopted)
		wrong = worker_adopt_hello(w, m);
	if (wrong)
		contract_broken(w, wrong);
}

static void on_held(struct worker *w, struct ctl_msg *m)
{
	const char *wrong = worker_adopt_held(w, m);

	if (wrong)
		contract_broken(w, wrong);
}

/* A worker's word, which people read: letters, digits and a few signs, or nothing. */
static void take_isolation(struct worker *w, const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-/";
	struct slot_sup *part = &w->s->parts[w->slot];

	if (*text && text[strspn(text, allowed)] == '\0')
		(void)strlcpy(part->isolation, text, sizeof(part->isolation));
}

static void take_what_it_is(struct worker *w, const struct ctl_booted *booted)
{
	take_isolation(w, booted->isolation);
	pool_outlives(w->s->pool, w->slot, w->gen, (booted->flags & CTL_BOOTED_OUTLIVES) != 0);
}

static void on_booted(struct worker *w, struct ctl_msg *m)
{
	uint64_t now = loop_now(w->s->loop);
	const struct pool_box *b = pool_box_at(w->s->pool, w->slot);

	if (w->adopted) { /* when that was is the dead supervisor's affair */
		take_what_it_is(w, &m->body.booted);
		return;
	}
	FAULT_POINT("sbxd.booted");
	worker_return_permit(w);
	w->figures.boot_ns = now - w->spawned_ns;
	/* That of a box which is taken over was wished for with its first worker. */
	w->figures.create_ns = now - (b->flags & SLOT_FLAG_SAVED ? w->spawned_ns : b->created);
	hist_add(&w->s->seg.header->hists[HIST_BOOT], w->figures.boot_ns);
	log_debug("worker %d: box booted in %llu us", (int)w->pid,
	    (unsigned long long)(m->body.booted.boot_ns / 1000));
	take_what_it_is(w, &m->body.booted);
	pool_booted(w->s->pool, now, w->slot, w->gen);
}

static void on_failed(struct worker *w, struct ctl_msg *m)
{
	worker_return_permit(w);
	publish_count(w->s, COUNTER_BOOT_FAILURES);
	log_warn("slot %u: boot failed: %s", w->slot, m->body.failed.text);
	pool_boot_failed(w->s->pool, loop_now(w->s->loop), w->slot, w->gen, m->body.failed.text);
}

static void on_checked(struct worker *w, struct ctl_msg *m)
{
	uint64_t now = loop_now(w->s->loop);
	bool healthy = m->body.failed.code == 0;

	FAULT_POINT("sbxd.checked");
	hist_add(&w->s->seg.header->hists[HIST_CHECK], now - w->check_ns);
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
		contract_broken(w, "it handed back a connection it was never given");
		return;
	}
	publish_count(w->s, COUNTER_HANDBACKS);
	FAULT_POINT("sbxd.handback");
	client_handed_back(c, m->tail, m->tail_len, (m->body.conn.flags & CTL_CONN_IDLE) != 0);
}

static void on_conn_gone(struct worker *w, struct ctl_msg *m)
{
	struct client *c = client_find_handed(&w->handed, m->body.conn.cookie);

	FAULT_POINT("sbxd.conn_gone");
	if (c)
		client_close(c);
	else if (!w->adopted) /* else it may be one that another claimed */
		contract_broken(w, "it closed a connection it was never given");
}

/* What was prepared for its image is gone: its next box finds it prepared anew. */
static void image_gone(const struct worker *w)
{
	const struct pool_box *b = pool_box_at(w->s->pool, w->slot);

	if (b->state == SLOT_BOOTING)
		images_renew(w->s, b->spec.image);
}

static void on_box_died(struct worker *w, struct ctl_msg *m)
{
	worker_return_permit(w);
	if (m->body.failed.code == ESTALE)
		image_gone(w);
	log_warn("slot %u: box died: %s", w->slot, m->body.failed.text);
	pool_box_failed(w->s->pool, loop_now(w->s->loop), w->slot, w->gen, m->body.failed.text);
}

static void on_pong(struct worker *w, struct ctl_msg *m)
{
	(void)m; /* that it came is all */
	w->asked_ns = 0;
}

static void on_closed(struct worker *w, struct ctl_msg *m)
{
	if (m->body.failed.code)
		log_warn("slot %u: close: %s", w->slot, m->body.failed.text);
}

static void on_stopped(struct worker *w, struct ctl_msg *m)
{
	const struct ctl_failed *f = &m->body.failed;

	if (w->stop_number == 0 || m->head.seq != w->stop_number)
		return;
	FAULT_POINT("sbxd.stopped");
	pool_stopped(w->s->pool, loop_now(w->s->loop), w->slot, w->gen, f->code == 0, f->text);
}

static void on_left(struct worker *w, struct ctl_msg *m)
{
	(void)m; /* that it came is all */
	FAULT_POINT("sbxd.left");
	pool_box_left(w->s->pool, w->slot, w->gen);
}

typedef void worker_msg_fn(struct worker *w, struct ctl_msg *m);

static worker_msg_fn *const on_message[CTL_TYPES] = {
    [CTL_HELLO] = on_hello,
    [CTL_HELD] = on_held,
    [CTL_BOOTED] = on_booted,
    [CTL_FAILED] = on_failed,
    [CTL_PONG] = on_pong,
    [CTL_CHECKED] = on_checked,
    [CTL_HANDBACK] = on_handback,
    [CTL_CONN_GONE] = on_conn_gone,
    [CTL_BOX_DIED] = on_box_died,
    [CTL_CLOSED] = on_closed,
    [CTL_STOPPED] = on_stopped,
    [CTL_LEFT] = on_left,
};

void worker_read(struct worker *w, int batch)
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
			contract_broken(w, "a bad message");
		} else if (m.head.gen != w->gen && m.head.type != CTL_HELLO) {
			contract_broken(
			    w, "a message about another box"); /* hello comes before it knows */
		} else {
			w->heard_ns = loop_now(w->s->loop);
			on_message[m.head.type](w, &m);
		}
		if (rc > 0)
			fd_close(&m.fd);
	}
}

void worker_on_ctl(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct worker *w = LOOP_OWNER(watch, struct worker, ctl_watch);
	struct sbxd *s = w->s;

	(void)l;
	if (events & EPOLLOUT)
		worker_flush(w);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		worker_read(w, 1); /* most often there is one, and no call is needed to learn it */
	sbxd_settle(s);
}
