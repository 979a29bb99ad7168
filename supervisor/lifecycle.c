/*
 * lifecycle: shutting down, signals, reload, heartbeat. Runs in sbxd.
 */
#include "supervisor/lifecycle.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "supervisor/client.h"
#include "supervisor/image_job.h"
#include "supervisor/image_wait.h"
#include "supervisor/janitor_link.h"
#include "supervisor/notify.h"
#include "supervisor/reconcile.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_link.h"

#define HEARTBEAT (1 * NS_PER_S)
#define WATCHDOG_MIN NS_PER_MS /* however little is asked for, the loop does not spin */

/* ---- the end ---- */

static void finish_loop(struct sbxd *s)
{
	s->over = true;
	loop_quit(s->loop);
}

void sbxd_shutdown(struct sbxd *s, const char *why)
{
	log_info("shutting down: %s", why);
	s->shutting_down = true;
	atomic_store_explicit(
	    &s->seg.header->supervisor_state, SUPERVISOR_SHUTTING_DOWN, memory_order_relaxed);
	notify_send(&s->notify, "STOPPING=1");
	pool_shutdown(s->pool, loop_now(s->loop));
	image_jobs_cancel(s);
	image_waits_end(s);
}

void sbxd_leave(struct sbxd *s)
{
	if (s->shutting_down || s->leaving)
		return;
	log_info("leaving %u boxes to the next supervisor",
	    s->seg.slot_count - pool_count(s->pool, SLOT_FREE));
	s->leaving = true;
	notify_send(&s->notify, "STOPPING=1");
	pool_leave(s->pool, loop_now(s->loop));
	image_jobs_cancel(s);
	image_waits_end(s);
	sbxd_settle(s);
	finish_loop(s);
}

static void on_finished(
    struct sbxd *s, void *ctx, const struct ctl_done *done, struct janitor_more *more)
{
	struct client *c = client_by_req(s->clients, s->shutdown_req);
	struct buf out;

	(void)ctx;
	(void)more;
	if (done->code) {
		log_error("clean up after driver %s: %s", s->driver, done->text);
		s->exit_status = EXIT_FAILURE;
	}
	if (c) {
		buf_init(&out, 64);
		if (buf_puts(&out, "{\"status\":\"closed\"}") == 0)
			client_reply_json(c, 200, &out);
		buf_free(&out);
	}
	finish_loop(s);
}

void sbxd_finish(struct sbxd *s)
{
	struct ctl_prepare order = {0};

	if (pool_count(s->pool, SLOT_QUARANTINED) > 0)
		s->exit_status =
		    EXIT_FAILURE; /* something could not be cleaned up, and the log says what */
	sbxd_fill_site(s, &order.site);
	if (janitor_order(s, &(struct janitor_order){
				 .type = CTL_FINISH,
				 .body = &order,
				 .len = sizeof(order),
				 .fd = -1,
				 .fn = on_finished,
			     }) < 0)
		finish_loop(s);
}

/* ---- signals and the heartbeat ---- */

static void on_config_change(void *ctx, const char *key, bool applied)
{
	(void)ctx;
	log_info("configuration: %s %s", key, applied ? "changed" : "differs, but needs a restart");
}

/* The token is read again also when nothing else has changed: that is how it is replaced. */
static void reload_token(struct sbxd *s)
{
	struct err err = {0};

	if (!s->config.listen_tcp.set)
		return;
	if (auth_load(s->config.token_file, s->uid, &s->auth, &err) < 0)
		log_error("the token stays as it was: %s", err.text);
	else
		log_info("token read again: who has it is uid %u", (unsigned int)s->auth.uid);
}

/* Reads again from the same places. */
static void reload(struct sbxd *s)
{
	struct config fresh;
	struct pool_rules rules;
	struct err err = {0};

	if (config_load(s->config_sources, &fresh, &err) < 0) {
		log_error("configuration not reloaded: %s", err.text);
		return;
	}
	if (config_reload(&s->config, &fresh, on_config_change, NULL, &err) == 0) {
		if (sbxd_fill_spec(s) < 0)
			log_error("SHA-256 is not to be had: boxes stay as they were");
		sbxd_fill_rules(s, &rules);
		pool_set_rules(s->pool, &rules, loop_now(s->loop));
	} else {
		log_error("configuration not reloaded: %s", err.text);
	}
	config_free(&fresh);
}

/* Before it serves there is nothing to be told: it is not ready yet. */
static void reload_all(struct sbxd *s)
{
	bool serving = s->unix_listener.fd >= 0 && !s->shutting_down;

	if (serving) /* the time of now: the manager compares it with that of its request */
		notify_reloading(&s->notify, clock_now_ns());
	reload(s);
	reload_token(s);
	if (serving)
		notify_send(&s->notify, "READY=1");
}

static void on_signal(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct sbxd *s = LOOP_OWNER(w, struct sbxd, signal_watch);
	struct signalfd_siginfo info;

	(void)l;
	(void)events;
	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			reload_all(s);
		} else if (info.ssi_signo == SIGUSR2) {
			sbxd_leave(s);
		} else {
			sbxd_shutdown(s, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
		}
	}
	sbxd_settle(s);
}

static void tell_status(struct sbxd *s)
{
	uint32_t in_use = pool_count(s->pool, SLOT_ACTIVE) + pool_count(s->pool, SLOT_CHECKING);

	if (s->shutting_down)
		notify_status(&s->notify, "closing %u boxes",
		    s->seg.slot_count - pool_count(s->pool, SLOT_FREE));
	else
		notify_status(&s->notify, "boxes: %u in use, %u warm, %u in stock", in_use,
		    pool_count(s->pool, SLOT_WARM), pool_count(s->pool, SLOT_STOCK));
}

void lifecycle_beat(struct loop *l, struct loop_timer *t)
{
	struct sbxd *s = LOOP_OWNER(t, struct sbxd, heartbeat);

	atomic_store_explicit(&s->seg.header->heartbeat_ns, loop_now(l), memory_order_relaxed);
	for (uint32_t i = 0; i < pool_rules(s->pool)->slots; i++) {
		if (s->workers[i])
			worker_pulse(s->workers[i]);
	}
	if (loop_now(l) < s->strays_until)
		reconcile_strays(s);
	sbxd_settle(s);
	notify_retry(&s->notify);
	tell_status(s);
	INVARIANT(loop_timer_set(l, t, loop_now(l) + HEARTBEAT, lifecycle_beat) == 0);
}

static void on_watchdog(struct loop *l, struct loop_timer *t)
{
	struct sbxd *s = LOOP_OWNER(t, struct sbxd, watchdog);

	(void)notify_try(&s->notify, "WATCHDOG=1"); /* one that is lost: the next comes in time */
	lifecycle_watchdog(s);
	(void)l;
}

/* A third, so that one may get lost. */
void lifecycle_watchdog(struct sbxd *s)
{
	if (s->notify.watchdog_ns == 0)
		return;
	INVARIANT(
	    loop_timer_set(s->loop, &s->watchdog,
		loop_now(s->loop) + s->notify.watchdog_ns / 3 + WATCHDOG_MIN, on_watchdog) == 0);
}

int lifecycle_watch_signals(struct sbxd *s, struct err *err)
{
	sigset_t set;
	int rc;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGUSR2);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &set, NULL); /* cannot fail with these arguments */
	(void)sigdelset(&set, SIGPIPE);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return err_sys(err, errno, "signalfd");
	rc = loop_add(s->loop, &s->signal_watch, s->signal_fd, EPOLLIN, on_signal);
	return rc < 0 ? err_sys(err, -rc, "watch signals") : 0;
}
