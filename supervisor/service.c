/*
 * service: puts sbxd together and takes it apart: table, pool, janitor, socket. Dying here at any
 * point leaves what the next start finds by the segment and by name.
 */
#include "supervisor/service.h"

#include <bsd/string.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "shm/slot.h"
#include "supervisor/api_acquire.h"
#include "supervisor/client.h"
#include "supervisor/driver_start.h"
#include "supervisor/idempotency.h"
#include "supervisor/image_job.h"
#include "supervisor/image_wait.h"
#include "supervisor/images.h"
#include "supervisor/janitor_link.h"
#include "supervisor/lifecycle.h"
#include "supervisor/listen.h"
#include "supervisor/making.h"
#include "supervisor/notify.h"
#include "supervisor/programs.h"
#include "supervisor/reconcile.h"
#include "supervisor/record.h"
#include "supervisor/sbxd.h"
#include "supervisor/template_build.h"
#include "supervisor/worker_link.h"

#define OWN_FDS 128	  /* descriptors kept for everything but clients and workers */
#define OPTIONS_MAX 16384 /* for drivers: fits the tail of a control message */
#define CLIENTS_MIN 64
#define CLIENTS_MAX 65536

static uint32_t gauge_in_flight(void *ctx, uint32_t slot)
{
	const struct sbxd *s = ctx;

	return atomic_load_explicit(&s->seg.slots[slot].page.in_flight, memory_order_relaxed);
}

static uint64_t gauge_activity(void *ctx, uint32_t slot)
{
	const struct sbxd *s = ctx;
	struct slot_work work;

	if (slot_read_work(&s->seg.slots[slot].page, &work) < 0 ||
	    work.generation != s->parts[slot].generation)
		return 0;
	/* A time to come would keep the box for ever: it is the worker's word. */
	return work.activity_ns < loop_now(s->loop) ? work.activity_ns : loop_now(s->loop);
}

/* Takes as many descriptors as we may have; *clients is how many connections they leave room for.
 */
static int claim_descriptors(struct sbxd *s, struct err *err)
{
	struct rlimit lim;
	rlim_t need = OWN_FDS + 2UL * s->seg.slot_count; /* two for each worker */

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return err_sys(err, errno, "getrlimit");
	lim.rlim_cur = lim.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &lim); /* up to the hard limit is always allowed */
	if (lim.rlim_cur < need + CLIENTS_MIN)
		return err_set(err, EMFILE,
		    "RLIMIT_NOFILE %llu is too low for max_boxes %u: raise it (LimitNOFILE=) to "
		    "%llu",
		    (unsigned long long)lim.rlim_cur, s->seg.slot_count,
		    (unsigned long long)need + CLIENTS_MIN);
	s->clients_max =
	    lim.rlim_cur - need > CLIENTS_MAX ? CLIENTS_MAX : (uint32_t)(lim.rlim_cur - need);
	if (s->config.limits.connections > s->clients_max)
		return err_set(err, EMFILE,
		    "limits.connections: %u, but RLIMIT_NOFILE %llu has room for %u besides "
		    "max_boxes %u",
		    s->config.limits.connections, (unsigned long long)lim.rlim_cur, s->clients_max,
		    s->seg.slot_count);
	if (s->config.limits.connections)
		s->clients_max = s->config.limits.connections;
	return 0;
}

static int find_admin_group(struct sbxd *s, struct err *err)
{
	const struct group *g;

	s->admin_gid = (gid_t)-1;
	if (s->config.admin_group[0] == '\0')
		return 0;
	g = getgrnam(s->config.admin_group);
	if (!g)
		return err_set(
		    err, ENOENT, "admin_group: there is no group '%s'", s->config.admin_group);
	s->admin_gid = g->gr_gid;
	return 0;
}

static int open_table(struct sbxd *s, struct err *err)
{
	int rc = reconcile_table(s, err);

	if (rc < 0)
		return rc;
	s->parts = calloc(s->seg.slot_count, sizeof(struct slot_sup));
	s->workers = calloc(s->seg.slot_count, sizeof(struct worker *));
	if (!s->parts || !s->workers)
		return err_set(err, ENOMEM, "no memory for %u slots", s->seg.slot_count);
	record_self(s, EVENT_SUPERVISOR_START, SBX_VERSION);
	return 0;
}

static int make_pool(struct sbxd *s, struct err *err)
{
	const struct pool_gauge gauge = {
	    .in_flight = gauge_in_flight, .activity_ns = gauge_activity, .ctx = s};
	struct pool_rules rules;

	if (sbxd_fill_spec(s) < 0)
		return err_set(err, EIO, "SHA-256 is not to be had");
	sbxd_fill_rules(s, &rules);
	s->pool = pool_create(&rules, &gauge, atomic_load(&s->seg.header->next_generation) - 1);
	s->clients = clients_create(s, s->clients_max);
	s->idempotency = idempotency_create();
	s->image_jobs = image_jobs_create();
	if (!s->pool || !s->clients || !s->idempotency || !s->image_jobs)
		return err_set(err, ENOMEM, "no memory for the pool");
	return 0;
}

