/*
 * pool: who gets which box, when one is started, parked, checked, evicted, closed. A deterministic
 * state machine.
 *
 * Events come in as calls, with the time; actions come out of pool_next_action(), to be performed
 * in order. The pool does no I/O, reads no clock, has no randomness and never sees a descriptor: so
 * policy is tested without sleeping, and can be simulated from a seed. It is sbxd's private truth;
 * the shared table is what publish.c makes of it.
 *
 * A box is named by (slot, generation) everywhere: an event about another generation is stale and
 * ignored.
 */
#ifndef SBXD_SUPERVISOR_POOL_H
#define SBXD_SUPERVISOR_POOL_H

#include "supervisor/pool_types.h"

/* A new pool of free slots; generations continue after `last_generation`. NULL without memory. */
struct pool *pool_create(
    const struct pool_rules *rules, const struct pool_gauge *gauge, uint64_t last_generation);
void pool_destroy(struct pool *p);

/* Takes over changed rules (slots cannot change). */
void pool_set_rules(struct pool *p, const struct pool_rules *rules, uint64_t now);

/* The next action into *out; false when there is none. */
bool pool_next_action(struct pool *p, struct pool_action *out);

/* The next box whose published view must be written; NULL when all are. */
const struct pool_box *pool_next_dirty(struct pool *p);

/* Box b was published just now, out of turn. */
void pool_published(struct pool *p, const struct pool_box *b);

/* When pool_tick() wants to be called; CLOCK_NEVER when nothing is pending. */
uint64_t pool_deadline(const struct pool *p);
void pool_tick(struct pool *p, uint64_t now);

const struct pool_box *pool_box_at(const struct pool *p, uint32_t slot);
/* The box of that generation, or NULL when there is none any more. */
const struct pool_box *pool_box_by_generation(const struct pool *p, uint64_t generation);
const struct pool_box *pool_box_find(const struct pool *p, uid_t uid, const char *token);
/* The made box of that name, from its creation on and until it begins to close. */
const struct pool_box *pool_box_named(const struct pool *p, uid_t uid, const char *name);
uint32_t pool_count(const struct pool *p, enum slot_state state);
uint32_t pool_waiters(const struct pool *p);

/* Shows everybody who waits: first those for room, in the order in which they will get it, then the
 * others by arrival. fn returns false to be shown no more; the texts are the pool's. */
void pool_each_waiting(
    const struct pool *p, bool (*fn)(void *ctx, const struct pool_waiting *w), void *ctx);

const struct pool_rules *pool_rules(const struct pool *p);

/* ---- events: a new supervisor, and one that leaves ---- */

/*
 * Takes over one box that the table of a dead supervisor shows, once for every slot in use, before
 * any other event. What becomes of it:
 *
 * - With a live worker: active stays active with its leases; without any it is parked. Warm and
 *   checking become warm, stock stays stock, booting and closing go on, with fresh deadlines. Each
 *   carries SLOT_FLAG_ADOPTED until a check proves it. A made box that its creator was told of
 *   stays as it is, and a stop of it is begun anew; one that still boots goes: nobody waits for it.
 * - Without: closing, with POOL_CLEAN; EVENT_WORKER_CRASH is recorded if something was lost. One
 *   that outlives its worker is reserved anew, as after pool_worker_gone().
 * - Quarantined stays so.
 *
 * Of two boxes of one scope the one with a lease stays, else the newer; the other is closed.
 *
 * For each with a worker pool_adopted(), pool_not_adopted() or pool_worker_gone() must follow.
 * Until then no order to the worker comes out but POOL_KILL, and acquires for its box wait;
 * pool_adopted() brings out the one order that says what the box is by then.
 */
void pool_restore(struct pool *p, uint64_t now, const struct pool_restored *r);

/* That was all of them: puts what is warm into its order, closes stock that is too much. */
void pool_restored_all(struct pool *p, uint64_t now);

/* The worker of a restored box has said hello. `up`: its box runs; one that does not is half-made,
 * and is killed. `closing`: it was closing its box already. */
void pool_adopted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool up, bool closing);

/* The worker of a restored box did not say hello in time, as `text` says: it is killed. */
void pool_not_adopted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text);

#define POOL_PAST 4096U /* boxes that are remembered when they are gone */

/* A box that was this uid's is gone: pool_release() of it goes on being answered. Those of this
 * pool are remembered by themselves; this is for those of the supervisor before. */
void pool_past_add(struct pool *p, uid_t uid, const char *token);

/* Ends every lease that is tied to a connection which does not live any more. */
void pool_drop_tied(
    struct pool *p, uint64_t now, bool (*lives)(void *ctx, uint64_t cookie), void *ctx);

/* The supervisor goes and leaves its boxes to a successor: refuses all waiting and later acquires,
 * starts nothing, closes nothing. Idempotent. */
void pool_leave(struct pool *p, uint64_t now);

/* ---- events: clients ---- */

