/*
 * layout: every structure in the shared segment. START HERE to understand the table.
 *
 *   offset 0      struct shm_header        who supervises, counters, histograms, warm list ends
 *   index_off     uint32_t[index_buckets]  (owner uid, token) -> first slot of a chain
 *   ring_off      struct shm_event[]       flight recorder, survives the daemon
 *   slots_off     struct shm_slot[]        three 4 KiB pages per box: pages are the permissions
 *
 * Writers. sbxd writes everything but the last page of a slot. The worker of a slot maps that one
 * page (struct shm_page) and writes only `work`, `conns`, `in_flight` and, while it boots, checks
 * or closes its box, holds `scope_lock`. So whose a box is, and who has leased it, is out of a
 * worker's reach, and a successor of sbxd may believe it. sbxd decides from its private mirror:
 * what it reads in a worker's page it copies, validates, and uses as a hint, never as truth.
 *
 * Readers (sbxtop, sbxctl) map read-only and take no lock. `sup` and `work` each stand under a
 * sequence counter: odd while it is written, changed after every write; a reader retries until it
 * saw the same even value twice.
 *
 * Lock order: supervisor_lock, which its supervisor holds for life, then one scope_lock; never two
 * scope_locks. While sbxd holds a scope_lock: no unmap, fork, driver call, allocation or log. sbxd
 * only ever tries a scope_lock, and only when no live worker has the page: a robust mutex is a node
 * of its owner's list, and its links could be rewritten by whoever shares the page.
 *
 * All times are CLOCK_MONOTONIC ns unless the name ends in _wall_ms. Text is UTF-8, NUL-padded,
 * maybe cut.
 */
#ifndef SBXD_SHM_LAYOUT_H
#define SBXD_SHM_LAYOUT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_MAGIC 0x31304244584253ULL /* "SBXDB01" */
#define SHM_VERSION 3U
#define SHM_PAGE 4096U
#define SHM_MODE 0640
#define SHM_NONE UINT32_MAX /* no slot */

#define SHM_MAX_SLOTS 16384U
#define SHM_RING_RECORDS 4096U

#define SHM_TOKEN_LEN 24 /* 16 hex digits and NULs */
#define SHM_USER_LEN 320
#define SHM_IMAGE_LEN 128
#define SHM_NAME_LEN 64
#define SHM_BOX_NAME_LEN 136 /* 128 characters and NULs */
#define SHM_ERROR_LEN 160
#define SHM_ID_LEN 40
#define SHM_CONNS 256  /* connections one worker may hold at a time */
#define SHM_LEASES 256 /* leases one box may have at a time */

/* A slot's state. Transitions: the one table in shm/slot.c. */
enum slot_state {
	SLOT_FREE = 0,	  /* nobody's */
	SLOT_RESERVED,	  /* counted against replicas; no worker yet, waiting for a boot permit */
	SLOT_BOOTING,	  /* a worker is starting a box in it */
	SLOT_STOCK,	  /* booted, never used, no scope yet */
	SLOT_ACTIVE,	  /* leased */
	SLOT_CHECKING,	  /* warm box being health-checked for an acquire */
	SLOT_WARM,	  /* released, still running */
	SLOT_CLOSING,	  /* being stopped, killed or cleaned up after */
	SLOT_QUARANTINED, /* could not be repaired or cleaned; never used again by this segment */
	SLOT_STATES,
};

/* How a box was obtained; also the rows of acquire counters. */
enum shm_source {
	SOURCE_ACTIVE,
	SOURCE_WARM,
	SOURCE_PREWARMED,
	SOURCE_COLD,
	SOURCES,
};

enum shm_counter {
	COUNTER_ACQUIRE_ACTIVE, /* the first four in the order of enum shm_source */
	COUNTER_ACQUIRE_WARM,
	COUNTER_ACQUIRE_PREWARMED,
	COUNTER_ACQUIRE_COLD,
	COUNTER_ACQUIRE_FAILED,
	COUNTER_RELEASES,
	COUNTER_BOOTS,
	COUNTER_BOOT_FAILURES,
	COUNTER_CHECKS,
	COUNTER_CHECK_FAILURES,
	COUNTER_EVICTIONS,
	COUNTER_IDLE_CLOSES,
	COUNTER_CLOSES,
	COUNTER_WORKER_CRASHES,
	COUNTER_LOCK_RECOVERIES,
	COUNTER_QUARANTINES,
	COUNTER_HANDOVERS,
	COUNTER_HANDBACKS,
	COUNTER_REJECTED_REQUESTS,
	COUNTER_PAST_COMMANDS, /* of boxes that are gone, as the next three */
	COUNTER_PAST_COMMAND_FAILURES,
	COUNTER_PAST_BYTES_IN,
	COUNTER_PAST_BYTES_OUT,
	COUNTER_CREATES, /* made boxes, as the next two */
	COUNTER_STARTS,	 /* by order or by use */
	COUNTER_STOPS,
	COUNTERS,
};

