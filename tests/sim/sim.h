/*
 * sim: a whole sbxd in one process: its real decision code (supervisor/pool*.c) among simulated
 * clients, workers, janitor, kernel and shared table, driven by a virtual clock and by random
 * numbers from a seed. The supervisor may crash between any two of its effects; its successor
 * begins with what was published.
 *
 *   main.c      seeds, processes, numbers         schedule.c  what happens next, and how a seed
 * ends shell.c     sbxd around the pool: actions     successor.c its death, and the next one
 *   table.c     what was published                workers.c   workers and janitor, the scope lock
 *   clients.c   acquires, leases, removals        made.c      made boxes: their making and their
 * orders ledger.c    what clients know                 trace.c     what happened, in readable form
 *   shadow.c    must hold of every action         check.c     must hold after every event
 *
 * Everything is drawn from one generator, so a seed replays exactly.
 */
#ifndef SBXD_TESTS_SIM_SIM_H
#define SBXD_TESTS_SIM_SIM_H

#include "shm/slot.h"
#include "supervisor/pool.h"

#define SIM_SLOTS 6U
#define SIM_SCOPES 8U
#define SIM_CONNS 10U
#define SIM_PROCS 48U
#define SIM_REQS 1400U
#define SIM_STEPS 320U /* events of a seed, before it is brought to its end */
#define SIM_TRACE 64U
#define SIM_HELLO_WAIT (10 * NS_PER_S) /* a successor's patience with the workers it found */
#define SIM_NOBODY UINT32_MAX
#define SIM_LEASE_OF(req) (1000000 + (req)) /* lease ids tell their request */

/* ---- clients ---- */

enum sim_answer {
	SIM_WAITING,
	SIM_GRANTED,
	SIM_REFUSED,
	SIM_GONE,
	SIM_CUT,
	SIM_REMOVED,
	SIM_OBEYED,
};

/* What a client knows of its lease. One in doubt has ended in the pool; as long as that is not
 * published a crash may bring it back. */
enum sim_lease { SIM_NO_LEASE, SIM_HELD, SIM_IN_DOUBT, SIM_ENDED };

struct sim_request {
	enum sim_answer answer;
	bool removal;
	enum pool_want want;
	char name[4];	/* of a box that is to be made; "" none */
	uint64_t about; /* an order: the request that made the box */
	uint32_t rest;	/* a made box: what it is at, as was told last (SLOT_FLAGS_REST) */
	bool unsure;	/* something was asked since of which nobody knows the end */
	uint32_t conn;
	uint32_t scope;
	uid_t uid;
	struct identity id;
	uint8_t spec;
	uint64_t since;
	uint64_t deadline;
	enum sim_lease lease;
	uint32_t slot;
	uint64_t generation;
	uint64_t cookie; /* 0: not tied */
	uint64_t ttl;
	uint64_t expires;
	uint32_t boots_lost; /* while it waited */
	uint32_t place;	     /* in the queue for room, when it was last seen; 0: not in it */
};

struct sim_conn {
	bool alive;
	bool handed; /* a worker has it: it outlives the supervisor */
	uid_t uid;
	uint64_t cookie;
	uint64_t req; /* it waits for that answer, 0 none */
};

struct sim_scope {
	uid_t uid;
	const char *user; /* NULL: absent */
	const char *thread;
	struct identity id;
};

/* ---- workers, and the pages of their slots ---- */

enum sim_proc_state {
	PROC_NEW, /* no order yet */
	PROC_BOOTING,
	PROC_UP,
	PROC_CHECKING,
	PROC_CLOSING,
	PROC_ENDING,
};

enum sim_said {
	SAID_BOOTED,
	SAID_FAILED,
	SAID_CHECKED,
	SAID_UNHEALTHY,
	SAID_STOPPED,
	SAID_NOT_STOPPED,
	SAID_DIED,
	SAID_LEFT,
	SAID_HELLO,
	SAID_WHAT_IT_IS, /* CTL_BOOTED once more */
};

#define SIM_MAIL 8U

