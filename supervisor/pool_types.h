/*
 * pool_types: what goes into the pool and what comes out: rules, boxes as the pool sees them,
 * actions. The calls are in pool.h.
 */
#ifndef SBXD_SUPERVISOR_POOL_TYPES_H
#define SBXD_SUPERVISOR_POOL_TYPES_H

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

/* What a box is made of. */
struct pool_spec {
	char image[SHM_IMAGE_LEN];
	uint32_t memory_mib;
	uint32_t cpus_milli;
	uint32_t disk_mib;
	uint32_t pids_max;
	uint8_t digest[32]; /* over all of the above */
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
	uint32_t prewarm;	/* how many never-used boxes are kept in stock */
	struct pool_spec stock; /* what they are made of */
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
struct pool_box;

/* A moment at which time will bring something about. */
struct pool_due {
	uint64_t at;
	uint32_t pos; /* in the heap of them; 0: not in it */
	uint32_t kind;
};

#define POOL_LEASES 256U /* of one box, at a time */

struct pool_lease {
	TAILQ_ENTRY(pool_lease) link;
	LIST_ENTRY(pool_lease) tied_link;
	struct pool_box *box;
	uint64_t id;
	uint64_t cookie;  /* of the connection it is tied to, 0 none */
	uint64_t expires; /* CLOCK_NEVER without TTL */
	uint16_t place; /* its number within its box, below POOL_LEASES: the table shows it there */
};
TAILQ_HEAD(pool_leases, pool_lease);

/* A box as the pool sees it. Read-only outside pool*.c. */
struct pool_box {
	/* What every acquire touches stands together, the long texts last: with many boxes each
	 * line of the cache counts. */
	uint32_t slot;
	uint32_t state; /* enum slot_state */
	uint64_t generation;
	uint64_t machine;	  /* the generation that its machine is named by: its first */
	struct pool_scope *scope; /* NULL while it is stock, and once it is nobody's */
	uid_t uid;
	uint32_t flags;	 /* SLOT_FLAG_* */
	bool skip_right; /* this pool parked it itself: the next check may be skipped for a while */
	bool claimed;	 /* out of the stock, for the acquire that it is checked for */
	bool has_worker;
	bool adopting; /* its worker was another supervisor's and has not said hello to us yet */
	bool killed;
	bool dirty;
	uint32_t waiters; /* acquires waiting for its scope */
	uint32_t saves;	  /* workers that it has outlived since its last lease */
	struct pool_due due;
	uint64_t deadline; /* of the state it is in: boot, check, close, clean */
	uint64_t state_since;
	uint64_t parked; /* last time it became warm */
	uint64_t leased; /* last time a lease was given */
	uint64_t acquires;
	uint32_t source; /* of the newest lease */
	uint32_t lease_count;
	struct pool_leases leases;
	uint64_t places[POOL_LEASES / 64]; /* those that are taken, one bit each */
	TAILQ_ENTRY(pool_box) queue;	   /* warm list, boot queue, or stock */
	TAILQ_ENTRY(pool_box) dirty_link;
	char token[SHM_TOKEN_LEN]; /* empty as long as it is stock */

	LIST_ENTRY(pool_box) generation_link;
	uint64_t created;
	uint64_t remove_req; /* client that waits for its removal, 0 none */
	uint8_t identity[32];
	struct pool_spec spec;
	char user[SHM_USER_LEN];
	char thread[SHM_USER_LEN];
	char name[SHM_BOX_NAME_LEN]; /* of a made box, "" without */
	char last_error[SHM_ERROR_LEN];
};
TAILQ_HEAD(pool_boxes, pool_box);
LIST_HEAD(pool_box_list, pool_box);

enum pool_action_kind {
	POOL_NOTHING = 0,
	POOL_SPAWN,   /* start a worker for (slot, gen) and send it CTL_BOOT */
	POOL_CHECK,   /* CTL_CHECK */
	POOL_PARK,    /* CTL_PARK */
	POOL_CLAIM,   /* tell the worker whose box it is now: it was stock */
	POOL_PROMOTE, /* CTL_PROMOTE */
	POOL_CLOSE,   /* CTL_CLOSE */
	POOL_KILL,    /* SIGKILL to the worker */
	POOL_STOP,    /* CTL_STOP, with `timeout` */
	POOL_CLEAN,   /* prove the box's processes gone, clean up, recover the lock, repair; then
			 pool_cleaned() */
	POOL_GRANT,   /* answer acquire `req` with the box */
	POOL_REFUSE,  /* answer `req` with `error` and `text` */
	POOL_REMOVED, /* answer removal `req`: the box is gone */
	POOL_OBEYED,  /* answer start or stop `req`: the box is as it was to be */
	POOL_RECORD,  /* append to the flight recorder */
	POOL_DRAINED, /* shutdown is complete: no box is left */
};

#define POOL_EVICT_IDLE 1 /* code of an EVENT_EVICT that made no room for anybody: it lay idle */

struct pool_action {
	TAILQ_ENTRY(pool_action) link;
	enum pool_action_kind kind;
	uint32_t slot;
	uint64_t generation;
	uid_t uid; /* whose the box was then */
	char token[SHM_TOKEN_LEN];
	uint64_t req; /* RECORD: of the client whose request brought it about, 0 none */
	/* GRANT */
	uint32_t source;
	uint64_t lease_id;
	uint64_t waited; /* ns from pool_acquire() to here */
	/* STOP */
	uint64_t timeout; /* ns, for what runs in the box to end by itself */
	/* REFUSE */
	enum api_error error;
	double retry_after;
	/* RECORD */
	uint32_t event; /* enum shm_event_kind */
	uint32_t from;
	uint32_t to;
	int32_t code;
	char text[248]; /* as long as a struct err has it; a record keeps less */
};

/* ---- a successor's beginning ---- */

struct pool_lease_restored {
	uint64_t id;
	uint64_t cookie;
	uint64_t expires;
	uint16_t place;
};

/* One box, as the table of the dead supervisor shows it; see struct pool_box for what is not said.
 */
struct pool_restored {
	uint32_t slot;
	uint32_t state;
	uint64_t generation;
	uint64_t machine;
	uid_t uid;
	char token[SHM_TOKEN_LEN];
	uint8_t identity[32];
	char user[SHM_USER_LEN];
	char thread[SHM_USER_LEN];
	char name[SHM_BOX_NAME_LEN];
	uint32_t flags;
	struct pool_spec spec;
	uint32_t source;
	uint64_t acquires;
	uint32_t saves;
	uint64_t created;
	uint64_t state_since;
	uint64_t parked;
	uint64_t leased;
	bool has_worker; /* its worker process was found alive */
	const struct pool_lease_restored *leases;
	uint32_t lease_count;
	char last_error[SHM_ERROR_LEN];
};

/* ---- the queue, to be shown ---- */

struct pool_waiting {
	uid_t uid;
	const char *user;
	const char *thread;
	const char *token;
	uint64_t req;
	uint64_t since;
	uint64_t deadline; /* CLOCK_NEVER: none */
	bool for_room;
	uint32_t place; /* in the queue for room, from 1; 0: not in it */
};

#endif
