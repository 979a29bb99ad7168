/*
 * box: the life of the one box that this worker owns. sbx-worker only.
 *
 * START HERE in worker/. boot.c starts the box and locks the worker down; box.c takes sbxd's orders
 * and serves; box_check.c answers health checks; box_stop.c ends what runs in it; box_park.c lets
 * it stand still; box_adopt.c is the change from a dead sbxd to the next; box_end.c is every way
 * the box ends. Client connections are conn*.c, what they ask for is run*.c, exec*.c and files*.c,
 * the guest is agent_*.c.
 */
#ifndef SBXD_WORKER_BOX_H
#define SBXD_WORKER_BOX_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/driver.h"
#include "lib/loop.h"
#include "shm/layout.h"
#include "wire/control.h"
#include "worker/agent_link.h"
#include "worker/control_link.h"
#include "worker/report.h"
#include "worker/service.h"

#define BOX_NONCE 8U /* bytes of a ping's payload */

enum box_state {
	BOX_BOOTING,
	BOX_UP,
	BOX_CLOSING, /* in order: lock, sync, then the end */
	BOX_ENDING,  /* killed or about to be; clients take their last answers */
};

/* A health check under way. */
struct box_check {
	bool running;
	bool pinged;
	uint64_t seq;
	uint64_t nonce;
	uint64_t deadline_ns;
	struct loop_timer timer;
};

/* Whether the guest gives signs of life while clients wait for it. */
struct box_pulse {
	uint64_t heard; /* link.heard at the last beat */
	uint64_t quiet; /* beats since it was otherwise: while we are stopped none is missed */
};

/* Where the next sbxd comes in. */
struct box_door {
	int fd;	   /* listens; -1: not yet made */
	uid_t uid; /* sbxd's */
	struct loop_watch watch;
	struct loop_timer again; /* due: it is opened again */
};

/* A stop under way: every process of the box is being ended, the box stays. */
struct box_stop {
	bool running;
	uint32_t number; /* of the order that is to be answered, 0: its sbxd is gone */
	uint64_t nonce;
	struct loop_timer timer; /* due: it has failed */
};

/* What box_end() will say and do. */
struct box_end {
	enum ctl_type type; /* CTL_CLOSED or CTL_BOX_DIED */
	uint64_t seq;
	uint64_t nonce; /* of the sync */
	uint64_t deadline_ns;
	struct ctl_failed why;
	bool left; /* only what drove the box has died */
	struct loop_timer timer;
};

struct box {
	struct service service;
	struct loop *loop;
	struct control_link control;
	struct agent_link link;
	struct report report;
	struct shm_page *page;
	bool locked; /* we hold page->scope_lock */
	enum box_state state;

	struct ctl_boot boot; /* what sbxd ordered */
	uint64_t gen;
	uint64_t boot_seq;
	uint64_t ordered_ns; /* when CTL_BOOT came */
	char *env;	     /* "K=V\0"..., boot's tail */
	size_t env_len;
	struct ctl_booted booted; /* what was said when it was up */

	const struct driver *driver;
	struct driver_site site;
	struct driver_box *handle; /* NULL: no box */
	struct loop_watch watch;   /* the box's first process */
	bool greeted;
	bool guest_fits; /* it speaks our version */
	bool parked;	 /* nobody uses it: it may stand still */

	uint64_t nonce; /* of the newest ping or sync */
	struct box_check check;
	struct box_pulse pulse;
	struct box_stop stop;
	struct box_end end;
	struct box_door door;
	struct loop_timer orphan; /* due: nobody adopted us */
	uint8_t *scratch;
};

/* boot.c: says hello to sbxd, waits for CTL_BOOT and starts the box. Blocks, within bounds. 0 when
 * it is up; otherwise sbxd was told why and nothing is left of it. */
int box_boot(struct box *b, uint32_t slot);

/* box.c: serves until the box has ended. Returns the exit status. */
int box_serve(struct box *b);

/* Takes orders from fd from now on, which it takes over. 0 or -errno; fd is closed then too. */
int box_take_control(struct box *b, int fd);

/* box_adopt.c: makes the worker's own socket, while the right to is there. 0 or -errno. */
int box_make_door(struct box *b, struct err *err);

/* Lets the next sbxd in, whenever it comes. 0 or -errno. */
int box_open_door(struct box *b);

/*
 * sbxd is gone. What is in hand is served on; what only sbxd wanted is dropped. After orphan_grace
 * without another sbxd the box is closed.
 */
void box_on_control_gone(void *ctx);

/* box_check.c */
void box_check_begin(struct box *b, uint64_t seq);
void box_check_pong(struct box *b, uint64_t nonce);
void box_check_abort(struct box *b, int code);

/*
 * Once a second while an operation runs: a guest that has said nothing since is asked, and one that
 * says nothing for six times health_check_timeout is dead: no client hangs on a hung guest.
 */
void box_check_pulse(struct box *b);

/* A scope_repair_fn: a worker has no mirror to repair from, that is for sbxd. */
int box_refuse_repair(struct shm_page *page, void *ctx);

/* Takes the scope lock without waiting. False: somebody has it, or it is broken. */
bool box_try_lock(struct box *b);
void box_unlock(struct box *b);

/* box_stop.c */
void box_stop(struct box *b, const struct ctl_stop *order);
void box_stop_pong(struct box *b, uint64_t nonce);
void box_stop_abort(struct box *b); /* the box ends: nobody waits for its stop any more */

/* box_park.c: nobody uses the box, or somebody does. */
void box_park(struct box *b);
void box_unpark(struct box *b);

/* What kept a parked box awake may have ended. */
void box_park_if_idle(struct box *b);

/* The guest is wanted: the box goes on, and is told what time it is. 0 or -errno. */
int box_rouse(struct box *b);

/* box_end.c */
void box_close(struct box *b, uint32_t grace_ms, uint64_t seq);
void box_close_pong(struct box *b, uint64_t nonce);
void box_die(struct box *b, int code, const char *why);

/* What the driver knows that it died of; NULL: nothing. The text is the handle's. */
const char *box_known_why(const struct box *b);

/* There is another sbxd now: it hears of an end that was told to the one before. */
void box_end_tell_again(struct box *b);

/* Ends all processes of the box and frees the driver's handle. 0 or -errno: some may be left. */
int box_end_all(struct box *b);

/* Exits when nothing is left to say. */
void box_leave_if_done(struct box *b);

#endif
