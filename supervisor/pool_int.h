/* pool_int: what the files of the pool share among themselves. */
#ifndef SBXD_SUPERVISOR_POOL_INT_H
#define SBXD_SUPERVISOR_POOL_INT_H

#include <bsd/sys/tree.h>

#include "supervisor/pool.h"

#define POOL_BOOT_TRIES 3	       /* boots that may crash before a waiting acquire is told */
#define POOL_KILL_WAIT (10 * NS_PER_S) /* from SIGKILL to the worker's end */
/* Its order may wait behind many others; whoever passes it on answers each within bounds of his
 * own. */
#define POOL_CLEAN_WAIT (3600 * NS_PER_S)
/* For an image that is prepared while a box of it boots. */
#define POOL_IMAGE_WAIT (120 * NS_PER_S)
#define POOL_FAILED_GRACE (2 * NS_PER_S)
#define POOL_CLOSE_SLACK NS_PER_S /* for the worker's own part, beyond close_grace */
#define POOL_STOP_SLACK                                                                           \
	(20 * NS_PER_S)			/* for the worker to have what is left killed, and say so \
					 */
#define POOL_STOP_AGAIN (30 * NS_PER_S) /* time of a stop that another supervisor began */
#define POOL_LEAVING_TEXT "the service makes way for its successor; try again"
/* How often to look for room that no event tells of: work in a warm box has ended. */
#define POOL_ROOM_LOOK (NS_PER_S / 4)

/* What a moment is about. */
enum pool_due_kind { DUE_BOX, DUE_WAITER, DUE_ROOM, DUE_STOCK };

struct pool_waiter {
	TAILQ_ENTRY(pool_waiter) link;	   /* of its scope, first come first served */
	TAILQ_ENTRY(pool_waiter) all_link; /* of the pool, by arrival */
	LIST_ENTRY(pool_waiter) req_link;
	struct pool_scope *scope;
	struct pool_request r; /* its texts are NULL; see those below */
	char user[SHM_USER_LEN];
	char thread[SHM_USER_LEN];
	uint64_t since;
	uint64_t deadline;
	struct pool_due due;
	uint64_t arrival;    /* its number among all that ever came */
	uint32_t boots_lost; /* boots that crashed while it waited */

	/* In the queue for room: the first of a scope that has no box. */
	struct pool_user
	    *turn; /* whose part it takes in the rounds; NULL: it is not in the queue */
	TAILQ_ENTRY(pool_waiter) user_link;
	RB_ENTRY(pool_waiter) room_link;
	uint64_t round;
};
TAILQ_HEAD(pool_waiters, pool_waiter);
LIST_HEAD(pool_waiter_list, pool_waiter);
RB_HEAD(pool_room_queue, pool_waiter);

LIST_HEAD(pool_user_list, pool_user);
LIST_HEAD(pool_tied, pool_lease);

/* What the heap of moments holds. */
struct pool_moment {
	uint64_t at; /* that of `due`, close at hand */
	struct pool_due *due;
};

/* One (uid, token). Exists while it has a box or somebody waits for it. */
struct pool_scope {
	LIST_ENTRY(pool_scope) hash_link;
	uid_t uid;
	char token[SHM_TOKEN_LEN];
	uint8_t identity[32];
	struct pool_waiters waiters;
	uint32_t waiter_count;
	struct pool_box *box;
	LIST_ENTRY(pool_scope) name_link;
	char name[SHM_BOX_NAME_LEN]; /* by which it is found, "": by none */
};
LIST_HEAD(pool_scope_list, pool_scope);

struct pool {
	struct pool_rules rules;
	struct pool_gauge gauge;
	uint64_t generation; /* the last one given */
	struct pool_box *boxes;
	uint32_t *free_slots; /* a stack, lowest slot on top at first */
	uint32_t free_count;
	uint32_t state_count[SLOT_STATES];

	uint32_t hash_mask; /* of the tables that follow */
	struct pool_scope_list *scopes;
	struct pool_scope_list *names; /* those of made boxes, by name */
	struct pool_box_list *generations;
	struct pool_tied *tied;	       /* leases, by cookie */
	struct pool_waiter_list *reqs; /* waiters, by request */
	struct pool_user_list *users;  /* those who take part in the rounds of the queue for room */