/* Latency histograms; values in ns. */
enum shm_hist_id {
	HIST_ACQUIRE_ACTIVE, /* the first four in the order of enum shm_source */
	HIST_ACQUIRE_WARM,
	HIST_ACQUIRE_PREWARMED,
	HIST_ACQUIRE_COLD,
	HIST_BOOT,
	HIST_CHECK,
	HIST_CLOSE,
	HISTS,
};

#define HIST_SUB_BITS 2 /* 4 buckets per power of two */
#define HIST_BUCKETS 168

struct shm_hist {
	_Atomic uint64_t count;
	_Atomic uint64_t sum_ns;
	_Atomic uint64_t buckets[HIST_BUCKETS];
};

enum shm_supervisor_state {
	SUPERVISOR_STARTING,
	SUPERVISOR_SERVING,
	SUPERVISOR_SHUTTING_DOWN,
	SUPERVISOR_GONE, /* left on purpose; the segment waits for a successor */
};

/* Written by sbxd. `magic` is stored last, with release order, when all else is in place. */
struct shm_header {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t layout_hash;
	uint64_t total_size;
	uint32_t slot_count;
	uint32_t slot_size;
	uint64_t slots_off;
	uint32_t index_buckets; /* a power of two */
	uint32_t reserved0;
	uint64_t index_off;
	uint32_t ring_records; /* a power of two */
	uint32_t ring_record_size;
	uint64_t ring_off;
	char instance[32];
	uint32_t owner_uid;
	uint32_t reserved1;

	/* The supervisor that owns the segment now. */
	_Atomic int32_t supervisor_pid;
	_Atomic uint32_t supervisor_state; /* enum shm_supervisor_state */
	_Atomic uint64_t supervisor_start; /* start time of that pid, clock ticks since boot */
	_Atomic uint64_t supervisor_gen;   /* one more for every supervisor of this segment */
	_Atomic uint64_t heartbeat_ns;
	_Atomic uint64_t started_ns;
	_Atomic uint64_t started_wall_ms;
	_Atomic uint64_t next_generation; /* of slots: never given twice within one segment */

	_Alignas(64) pthread_mutex_t supervisor_lock; /* robust; held by the supervisor for life */
	_Alignas(64) sem_t boot_slots; /* permits for concurrent boots; only sbxd takes and posts */

	/* Warm list: oldest first. Under list_seq, as the links in the slots. */
	_Alignas(64) _Atomic uint32_t list_seq;
	_Atomic uint32_t warm_head;
	_Atomic uint32_t warm_tail;
	_Atomic uint32_t warm_count;
	_Atomic uint32_t state_count[SLOT_STATES]; /* how many slots are in each state */
	_Atomic uint32_t waiters;		   /* acquires waiting, over all scopes */
	_Atomic uint32_t replicas;
	_Atomic uint32_t boot_slots_max;

	_Alignas(64) _Atomic uint64_t ring_next; /* sequence number of the next event, from 1 */
	_Alignas(64) _Atomic uint64_t counters[COUNTERS];
	_Alignas(64) struct shm_hist hists[HISTS];
};

/* One record of the flight recorder. `seq` is 0 while it is written and stored last. */
struct shm_event {
	_Atomic uint64_t seq;
	uint64_t time_ns;
	uint64_t wall_ms;
	uint64_t generation;
	uint32_t slot; /* SHM_NONE when not about a slot */
	uint32_t kind; /* enum shm_event_kind */
	uint32_t from; /* enum slot_state, for EVENT_STATE */
	uint32_t to;   /* enum slot_state, for EVENT_STATE */
	int32_t pid;   /* worker, or 0 */
	int32_t code;  /* errno, exit status or signal: says `kind` */
	uint32_t owner_uid;
	uint32_t reserved;
	char token[SHM_TOKEN_LEN];
	char request_id[SHM_ID_LEN];
	char reason[64];
};