struct sim_proc {
	bool used;
	bool alive;
	bool told; /* it has its boot order: there may be a box */
	bool hung;
	bool doomed;	 /* SIGKILL is on its way */
	bool unkillable; /* asleep in the kernel */
	bool takes_over; /* a machine that is there */
	bool outlives;	 /* its machine does */
	bool died;	 /* it ends because its box did */
	bool left;	 /* and only what drove that one */
	bool stopping;	 /* it ends what runs in its box */
	bool stop_asked; /* by the supervisor that its socket leads to */
	enum sim_proc_state state;
	uint32_t slot;
	uint64_t generation;
	uint64_t serial; /* pid and start time: never the same twice */
	uint64_t link;	 /* the supervisor that its socket leads to, 0 none */
	enum pool_action_kind orders[SIM_MAIL];
	uint32_t order_count;
	enum sim_said said[SIM_MAIL];
	uint32_t said_count;
	bool touched; /* somebody had it; then whose it is for good: */
	uid_t uid;
	uint8_t identity[32];
	bool up_at_hello;
	bool closing_at_hello;
};

#define SIM_LOCK_SBXD 1U
#define SIM_LOCK_PROC(i) (2U + (i))

struct sim_page {
	uint32_t lock_owner; /* 0: nobody */
	bool owner_dead;
	bool inconsistent;
	bool unrecoverable;
	bool damaged; /* somebody is changing it, or died at that */
	bool worn;    /* a worker had it since it was repaired last */
	bool remains; /* processes, mounts, cgroups of a box may be there */
	bool machine; /* one that lives on by itself is among them */
	bool owned;   /* somebody had it; whose it is: */
	uid_t uid;
	uint8_t identity[32];
	uint32_t in_flight;
	uint64_t activity;
};

/* ---- the table ---- */

struct sim_published {
	struct pool_restored part; /* leases and has_worker are worked out when it is read */
	struct pool_lease_restored leases[POOL_LEASES];
	uint32_t lease_count;
	uint32_t proc; /* the worker's pid: number and serial */
	uint64_t serial;
};

/* ---- what the actions have told of a slot ---- */

#define EXCUSE_WORKER 1U  /* its worker ended, failed, or was lost */
#define EXCUSE_CLIENT 2U  /* it was removed */
#define EXCUSE_IDLE 4U	  /* it lay idle too long */
#define EXCUSE_EVICTED 8U /* to make room */
#define EXCUSE_SHUTDOWN 16U
#define EXCUSE_RESTART 32U
#define EXCUSE_RULES 64U

struct sim_shadow {
	uint32_t state;
	uint64_t generation;
	bool stock;
	bool adopted;	/* another supervisor made it, and no check has proven it since */
	bool skip_ok;	/* parked by this supervisor, in a way that gives skip right */
	bool proven;	/* by a check, in this very event */
	uint64_t since; /* in this state */
	bool late;	/* it closed under another supervisor: its place may be anybody's */
	uint64_t idle;	/* since when the window for skipping its check runs */
	uint64_t parked;
	uint64_t leased;
	bool made;
	uint32_t rest; /* of a made box */
	uint64_t
	    stop_due; /* when its worker must have stopped it, CLOCK_NEVER: nothing of that kind */
	bool stop_failed; /* in this event */
	uint32_t excuse;  /* for closing it, in this event */
};

struct sim_trace {
	uint32_t step;
	uint32_t slot;
	uint64_t now;
	uint64_t generation;
	uint64_t req;
	const char *what;
	const char *from; /* of a transition, else NULL */
	const char *to;
	char text[60];
};

/* How this seed's world is: percent, or permille where it says so. */
struct sim_temper {
	uint32_t crash_permille;
	uint32_t bad;	   /* boots, checks, cleanups that fail */
	uint32_t fragile;  /* boots in which the worker crashes */
	uint32_t death;	   /* of workers, permille */
	uint32_t hang;	   /* permille */
	uint32_t spread;   /* scopes that clients ask for */
	uint32_t lazy;	   /* timers that come late */
	uint32_t outlives; /* boxes whose machines live on without their worker */
};

struct sim {
	uint64_t seed;
	uint64_t random;
	uint64_t now;
	uint32_t step;
	struct sim_temper temper;

	/* sbxd, while it lives */
	struct pool *pool;
	bool alive;
	uint64_t epoch; /* of supervisors */
	struct pool_rules rules;
	uint32_t workers[SIM_SLOTS]; /* processes that it knows, or SIM_NOBODY */
	bool greeted[SIM_SLOTS];
	struct sim_pending {
		bool pending;
		bool stuck;
		uint64_t generation;
	} images[SIM_SLOTS], cleans[SIM_SLOTS];
	uint64_t hello_due;
	bool tied_pending;
	bool shutting_down;
	bool leaving;
	uint32_t drained;
	uint32_t crash_in; /* effects from here, 0: not planned */
	bool settling;
	bool quiet; /* the end of a seed: everybody behaves well */

