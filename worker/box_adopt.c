/*
 * box_adopt: sbxd dies, and the next one comes in by the worker's own socket. sbx-worker. If we die
 * here the next sbxd sees its connection end, and has the box's processes proven gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "wire/rendezvous.h"
#include "worker/box.h"
#include "worker/conn.h"

#define ORPHAN_GRACE_MS 1000U /* for the box of a worker that nobody adopted */
#define DOOR_AGAIN_NS (100 * NS_PER_MS)

int box_make_door(struct box *b, struct err *err)
{
	const char *dir = b->boot.site.runtime_dir;

	b->door.uid = geteuid(); /* privileges are not dropped yet */
	b->door.fd = rendezvous_listen(dir, b->boot.slot);
	if (b->door.fd < 0)
		return err_sys(err, -b->door.fd, "listen at %s/" RENDEZVOUS_DIR "/%u", dir,
		    (unsigned int)b->boot.slot);
	FAULT_POINT("worker.boot.listening");
	return 0;
}

/* ---- without sbxd ---- */

static void orphan_on_timer(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, orphan);

	(void)loop; /* the box knows its loop */
	log_warn("box %s: no supervisor came back: closing", b->boot.name);
	FAULT_POINT("worker.orphan.closing");
	box_close(b, ORPHAN_GRACE_MS, 0);
}

void box_on_control_gone(void *ctx)
{
	struct box *b = ctx;

	for (unsigned int i = 0; i < SHM_CONNS; i++) {
		if (!b->service.held[i])
			continue;
		b->service.held[i] = false;
		report_conn(&b->report, i, 0, CONN_FREE);
	}
	box_check_abort(b, ECANCELED); /* who asked is gone, and another has not asked */
	b->stop.number = 0;	       /* likewise; but what was begun is done */
	if (b->state == BOX_UP)
		INVARIANT(loop_timer_set(b->loop, &b->orphan,
			      clock_now_ns() + b->boot.orphan_grace_ms * NS_PER_MS,
			      orphan_on_timer) == 0);
	box_leave_if_done(b);
}

/* ---- the next one ---- */

static int adopt_twice(const struct conn *c)
{
	if (FAULT_FAILS("worker.adopt.duplicate")) {
		errno = EMFILE;
		return -1;
	}
	return fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
}

/*
 * Each connection once more, for what waits to be sent: ours may be closed meanwhile. One that
 * cannot be had twice is closed: sbxd could not know of it. Returns how many there are.
 */
static uint32_t adopt_duplicate(struct box *b, int fds[SHM_CONNS])
{
	uint32_t count = 0;

	for (unsigned int i = 0; i < SHM_CONNS; i++) {
		struct conn *c = b->service.conns[i];

		fds[i] = c ? adopt_twice(c) : -1;
		if (fds[i] >= 0) {
			count++;
		} else if (c) {
			log_warn("box %s: a connection is closed: it cannot be shown to sbxd: %s",
			    b->boot.name, strerror(errno));
			conn_close(c);
		}
	}
	return count;
}

/* False: sbxd does not know all of them. */
static bool adopt_show(struct box *b, int fds[SHM_CONNS])
{
	bool all = true;

	for (unsigned int i = 0; i < SHM_CONNS; i++) {
		struct ctl_conn who;

		if (fds[i] < 0)
			continue;
		b->service.conns[i]->seq = 0; /* its order is another one's */
		conn_describe(b->service.conns[i], &who);
		if (!control_link_send(&b->control, CTL_HELD, 0, &who, sizeof(who), NULL, 0, fds[i],
			CONTROL_NO_WORD)) {
			fd_close(&fds[i]);
			all = false;
		}
	}
	return all;
}

/* Every word to the next sbxd stands in the order in which it comes here. */
static bool adopt_greet(struct box *b, uint32_t conns, int fds[SHM_CONNS])
{
	const struct ctl_hello hello = {
	    .slot = b->boot.slot,
	    .pid = (int32_t)getpid(),
	    .conns = conns,
	    .state = b->state == BOX_UP ? CTL_UP : CTL_ENDING,
	};
	bool told = control_link_send(
	    &b->control, CTL_HELLO, 0, &hello, sizeof(hello), NULL, 0, -1, CONTROL_NO_WORD);

	FAULT_POINT("worker.adopt.hello_sent");
	if (b->state == BOX_UP) /* it may have come up while nobody heard it */
		told = control_link_send(&b->control, CTL_BOOTED, 0, &b->booted, sizeof(b->booted),
			   NULL, 0, -1, CONTROL_NO_WORD) &&
		       told;
	told = adopt_show(b, fds) && told;
	FAULT_POINT("worker.adopt.held_sent");
	return told;
}

/* Takes over fd. The one before is dead: its lock was taken, or this one could not have come. */
static void adopt(struct box *b, int fd)
{
	int fds[SHM_CONNS];
	uint32_t conns;
	int rc;

	FAULT_POINT("worker.adopt.accepted");
	control_link_end(&b->control);
	conns = adopt_duplicate(b, fds);
	rc = box_take_control(b, fd);
	if (rc == 0)
		loop_timer_clear(b->loop, &b->orphan);
	else
		log_error("box %s: a supervisor cannot be heard: %s", b->boot.name, strerror(-rc));
	if (!adopt_greet(b, conns, fds)) {
		control_link_end(&b->control); /* it is gone again, or is to think so of us */
		return;
	}
	log_info("box %s: has another supervisor, %u connections", b->boot.name, conns);
	box_end_tell_again(b);
	box_leave_if_done(b);
}

static void door_on_again(struct loop *loop, struct loop_timer *t)
{
	struct box *b = LOOP_OWNER(t, struct box, door.again);

	if (loop_mod(loop, &b->door.watch, EPOLLIN) < 0)
		log_error("box %s: no supervisor can come in any more", b->boot.name);
}

static void door_on_event(struct loop *loop, struct loop_watch *w, uint32_t events)
{
	struct box *b = LOOP_OWNER(w, struct box, door.watch);
	int fd = FAULT_FAILS("worker.adopt.accept") ? -EMFILE
						    : rendezvous_accept(b->door.fd, b->door.uid);

	(void)events;
	if (fd >= 0) {
		adopt(b, fd);
		return;
	}
	if (fd == -EAGAIN)
		return;
	log_warn("box %s: nobody was let in: %s", b->boot.name, strerror(-fd));
	/* Whoever cannot be let in now is still there: without a pause we would do nothing else. */
	if (loop_timer_set(loop, &b->door.again, loop_now(loop) + DOOR_AGAIN_NS, door_on_again) ==
	    0)
		(void)loop_mod(loop, &b->door.watch, 0); /* at worst there is no pause */
}

int box_open_door(struct box *b)
{
	return loop_add(b->loop, &b->door.watch, b->door.fd, EPOLLIN, door_on_event);
}