enum shm_event_kind {
	EVENT_NONE = 0,
	EVENT_SUPERVISOR_START,
	EVENT_SUPERVISOR_STOP,
	EVENT_STATE,	     /* from -> to */
	EVENT_LEASE,	     /* a lease was given */
	EVENT_RELEASE,	     /* a lease was returned, or dropped */
	EVENT_EVICT,	     /* reason says why */
	EVENT_WORKER_CRASH,  /* code: wait status */
	EVENT_LOCK_RECOVERY, /* EOWNERDEAD was repaired */
	EVENT_QUARANTINE,
	EVENT_ADOPT,
	EVENT_CHECK_FAILED,
	EVENT_BOOT_FAILED,
	EVENT_ERROR,
	EVENT_START, /* a made box runs: it was fresh or stopped */
	EVENT_STOP,  /* a made box is stopped: no process is left in it */
	EVENT_KINDS,
};

/* The supervisor's part of a slot. Written whole, by sbxd, under sup_seq. */
struct slot_sup {
	uint64_t generation; /* new for every box; a message with another one is stale */
	uint32_t state;	     /* enum slot_state */
	uint32_t owner_uid;
	char token[SHM_TOKEN_LEN];
	char name[SHM_NAME_LEN]; /* sbxd-<instance>-<slot>-<generation>: what the driver calls it */
	uint8_t identity[32];	 /* digest over the length-prefixed user and thread */
	uint8_t spec_digest[32]; /* digest over image and limits */
	uint32_t flags;		 /* SLOT_FLAG_* */
	uint32_t waiters;
	uint32_t leases;
	uint32_t lease_span; /* no lease stands at this place or past it */
	int32_t worker_pid;
	uint32_t saves;	       /* workers that it has outlived since its newest lease */
	uint64_t worker_start; /* clock ticks since boot */
	char driver[16];
	char isolation[16];
	char image[SHM_IMAGE_LEN];
	uint32_t memory_mib;
	uint32_t cpus_milli; /* thousandths of a cpu, 0 is no limit */
	uint32_t disk_mib;
	uint32_t pids_max;
	uint64_t created_ns;
	uint64_t state_ns;  /* when the state was entered */
	uint64_t parked_ns; /* when it was last parked as warm, 0 never */
	uint64_t leased_ns; /* when its newest lease was given, 0 never */
	uint64_t created_wall_ms;
	uint64_t updated_wall_ms;
	uint64_t acquires;
	uint32_t index_next; /* next slot in its index chain, or SHM_NONE */
	uint32_t warm_prev;  /* towards older, or SHM_NONE */
	uint32_t warm_next;  /* towards newer, or SHM_NONE */
	uint32_t source;     /* enum shm_source of the newest lease */
	char user[SHM_USER_LEN];
	char thread[SHM_USER_LEN];
	/* What its creator calls a made box; empty: it has no name. */
	char box_name[SHM_BOX_NAME_LEN];
	char last_error[SHM_ERROR_LEN];
};

#define SLOT_FLAG_ANONYMOUS 1U /* no scope: a random id, not found by acquire */
#define SLOT_FLAG_ADOPTED 2U   /* taken over from a dead supervisor and not checked since */
#define SLOT_FLAG_NO_USER 4U   /* user_id was absent */
#define SLOT_FLAG_MADE 8U      /* its creator's until removed: never parked, evicted or reaped */
/* What a made box is at; without any of them it runs. */
#define SLOT_FLAG_FRESH 16U    /* not used yet */
#define SLOT_FLAG_STOPPING 32U /* its processes are being ended */
#define SLOT_FLAG_STOPPED 64U  /* they are; its files are as they were */
/* Of a box whose machine outlives its worker (boxlite.detach): */
#define SLOT_FLAG_OUTLIVES 128U /* it does: its worker has said so */
#define SLOT_FLAG_SAVED 256U	/* its worker died; it waits for one that takes it over */
#define SLOT_FLAG_FAILED 512U	/* it closes because its worker said so, and for no other reason */
#define SLOT_FLAGS_REST (SLOT_FLAG_FRESH | SLOT_FLAG_STOPPING | SLOT_FLAG_STOPPED)
#define SLOT_FLAGS                                                                      \
	(SLOT_FLAG_ANONYMOUS | SLOT_FLAG_ADOPTED | SLOT_FLAG_NO_USER | SLOT_FLAG_MADE | \
	    SLOT_FLAG_OUTLIVES | SLOT_FLAG_SAVED | SLOT_FLAG_FAILED | SLOT_FLAGS_REST)