	/* what outlives it */
	struct sim_published table[SIM_SLOTS];
	uint64_t next_generation;
	struct sim_page pages[SIM_SLOTS];
	struct sim_proc procs[SIM_PROCS];
	uint64_t serials;
	uint64_t spawned[SIM_SLOTS]; /* the newest generation that had a worker */

	struct sim_scope scopes[SIM_SCOPES];
	struct sim_conn conns[SIM_CONNS];
	uint64_t cookies;
	struct sim_request requests[SIM_REQS];
	uint64_t last_req;
	uint32_t waiting;	   /* acquires without an answer */
	bool departed[SIM_SCOPES]; /* users of whom one left a queue unserved */
	uint32_t held;		   /* leases */
	uint64_t leases[SIM_REQS]; /* requests with a lease that is held or in doubt */
	uint32_t lease_count;

	struct sim_shadow shadow[SIM_SLOTS];
	bool is_reset; /* the event that happens is one: it gives no skip right */
	bool is_adoption;

	struct sim_trace trace[SIM_TRACE];
	uint64_t traced;
	bool verbose;

	uint64_t steps; /* events that the pool was told of, each with all its checks */
	uint64_t crashes;
};

/* ---- random numbers ---- */

static inline uint64_t sim_draw(struct sim *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/* 0 to n - 1 */
static inline uint32_t sim_below(struct sim *s, uint32_t n)
{
	return (uint32_t)((sim_draw(s) >> 32) * n >> 32);
}

static inline bool sim_chance(struct sim *s, uint32_t percent)
{
	return sim_below(s, 100) < percent;
}

static inline bool sim_rarely(struct sim *s, uint32_t permille)
{
	return sim_below(s, 1000) < permille;
}

/* ---- trace.c ---- */

void sim_note(struct sim *s, const char *what, uint32_t slot, uint64_t generation, uint64_t req,
    const char *text);
void sim_note_transition(struct sim *s, const struct pool_action *a);
void sim_violation(struct sim *s, const char *file, int line, const char *rule, const char *cond)
    __attribute__((noreturn));
void sim_print_end(const struct sim *s, const char *what);

/* `rule` says what must hold. */
#define SIM_CHECK(s, cond, rule) \
	((cond) ? (void)0 : sim_violation((s), __FILE__, __LINE__, (rule), #cond))

/* ---- workers.c ---- */

struct sim_proc *sim_proc_spawn(struct sim *s, uint32_t slot, uint64_t generation);
bool sim_proc_step(struct sim *s, struct sim_proc *p);
void sim_proc_end(struct sim *s, struct sim_proc *p, const char *how);
void sim_proc_send(struct sim *s, struct sim_proc *p, enum pool_action_kind order);
void sim_lock_drop(struct sim *s, uint32_t slot, uint32_t who);
uint32_t sim_proc_number(const struct sim *s, const struct sim_proc *p);
struct sim_proc *sim_proc_of(struct sim *s, uint32_t slot);
bool sim_slot_recover(struct sim *s, uint32_t slot);

/* ---- table.c ---- */

void sim_publish(struct sim *s, const struct pool_box *b);
bool sim_table_shows(const struct sim *s, uint32_t slot, uint64_t generation, uint64_t lease);
struct sim_proc *sim_table_worker(struct sim *s, uint32_t slot);

/* ---- shell.c ---- */

/* One effect of the supervisor is about to happen; false: it crashed before. */
bool sim_effect(struct sim *s);
void sim_settle(struct sim *s);
/* What has changed, out of turn; false: it crashed before all was done. */
bool sim_publish_changed(struct sim *s);
void sim_tick(struct sim *s);
void sim_hear(struct sim *s, struct sim_proc *p);
void sim_reap(struct sim *s, struct sim_proc *p);
void sim_image_ready(struct sim *s, uint32_t slot, bool ok);
void sim_cleaned(struct sim *s, uint32_t slot, bool ok);

/* ---- successor.c ---- */

void sim_sbxd_dies(struct sim *s, const char *how);
void sim_sbxd_starts(struct sim *s);
void sim_drop_tied(struct sim *s);
void sim_hello_overdue(struct sim *s);

/* ---- clients.c ---- */

/* Events: each draws what it needs; false: it could not happen. */
bool sim_client_acquire(struct sim *s);
bool sim_client_leave(struct sim *s);
bool sim_client_close(struct sim *s);
bool sim_client_hand_over(struct sim *s);
bool sim_client_release(struct sim *s);
bool sim_client_remove(struct sim *s);
bool sim_client_reset(struct sim *s);
struct sim_conn *sim_idle_conn(struct sim *s, uid_t uid);
/* A plain acquire; a lease given back. */
bool sim_client_ask(struct sim *s, uint32_t scope);
void sim_client_give_back(struct sim *s);
void sim_conn_dies(struct sim *s, struct sim_conn *c, bool told);

/* ---- made.c ---- */

bool sim_client_make(struct sim *s);
bool sim_client_order(struct sim *s);
bool sim_client_use(struct sim *s);
bool sim_client_unmake(struct sim *s);
/* The made box of a request is removed, and nobody waits for that. */
void sim_unmake(struct sim *s, struct sim_request *r);
bool sim_is_made(const struct sim_request *r);
void sim_obeyed(struct sim *s, const struct pool_action *a);
/* An order was given up: nobody knows whether it was obeyed. */
void sim_order_lost(struct sim *s, const struct sim_request *r);
void sim_stopped(struct sim *s, struct sim_proc *p, bool ok);
void sim_check_made(struct sim *s, const struct pool_box *b);
void sim_check_promise(struct sim *s);
bool sim_may_refuse_made(struct sim *s, const struct sim_request *r, enum api_error error);

/* ---- ledger.c ---- */

struct sim_request *sim_request_new(struct sim *s, struct sim_conn *c, uint32_t scope);
uint64_t sim_request_number(const struct sim *s, const struct sim_request *r);
void sim_request_answered(struct sim *s, struct sim_request *r, enum sim_answer answer);
void sim_granted(struct sim *s, const struct pool_action *a);
void sim_refused(struct sim *s, const struct pool_action *a);
void sim_removed(struct sim *s, const struct pool_action *a);
void sim_lease_doubt(struct sim *s, struct sim_request *r);
void sim_leases_of_box_end(struct sim *s, uint32_t slot, uint64_t generation);
void sim_leases_after_restart(struct sim *s);
void sim_doubts_end(struct sim *s);
void sim_boot_lost(struct sim *s, uint32_t slot);
bool sim_scope_is_wanted(const struct sim *s, uid_t uid, const char *token);

/* ---- actors.c ---- */

bool sim_act_worker(struct sim *s);
bool sim_act_hear(struct sim *s);
bool sim_act_fate(struct sim *s);
bool sim_act_janitor(struct sim *s);
bool sim_act_work(struct sim *s);
bool sim_act_noise(struct sim *s);
bool sim_act_pass(struct sim *s);
bool sim_heed(struct sim *s, struct sim_proc *p);
bool sim_answer_image(struct sim *s, uint32_t slot, bool ok);
bool sim_answer_clean(struct sim *s, uint32_t slot, bool ok);
uint64_t sim_next_due(const struct sim *s);
void sim_on_time(struct sim *s);
void sim_pass(struct sim *s, uint64_t end);

/* ---- shadow.c ---- */

void sim_shadow_action(struct sim *s, const struct pool_action *a);
void sim_shadow_granted(struct sim *s, const struct pool_action *a, const struct sim_request *r);
void sim_shadow_restart(struct sim *s, uint32_t slot, bool has_worker);
uint32_t sim_counted(const struct sim *s);
uint32_t sim_cap(const struct sim *s);
uint32_t sim_shadow_count(const struct sim *s, uint32_t state);
bool sim_shadow_evictable(const struct sim *s);
void sim_excuse(struct sim *s, uint32_t excuse);

/* ---- check.c ---- */

void sim_check(struct sim *s);
void sim_check_end(struct sim *s);
void sim_check_silence(struct sim *s, uint64_t deadline);

/* ---- world.c, schedule.c ---- */

void sim_world_begin(struct sim *s, uint64_t seed);
struct pool_rules sim_draw_rules(struct sim *s, uint32_t slots);
void sim_run_seed(struct sim *s, uint64_t seed, bool verbose);

#endif