/* What is wanted. */
enum pool_want {
	POOL_WANT_LEASE, /* a box of the scope, and a lease of it */
	POOL_WANT_MADE,	 /* a new box that is its creator's until it is removed */
	/* Orders about a made box; asked with pool_order(). */
	POOL_WANT_START,
	POOL_WANT_STOP,
};

struct pool_request {
	enum pool_want want;
	uint64_t req;	 /* names the waiting client in actions; unique among the waiting, not 0 */
	uint64_t cookie; /* its connection, for a lease that is tied to it; 0 when it is not */
	uid_t uid;
	bool anonymous; /* no thread: id.token was drawn at random, so nobody else can ever wait for
			   this scope */
	bool no_user;
	struct identity id;
	const char *user; /* these three are copied */
	const char *thread;
	const char *name; /* of a box that is to be made; NULL or "": none */
	struct pool_spec spec;
	uint64_t lease_id;     /* drawn at random by the caller */
	uint64_t lease_ttl;    /* ns, 0 none */
	uint64_t wait_limit;   /* ns, 0: the rules' acquire_timeout */
	uint64_t stop_timeout; /* ns; of a stop */
};

/*
 * Ends, now or later, in exactly one POOL_GRANT or POOL_REFUSE for req, unless pool_client_gone()
 * comes first. A box that is to be made is anonymous; its lease is never returned, and nobody else
 * gets one. When pool_client_gone() comes first it is not kept.
 */
void pool_acquire(struct pool *p, uint64_t now, const struct pool_request *r);

/*
 * Starts or stops a made box, when what was asked of it before is done: POOL_OBEYED or POOL_REFUSE
 * for req follows, unless pool_client_gone() comes first; a stop that was begun goes on then.
 * timeout: ns, for what runs in a box to end by itself. 0; -ENOENT: there is no such box; -EINVAL:
 * it was not made, but acquired.
 */
int pool_order(struct pool *p, uint64_t now, uid_t uid, const char *token, enum pool_want want,
    uint64_t timeout, uint64_t req);

/* A client is about to use the box: that starts one that was made. False: it is being stopped. */
bool pool_use(struct pool *p, uint32_t slot, uint64_t gen);

/* A waiting client is gone: its place in the queue is given up. */
void pool_client_gone(struct pool *p, uint64_t now, uint64_t req);

/* A connection is gone: leases tied to it are returned. */
void pool_conn_gone(struct pool *p, uint64_t now, uint64_t cookie);

enum pool_release_result {
	POOL_RELEASE_NOT_FOUND, /* nobody knows of such a box */
	POOL_RELEASE_RUNNING,	/* other leases are left, or the lease was not one of this box */
	POOL_RELEASE_WARM,	/* or it is taken over from a dead worker, and is warm then */
	POOL_RELEASE_CLOSED,	/* it is being closed, or gone and one of the last POOL_PAST */
};

/* Returns a lease, or all when lease_id is 0. Idempotent. That of a made box is not to be returned:
 * it goes on running. */
enum pool_release_result pool_release(
    struct pool *p, uint64_t now, uid_t uid, const char *token, uint64_t lease_id);

/*
 * Removes a box. 0: POOL_REMOVED for req follows; -ENOENT: no such box; -EBUSY: leased (a made one:
 * being made, running or being stopped), and not `force`; -EALREADY: another removal waits already.
 */
int pool_remove(
    struct pool *p, uint64_t now, uid_t uid, const char *token, bool force, uint64_t req);

/* Parks all active boxes that were acquired as warm, without skip right. Returns their number. */
uint32_t pool_reset(struct pool *p, uint64_t now);

/* Refuses all waiting and later acquires, closes every box; POOL_DRAINED follows. Idempotent. */
void pool_shutdown(struct pool *p, uint64_t now);

/* ---- events: workers ---- */

/* The image of a box that is to boot is prepared first, which has bounds of its own: its time
 * begins with pool_boot_begins(). */
void pool_boot_waits(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen);
void pool_boot_begins(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen);
void pool_booted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen);
void pool_boot_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text);
/* Told before pool_booted(): the box's machine lives on when its worker dies, so that another one
 * can take it over. */
void pool_outlives(struct pool *p, uint32_t slot, uint64_t gen, bool outlives);
/* There is nothing to boot: its image is not to be had. */
void pool_image_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text);
void pool_checked(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool healthy, const char *text);

/* CTL_STOPPED; ok: no process is left in the box. */
void pool_stopped(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool ok, const char *text);

/* The box's transport broke (not: a command failed). */
void pool_box_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text);

/* After pool_box_failed(): only what drove it has died. It is saved, as one whose worker has. */
void pool_box_left(struct pool *p, uint32_t slot, uint64_t gen);

/* The worker process has ended; status as waitid() gives it in `text`. A box that outlives it
 * (pool_outlives()) is reserved anew under a new generation, and booted: POOL_SPAWN, with
 * SLOT_FLAG_SAVED; any other is cleaned. */
void pool_worker_gone(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, int32_t code, const char *text);

/* POOL_CLEAN is done; ok false: the slot can never be used again. */
void pool_cleaned(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool ok, const char *text);

#endif