	struct pool_boxes warm;	      /* oldest first */
	struct pool_boxes boot_queue; /* reserved, waiting for a boot permit */
	uint32_t booting;

	struct pool_boxes stock; /* booting or up; of those that are up, the oldest first */
	uint32_t stock_boots;	 /* how many of them boot */
	uint64_t stock_pause;	 /* ns after the last failure; 0: the last one came up */
	uint64_t stock_after;	 /* none is booted before that */
	struct pool_due stock_due;

	struct pool_waiters waiters;
	uint32_t waiter_count;
	uint64_t arrivals; /* waiters so far */

	struct pool_room_queue room;
	uint64_t round; /* the one in which room was given last; the next is still open */

	TAILQ_HEAD(pool_actions, pool_action) actions;
	struct pool_actions spare; /* actions to be used again: there is always a next one */
	struct pool_boxes dirty;

	struct pool_moment *heap; /* from 1; the earliest first */
	uint32_t heap_count;
	uint32_t heap_size;
	struct pool_due room_due;

	struct pool_past *past; /* boxes that are gone */
	uint64_t cause;		/* the request that brings about what is recorded now, 0 none */
	bool shutting_down;
	bool drained;
	bool leaving;
};

/* pool.c */
struct pool_action *pool_act(struct pool *p, enum pool_action_kind kind, const struct pool_box *b);
void pool_tell(struct pool *p, enum pool_action_kind kind, const struct pool_box *b);
uint64_t pool_blame(struct pool *p, uint64_t req);
uint64_t pool_blame_awaited(struct pool *p, const struct pool_box *b);
void pool_record(
    struct pool *p, uint32_t event, const struct pool_box *b, int32_t code, const char *text);
void pool_enter(struct pool *p, struct pool_box *b, uint32_t state);
void pool_move(
    struct pool *p, uint64_t now, struct pool_box *b, enum slot_state to, const char *why);
void pool_touch(struct pool *p, struct pool_box *b);

/* pool_slot.c */
void pool_name_box(struct pool *p, struct pool_box *b, uint64_t generation);
void pool_rename_box(struct pool *p, struct pool_box *b);
struct pool_box *pool_box_current(struct pool *p, uint32_t slot, uint64_t gen);
struct pool_box *pool_slot_take(struct pool *p);
void pool_slot_give(struct pool *p, uint64_t now, struct pool_box *b);

/* pool_past.c */
struct pool_past *pool_past_create(void); /* to be free()d */
bool pool_past_has(const struct pool *p, uid_t uid, const char *token);

/* pool_scope.c */
uint32_t pool_hash(uid_t uid, const char *text);
struct pool_scope *pool_scope_get(const struct pool *p, uid_t uid, const char *token);
struct pool_scope *pool_scope_make(
    struct pool *p, uid_t uid, const char *token, const uint8_t identity[32]);
void pool_scope_drop_if_empty(struct pool_scope *s);
struct pool_scope *pool_scope_named(const struct pool *p, uid_t uid, const char *name);
void pool_scope_name(struct pool *p, struct pool_scope *s, const char *name);
void pool_scope_unname(struct pool_scope *s);

/* pool_due.c */
void pool_expect(struct pool *p, struct pool_due *d, uint64_t at);
void pool_unexpect(struct pool *p, struct pool_due *d);
struct pool_due *pool_due_take(struct pool *p, uint64_t now);
void pool_limit(struct pool *p, struct pool_box *b, uint64_t deadline);

/* pool_timers.c */
void pool_look_at_all(struct pool *p, uint64_t now);

/* pool_queue.c */
struct pool_waiter *pool_waiter_make(
    struct pool *p, uint64_t now, struct pool_scope *s, const struct pool_request *r);
void pool_waiter_free(struct pool *p, struct pool_waiter *w);
struct pool_waiter *pool_waiter_by_req(const struct pool *p, uint64_t req);
void pool_room_queue(struct pool *p, struct pool_waiter *w);
void pool_room_served(struct pool *p, struct pool_waiter *w);
struct pool_waiter *pool_room_first(const struct pool *p);