static int start(struct sbxd *s, struct err *err)
{
	int rc = find_admin_group(s, err);

	if (rc == 0 && s->config.listen_tcp.set)
		rc = auth_load(s->config.token_file, s->uid, &s->auth, err);
	if (rc == 0)
		rc = lifecycle_watch_signals(s, err);
	if (rc == 0)
		rc = open_table(s, err);
	if (rc == 0)
		rc = claim_descriptors(s, err);
	if (rc == 0)
		rc = make_pool(s, err);
	if (rc == 0)
		rc = driver_begin(s, err);
	if (rc == 0 && (s->shutting_down || s->leaving)) {
		lifecycle_beat(s->loop, &s->heartbeat);
		return 0; /* told to end meanwhile: nobody is served any more */
	}
	if (rc == 0)
		rc = listen_open(s, err);
	if (rc < 0)
		return rc;
	lifecycle_beat(s->loop, &s->heartbeat);
	lifecycle_watchdog(s);
	atomic_store_explicit(
	    &s->seg.header->supervisor_state, SUPERVISOR_SERVING, memory_order_relaxed);
	log_info("serving on %s: driver %s (%s), replicas %u, slots %u", s->socket_path, s->driver,
	    s->isolation, s->config.replicas, s->seg.slot_count);
	notify_send(&s->notify, "READY=1");
	return 0;
}

static void stop(struct sbxd *s)
{
	listen_close(s);
	fd_close(&s->listening);
	clients_destroy(s->clients);
	makings_free(s);
	idempotency_free(s->idempotency);
	if (s->workers)
		workers_forget_all(s);
	janitor_stop(s);
	image_waits_free(s);
	image_jobs_free(s);
	template_builds_free(s);
	images_free(s);
	if (s->seg.header) {
		bool left = segment_in_use(&s->seg);

		record_self(s, EVENT_SUPERVISOR_STOP,
		    s->leaving ? "boxes left to a successor"
		    : left     ? "with boxes left"
			       : "clean");
		segment_close(&s->seg);
		if (!left) /* else it stays, for shm dump and the next start */
			(void)segment_unlink(s->segment_name);
	}
	pool_destroy(s->pool);
	free(s->parts);
	free(s->workers);
	fd_close(&s->guest_fd);
	fd_close(&s->helper_fd);
	loop_del(s->loop, &s->signal_watch);
	fd_close(&s->signal_fd);
	loop_destroy(s->loop);
	buf_free(&s->options);
	config_free(&s->config);
}

int service_run(const struct options *o, const struct paths *paths,
    const struct config_sources *sources, struct config *config, int listening)
{
	struct sbxd s = {
	    .config = *config,
	    .config_sources = sources,
	    .uid = geteuid(),
	    .guest_fd = -1,
	    .helper_fd = -1,
	    .unix_listener = LISTENER_NONE,
	    .listening = listening,
	    .tcp_listener = LISTENER_NONE,
	    .signal_fd = -1,
	    .signal_watch.fd = -1,
	};
	struct err err = {0};
	int rc;

	TAILQ_INIT(&s.images);
	buf_init(&s.options, OPTIONS_MAX);
	notify_open(&s.notify);
	(void)strlcpy(s.instance, o->instance, sizeof(s.instance));
	(void)strlcpy(s.runtime_dir, paths->runtime_dir, sizeof(s.runtime_dir));
	(void)strlcpy(s.state_dir, paths->state_dir, sizeof(s.state_dir));
	(void)strlcpy(s.socket_path, paths->socket, sizeof(s.socket_path));
	(void)strlcpy(s.segment_name, paths->shm_name, sizeof(s.segment_name));
	/* Workers and the janitor inherit it, and log as we do. */
	(void)setenv("SBX_LOG_FORMAT", o->log_format == LOG_JSON ? "json" : "text", 1);
	s.loop = loop_create();
	if (!s.loop) {
		log_error("epoll: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	rc = start(&s, &err);
	if (rc < 0)
		driver_abandon(&s);
	else if (!s.over)
		rc = loop_run(s.loop);
	if (rc < 0 && !s.shutting_down && !s.leaving) {
		log_error("%s", err.code ? err.text : strerror(-rc));
		notify_status(&s.notify, "%s", err.code ? err.text : strerror(-rc));
		s.exit_status = EXIT_FAILURE;
	}
	stop(&s);
	notify_close(&s.notify);
	return s.exit_status;
}
