/*
 * sbxd: what the files of the supervisor share: the one struct that holds the process together.
 *
 * Control flow: an event (client bytes, worker message, pidfd, timer, signal) becomes one call into
 * the pool; then sbxd_settle() performs the actions that came out of it and publishes what changed.
 * Nothing here waits.
 */
#ifndef SBXD_SUPERVISOR_SBXD_H
#define SBXD_SUPERVISOR_SBXD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/loop.h"
#include "shm/segment.h"
#include "supervisor/auth.h"
#include "supervisor/config.h"
#include "supervisor/listen.h"
#include "supervisor/notify.h"
#include "supervisor/pool.h"
#include "wire/control.h"

struct client;
struct event_stream;
struct clients;
struct idempotency;
struct image;
struct image_jobs;
struct image_wait_entry;
struct janitor;
struct making;
struct template_making;
struct worker;

struct sbxd {
	struct loop *loop;
	struct config config;
	const struct config_sources *config_sources; /* for reloading; main()'s */
	char instance[32];
	char runtime_dir[CTL_PATH];
	char state_dir[CTL_PATH];
	char socket_path[CTL_PATH];
	char segment_name[64];
	char isolation[16];
	bool pauses;	    /* the driver wants to know when a box is parked and promoted */
	char driver[16];    /* the one in use; `auto` until an image was prepared */
	struct buf options; /* what drivers are told: struct driver_options. Holds secrets */
	uid_t uid;	    /* our own */
	gid_t admin_gid;    /* (gid_t)-1: none */
	struct auth auth;   /* of TCP clients */

	struct segment seg;
	struct slot_sup
	    *parts; /* what is published, one per slot: the mirror that repair restores from */
	struct pool *pool;
	struct digest_stock random; /* for ids */
	struct pool_spec spec;	    /* the default one, its digest worked out once */
	struct worker **workers;    /* one per slot, NULL without */
	struct janitor *janitor;
	struct clients *clients;
	uint32_t clients_max;
	LIST_HEAD(, event_stream) event_streams; /* those that follow */
	uint64_t events_pumped;			 /* the newest record they have been told of */

	LIST_HEAD(, making) makings; /* boxes on their way into being */
	uint64_t makings_begun;
	struct idempotency *idempotency;

	TAILQ_HEAD(image_list, image) images; /* the one that was needed last first */
	uint32_t image_count;
	struct image_jobs *image_jobs;
	LIST_HEAD(, image_wait_entry) image_waits; /* who waits for an image to be there */
	LIST_HEAD(, template_making) template_builds;
	int guest_fd;  /* the sbx-guest binary */
	int helper_fd; /* the sbx-files binary, a copy that nobody can change */
	char worker_path[CTL_PATH];

	int listening; /* the Unix socket that a service manager has opened; -1: none, we do */
	struct listener unix_listener;
	struct listener tcp_listener;
	int signal_fd;
	struct loop_watch signal_watch;
	struct loop_timer pool_timer;
	struct loop_timer heartbeat;
	struct notify notify; /* the service manager */
	struct loop_timer watchdog;
	uint64_t strays_until; /* the table was made anew: workers in none may still turn up */

	uint32_t adopting; /* workers of the last supervisor that have not said all yet */
	bool settling;
	bool leaving;	    /* the boxes are left to a successor */
	bool over;	    /* nothing more is to be done */
	bool shutting_down; /* asked to end: also while it starts */
	bool drained;
	uint64_t shutdown_req; /* client that waits for the end of the shutdown, 0 none */
	int exit_status;
};

/* Performs all pending actions, publishes what changed, sets the pool's timer. Call after every
 * pool event. */
void sbxd_settle(struct sbxd *s);

/* Begins the orderly end: no new acquires, every box closed, then the loop ends. Idempotent. */
void sbxd_shutdown(struct sbxd *s, const char *why);

/* Ends now and leaves every box, with its leases, to a successor. */
void sbxd_leave(struct sbxd *s);

/* The last box is gone: has the driver's traces removed, then ends the loop. */
void sbxd_finish(struct sbxd *s);

/* Works out s->spec, what a box is made of by default, from the configuration. 0 or -EIO. */
int sbxd_fill_spec(struct sbxd *s);

/* Fills the pool's rules from the configuration. */
void sbxd_fill_rules(const struct sbxd *s, struct pool_rules *out);

/* What a driver needs to know of this service, for control messages. */
void sbxd_fill_site(const struct sbxd *s, struct ctl_site *site);

/* api_events.c: streams go on with what was recorded meanwhile. */
void events_pump(struct sbxd *s);

/* publish.c: writes the table's view of one box; of one box out of turn; of all that changed. What
 * a client is told must stand in the table before: our successor knows only that. */
void publish_box(struct sbxd *s, const struct pool_box *b);
void publish_now(struct sbxd *s, const struct pool_box *b);
void publish_changed(struct sbxd *s);
void publish_count(struct sbxd *s, enum shm_counter counter);
uint64_t publish_counter(const struct sbxd *s, enum shm_counter counter);

#endif