/* pool_acquire.c */
void pool_refuse(
    struct pool *p, uint64_t req, enum api_error error, double retry_after, const char *text);
void pool_scope_advance(struct pool *p, uint64_t now, struct pool_scope *s);
void pool_scope_left(struct pool *p, uint64_t now, struct pool_scope *s);
void pool_scope_refuse_all(
    struct pool *p, struct pool_scope *s, enum api_error error, const char *text);
void pool_waiter_refuse(struct pool *p, struct pool_waiter *w, enum api_error error,
    double retry_after, const char *text);
void pool_grant(struct pool *p, uint64_t now, struct pool_waiter *w, struct pool_box *b,
    enum shm_source source);
bool pool_waiter_fits(const struct pool_waiter *w, const struct pool_box *b);

/* pool_made.c */
bool pool_is_order(const struct pool_waiter *w);
bool pool_is_made(const struct pool_box *b);
bool pool_may_keep_name(const struct pool_scope *s);
bool pool_order_advance(struct pool *p, uint64_t now, struct pool_scope *s, struct pool_waiter *w);
void pool_orders_lost(struct pool *p, struct pool_box *b, const char *why);
void pool_stop_again(struct pool *p, uint64_t now, struct pool_box *b);

/* pool_save.c */
bool pool_is_saved(const struct pool_box *b);
bool pool_may_save(const struct pool *p, const struct pool_box *b);
bool pool_is_still_saved(const struct pool *p, const struct pool_box *b);
void pool_save_unheard(const struct pool *p, struct pool_box *b);
void pool_save(struct pool *p, uint64_t now, struct pool_box *b);
void pool_kill_and_save(struct pool *p, uint64_t now, struct pool_box *b, const char *why);
void pool_saved(struct pool *p, uint64_t now, struct pool_box *b);
void pool_not_saved(struct pool *p, uint64_t now, struct pool_box *b, const char *text);

/* pool_lease.c */
struct pool_lease *pool_lease_give(
    struct pool *p, struct pool_box *b, uint64_t id, uint64_t cookie, uint64_t expires);
void pool_lease_put(struct pool_lease *l, uint16_t place);
void pool_lease_free(struct pool_lease *l);
void pool_lease_end(struct pool *p, struct pool_lease *l, const char *why);
void pool_drop_leases(struct pool *p, struct pool_box *b, const char *why);

/* pool_release.c */
void pool_settle(
    struct pool *p, uint64_t now, struct pool_box *b, bool skip_right, const char *why);
uint32_t pool_settle_all(struct pool *p, uint64_t now, bool skip_right, const char *why);
void pool_refuse_everybody(struct pool *p, const char *text);

/* pool_room.c */
bool pool_room_is_there(const struct pool *p);
bool pool_room_reserve(struct pool *p, uint64_t now, struct pool_waiter *w);
void pool_room_freed(struct pool *p, uint64_t now);
void pool_boot(struct pool *p, uint64_t now, struct pool_box *b);
void pool_boot_next(struct pool *p, uint64_t now);

/* pool_stock.c */
uint32_t pool_stock_count(const struct pool *p);
bool pool_is_stock(const struct pool_box *b);
void pool_stock_want(struct pool *p, uint64_t now);
void pool_stock_fill(struct pool *p, uint64_t now);
void pool_stock_trim(struct pool *p, uint64_t now);
void pool_stock_booted(struct pool *p, uint64_t now, struct pool_box *b);
void pool_stock_lost(struct pool *p, uint64_t now);
struct pool_box *pool_stock_first(const struct pool *p, const struct pool_waiter *w);
struct pool_box *pool_stock_spare(const struct pool *p);

/* pool_life.c */
void pool_park(struct pool *p, uint64_t now, struct pool_box *b, bool skip_right, const char *why);
void pool_close_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why);
void pool_evict_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why);
void pool_kill_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why);
void pool_closes_itself(struct pool *p, uint64_t now, struct pool_box *b, const char *why);
void pool_quarantine(struct pool *p, uint64_t now, struct pool_box *b, const char *why);

#endif
