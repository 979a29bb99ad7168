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

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/clock.h"
#include "lib/identity.h"
#include "shm/layout.h"
#include "wire/api_error.h"

enum replica_policy {
	REPLICA_SOFT,	/* go beyond and say so */
	REPLICA_REJECT, /* refuse at once */
	REPLICA_WAIT,	/* wait for room */
	REPLICA_BURST,	/* burst_limit more, then wait */
};

/* All times in ns; 0 disables where the configuration says so. */
struct pool_rules {
	uint32_t slots; /* fixed for the pool's life */
	uint32_t replicas;
	enum replica_policy policy;
	uint32_t burst_limit;
	uint32_t max_boots;
	uint64_t acquire_timeout; /* 0: no limit */
	uint64_t idle_timeout;
	uint64_t active_idle_timeout;
	uint64_t check_skip;
	uint64_t check_timeout;
	uint64_t boot_timeout;
	uint64_t close_grace;
};

/* What a box is made of. */
struct pool_spec {
	char image[SHM_IMAGE_LEN];
	uint32_t memory_mib;
	uint32_t cpus_milli;
	uint32_t disk_mib;
	uint32_t pids_max;
	uint8_t digest[32]; /* over all of the above */
};

/* Read by the pool when it must know whether a box is in use: from the slot's page, or scripted in
 * tests. */
struct pool_gauge {
	uint32_t (*in_flight)(void *ctx, uint32_t slot);
	uint64_t (*activity_ns)(void *ctx, uint32_t slot); /* 0: none yet */
	void *ctx;
};

struct pool;
struct pool_scope;

struct pool_lease {
	TAILQ_ENTRY(pool_lease) link;
	uint64_t id;
	uint64_t cookie;  /* of the connection it is tied to, 0 none */
	uint64_t expires; /* CLOCK_NEVER without TTL */
};
TAILQ_HEAD(pool_leases, pool_lease);

/* A box as the pool sees it. Read-only outside pool*.c. */
struct pool_box {
	uint32_t slot;
	uint32_t state; /* enum slot_state */
	uint64_t generation;
	uid_t uid;
	char token[SHM_TOKEN_LEN];
	uint8_t identity[32];
	char user[SHM_USER_LEN];
	char thread[SHM_USER_LEN];
	uint32_t flags; /* SLOT_FLAG_* */
	struct pool_spec spec;
	struct pool_scope *scope; /* NULL once it is nobody's */
	struct pool_leases leases;
	uint32_t lease_count;
	uint32_t waiters; /* acquires waiting for its scope */
	uint32_t source;  /* of the newest lease */
	uint64_t acquires;
	uint64_t created;
	uint64_t state_since;
	uint64_t parked;   /* last time it became warm */
	uint64_t leased;   /* last time a lease was given */
	uint64_t deadline; /* of the state it is in: boot, check, close, clean */
	bool skip_right; /* this pool parked it itself: the next check may be skipped for a while */
	bool has_worker;
	bool killed;
	bool dirty;
	char last_error[SHM_ERROR_LEN];
	TAILQ_ENTRY(pool_box) queue; /* warm list, or boot queue */
	TAILQ_ENTRY(pool_box) dirty_link;
	uint64_t remove_req; /* client that waits for its removal, 0 none */
};
TAILQ_HEAD(pool_boxes, pool_box);

enum pool_action_kind {
	POOL_NOTHING = 0,
	POOL_SPAWN,   /* start a worker for (slot, gen) and send it CTL_BOOT */
	POOL_CHECK,   /* CTL_CHECK */
	POOL_PARK,    /* CTL_PARK */
	POOL_PROMOTE, /* CTL_PROMOTE */
	POOL_CLOSE,   /* CTL_CLOSE */
	POOL_KILL,    /* SIGKILL to the worker */
	POOL_CLEAN,   /* prove the box's processes gone, clean up, recover the lock, repair; then
			 pool_cleaned() */
	POOL_GRANT,   /* answer acquire `req` with the box */
	POOL_REFUSE,  /* answer `req` with `error` and `text` */
	POOL_REMOVED, /* answer removal `req`: the box is gone */
	POOL_RECORD,  /* append to the flight recorder */
	POOL_DRAINED, /* shutdown is complete: no box is left */
};