/* The worker's part of a slot. Written whole, by that slot's worker, under work_seq. */
struct slot_work {
	uint64_t generation; /* of the box these numbers belong to */
	int32_t box_pid; /* PID 1 of the box seen from the host (or the VMM), 0 none; set before it
			    may run */
	uint32_t reserved;
	uint64_t box_start; /* start time of box_pid, clock ticks since boot */
	uint64_t heartbeat_ns;
	uint64_t
	    activity_ns; /* last start or end of a client's operation; a health check is none */
	uint64_t exec_total;
	uint64_t exec_failed; /* could not be started, or lost with the box */
	uint64_t bytes_in;    /* stdin and file writes, into the box */
	uint64_t bytes_out;   /* stdout, stderr and file reads, out of the box */
	uint64_t cpu_ns;
	uint64_t memory_bytes;
	char last_error[SHM_ERROR_LEN];
};

/*
 * A connection in a worker's hands: socket cookie in the low 56 bits, what its client is owed in
 * the high 8. Written by the worker with one atomic store each; read by sbxd when the worker has
 * died.
 */
#define CONN_COOKIE(word) ((word)&0x00ffffffffffffffULL)
#define CONN_STATE(word) ((unsigned int)((word) >> 56))
#define CONN_WORD(cookie, state) (((uint64_t)(state) << 56) | (cookie))

enum shm_conn_state {
	CONN_FREE = 0,
	CONN_IDLE,	/* between requests: nothing is owed */
	CONN_REQUEST,	/* a request was begun, no byte of its response was written */
	CONN_RESPONDING /* part of a response was written */
};

/*
 * One lease of a box. Written by sbxd: `id` last, and first made 0 when it ends; 0: none. Only
 * those of an active box count: what stands here in another state was half given, or half returned.
 */
struct shm_lease {
	_Atomic uint64_t id;
	_Atomic uint64_t cookie;     /* SO_COOKIE of the connection it is tied to, 0 none */
	_Atomic uint64_t expires_ns; /* UINT64_MAX: never */
};

/* What the worker of a slot maps, read-write: this page and no more. */
struct shm_page {
	uint32_t slot;				 /* own number; constant */
	_Alignas(64) pthread_mutex_t scope_lock; /* robust; who is in the middle of a transition */
	_Alignas(64) _Atomic uint32_t work_seq;
	_Atomic uint32_t in_flight; /* client operations the worker is serving now: pins the box */
	_Alignas(8) struct slot_work work;
	_Alignas(64) _Atomic uint64_t conns[SHM_CONNS];
	_Alignas(SHM_PAGE) char end[0];
};

struct shm_slot {
	_Alignas(64) _Atomic uint32_t sup_seq;
	uint32_t slot; /* own number; constant */
	_Alignas(8) struct slot_sup sup;
	_Alignas(64) struct shm_lease leases[SHM_LEASES];
	_Alignas(SHM_PAGE) struct shm_page page;
};

_Static_assert(sizeof(struct shm_page) == SHM_PAGE, "what a worker maps is one page");
_Static_assert(offsetof(struct shm_slot, page) == 2 * SHM_PAGE, "sbxd's part is two pages");
_Static_assert(sizeof(struct shm_slot) == 3 * SHM_PAGE, "a slot is three pages");
_Static_assert(sizeof(struct slot_sup) % 8 == 0, "the supervisor part is copied in words");
_Static_assert(sizeof(struct slot_work) % 8 == 0, "the worker part is copied in words");
_Static_assert(offsetof(struct shm_slot, sup) % 8 == 0, "words are aligned");
_Static_assert(offsetof(struct shm_page, work) % 8 == 0, "words are aligned");
_Static_assert(sizeof(struct shm_event) % 64 == 0, "events fill cache lines");
_Static_assert(sizeof(struct shm_event) == 192, "a record is three cache lines");
_Static_assert(
    ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "atomics work between processes");
_Static_assert((int)COUNTER_ACQUIRE_COLD == (int)SOURCE_COLD,
    "acquire counters are in the order of the sources");
_Static_assert((int)HIST_ACQUIRE_COLD == (int)SOURCE_COLD,
    "acquire histograms are in the order of the sources");

#endif