#define POOL_EVICT_IDLE 1 /* code of an EVENT_EVICT that made no room for anybody: it lay idle */

struct pool_action {
	TAILQ_ENTRY(pool_action) link;
	enum pool_action_kind kind;
	uint32_t slot;
	uint64_t generation;
	uint64_t req;
	/* GRANT */
	uint32_t source;
	uint64_t lease_id;
	uint64_t waited; /* ns from pool_acquire() to here */
	/* REFUSE */
	enum api_error error;
	double retry_after;
	/* RECORD */
	uint32_t event; /* enum shm_event_kind */
	uint32_t from;
	uint32_t to;
	int32_t code;
	char text[120];
};

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
uint32_t pool_count(const struct pool *p, enum slot_state state);
uint32_t pool_waiters(const struct pool *p);
const struct pool_rules *pool_rules(const struct pool *p);

/* ---- events: clients ---- */

struct pool_request {
	uint64_t req;	 /* names the waiting client in actions; unique among the waiting, not 0 */
	uint64_t cookie; /* its connection, for a lease that is tied to it; 0 when it is not */
	uid_t uid;
	bool anonymous; /* no thread: id.token was drawn at random, so nobody else can ever wait for
			   this scope */
	bool no_user;
	struct identity id;
	const char *user; /* both copied */
	const char *thread;
	struct pool_spec spec;
	uint64_t lease_id;   /* drawn at random by the caller */
	uint64_t lease_ttl;  /* ns, 0 none */
	uint64_t wait_limit; /* ns, 0: the rules' acquire_timeout */
};

/* Ends, now or later, in exactly one POOL_GRANT or POOL_REFUSE for req, unless pool_client_gone()
 * comes first. */
void pool_acquire(struct pool *p, uint64_t now, const struct pool_request *r);

/* A waiting client is gone: its place in the queue is given up. */
void pool_client_gone(struct pool *p, uint64_t now, uint64_t req);

/* A connection is gone: leases tied to it are returned. */
void pool_conn_gone(struct pool *p, uint64_t now, uint64_t cookie);

enum pool_release_result {
	POOL_RELEASE_NOT_FOUND,
	POOL_RELEASE_RUNNING, /* other leases are left, or the lease was not one of this box */
	POOL_RELEASE_WARM,
	POOL_RELEASE_CLOSED, /* it is being closed */
};

/* Returns a lease, or all when lease_id is 0. Idempotent. */
enum pool_release_result pool_release(
    struct pool *p, uint64_t now, uid_t uid, const char *token, uint64_t lease_id);

/*
 * Removes a box. 0: POOL_REMOVED for req follows; -ENOENT: no such box; -EBUSY: leased, and not
 * `force`; -EALREADY: another removal waits already.
 */
int pool_remove(
    struct pool *p, uint64_t now, uid_t uid, const char *token, bool force, uint64_t req);

/* Parks all active boxes as warm, without skip right. Returns their number. */
uint32_t pool_reset(struct pool *p, uint64_t now);

/* Refuses all waiting and later acquires, closes every box; POOL_DRAINED follows. Idempotent. */
void pool_shutdown(struct pool *p, uint64_t now);

/* ---- events: workers ---- */

void pool_booted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen);
void pool_boot_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text);
void pool_checked(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool healthy, const char *text);

/* The box's transport broke (not: a command failed). */
void pool_box_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text);

/* The worker process has ended; status as waitid() gives it in `text`. */
void pool_worker_gone(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, int32_t code, const char *text);

/* POOL_CLEAN is done; ok false: the slot can never be used again. */
void pool_cleaned(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool ok, const char *text);

#endif
