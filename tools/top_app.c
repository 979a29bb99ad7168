/*
 * top_app: sbxtop on a terminal: the loop around keys, signals and time. Dying here disturbs
 * nobody; the terminal is given back (top_screen.c).
 */
#include "tools/top_app.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "tools/top_screen.h"

#define PULSE (NS_PER_S / 4) /* how soon it is seen that sbxd fares otherwise */

/* What the loop calls back with. */
struct run {
	struct top_app *app;
	struct loop *loop;
	int signal_fd;
	long snapshots;
	struct loop_watch keys;
	struct loop_watch signals;
	struct loop_watch supervisor;
	struct loop_watch act;
	struct loop_timer tick;
	struct loop_timer pulse;
};

void top_app_say(struct top_app *a, bool bad, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(a->message, sizeof(a->message), fmt, ap);
	va_end(ap);
	a->message_bad = bad;
}

void top_app_relist(struct top_app *a)
{
	if (top_rows_update(&a->s.rows, a->s.model) < 0)
		top_app_say(a, true, "no memory for the list");
}

void top_app_reorder(struct top_app *a)
{
	a->set->sort = a->s.rows.sort;
	a->set->descending = a->s.rows.descending;
	a->set->changed = true;
	top_app_relist(a);
}

void top_app_toggle_pause(struct top_app *a)
{
	a->paused = !a->paused;
	a->stale = !a->paused;
}

/* ---- snapshots ---- */

static void on_supervisor_end(struct loop *l, struct loop_watch *w, uint32_t events);

/* Another supervisor has another descriptor; one that has ended would be readable for ever. */
static void watch_supervisor(struct run *r)
{
	const struct top_table *t = &r->app->s.table;

	loop_del(r->loop, &r->supervisor);
	if (t->pidfd >= 0 && r->app->s.model->sum.alive &&
	    loop_add(r->loop, &r->supervisor, t->pidfd, EPOLLIN, on_supervisor_end) < 0)
		top_app_say(r->app, true, "sbxd cannot be watched; its end is seen a little later");
}

static void snapshot(struct run *r)
{
	struct top_app *a = r->app;
	struct err err;

	loop_del(r->loop, &r->supervisor); /* its descriptor may be closed below */
	/* What is wrong with the table stands in the first line; what else can be is memory. */
	if (top_session_refresh(&a->s, &err) == -ENOMEM)
		top_app_say(a, true, "%s", err.text);
	if (a->s.replaying && a->s.model->events.hidden == 0)
		a->paused = true; /* it is at its end */
	watch_supervisor(r);
	a->stale = false;
	r->snapshots++;
	if (a->options->count && r->snapshots >= a->options->count)
		a->quit = true;
}

static void on_tick(struct loop *l, struct loop_timer *t);

static void next_tick(struct run *r)
{
	uint64_t at = loop_now(r->loop) + clock_seconds_to_ns(r->app->s.interval);

	if (loop_timer_set(r->loop, &r->tick, at, on_tick) < 0)
		top_app_say(r->app, true, "no memory for a timer; Space makes snapshots");
}

/* Draws what is so now, after whatever has happened. */
static void settle(struct run *r)
{
	if (r->app->stale) {
		snapshot(r);
		next_tick(r);
	}
	if (r->app->quit)
		loop_quit(r->loop);
	else
		top_view_draw(r->app);
}

static void on_tick(struct loop *l, struct loop_timer *t)
{
	struct run *r = LOOP_OWNER(t, struct run, tick);

	(void)l; /* the run knows its loop */
	if (!r->app->paused)
		snapshot(r);
	next_tick(r);
	settle(r);
}

static void on_pulse(struct loop *l, struct loop_timer *t)
{
	struct run *r = LOOP_OWNER(t, struct run, pulse);
	struct top_app *a = r->app;

	if (!a->paused && !a->s.replaying &&
	    top_table_stirs(&a->s.table, a->s.model, clock_now_ns())) {
		a->stale = true;
		settle(r);
	}
	if (loop_timer_set(l, t, loop_now(l) + PULSE, on_pulse) < 0)
		top_app_say(a, true, "no memory for a timer; what stirs is seen a little later");
}

static void on_supervisor_end(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct run *r = LOOP_OWNER(w, struct run, supervisor);

	(void)events;
	loop_del(l, w);
	r->app->stale = !r->app->paused;
	settle(r);
}

/* ---- keys and signals ---- */

static void on_act_end(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct run *r = LOOP_OWNER(w, struct run, act);
	struct top_app *a = r->app;
	char text[sizeof(a->message)];
	bool done;

	(void)events;
	loop_del(l, w);
	done = top_act_end(&a->act, text, sizeof(text));
	top_app_say(a, !done, "%s", text);
	a->stale = !a->paused;
	settle(r);
}

static void watch_act(struct run *r)
{
	struct top_app *a = r->app;

	if (a->act.fd < 0 || r->act.fd >= 0)
		return;
	if (loop_add(r->loop, &r->act, a->act.fd, EPOLLIN, on_act_end) < 0) {
		top_act_abandon(&a->act);
		top_app_say(a, true, "what comes of it cannot be waited for");
	}
}

static void on_keys(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct run *r = LOOP_OWNER(w, struct run, keys);
	int key;

	(void)l;
	while ((key = top_screen_key()) >= 0 && !r->app->quit)
		top_input_key(r->app, key);
	if (events & (EPOLLHUP | EPOLLERR)) /* the terminal is gone */
		r->app->quit = true;
	watch_act(r);
	settle(r);
}

/* Like any other program that is stopped from the keyboard; goes on from here. Where nobody could
 * continue it, the kernel does not stop it. */
static void stop_self(struct run *r)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	struct sigaction before;
	sigset_t set;

	top_screen_suspend();
	(void)sigemptyset(&set); /* these fail only for numbers that are no signals */
	(void)sigaddset(&set, SIGTSTP);
	(void)sigaction(SIGTSTP, &plain, &before);
	(void)raise(SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* here it is taken */
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigaction(SIGTSTP, &before, NULL);
	top_screen_resume();
	r->app->stale = !r->app->paused;
}

static void on_signals(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct run *r = LOOP_OWNER(w, struct run, signals);
	struct signalfd_siginfo info;

	(void)l;
	(void)events;
	while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			(void)top_screen_resize(); /* all is drawn anew in any case */
		else if (info.ssi_signo == SIGTSTP)
			stop_self(r);
		else if (info.ssi_signo == SIGCONT)
			top_screen_resume();
		else
			r->app->quit = true;
	}
	settle(r);
}

static int catch_signals(struct run *r)
{
	static const int caught[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	sigset_t set;

	(void)sigemptyset(&set); /* these fail only for numbers that are no signals */
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		(void)sigaddset(&set, caught[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? -errno : 0;
}

/* ---- the run ---- */

static int start(struct run *r)
{
	int rc = loop_add(r->loop, &r->keys, STDIN_FILENO, EPOLLIN, on_keys);

	if (rc == 0)
		rc = loop_add(r->loop, &r->signals, r->signal_fd, EPOLLIN, on_signals);
	if (rc == 0)
		rc = loop_timer_set(r->loop, &r->pulse, clock_now_ns() + PULSE, on_pulse);
	if (rc < 0)
		return rc;
	r->snapshots = 1; /* there is one already */
	watch_supervisor(r);
	next_tick(r);
	settle(r);
	return loop_run(r->loop);
}

static void end(struct run *r)
{
	loop_del(r->loop, &r->keys);
	loop_del(r->loop, &r->signals);
	loop_del(r->loop, &r->supervisor);
	loop_del(r->loop, &r->act);
	loop_timer_clear(r->loop, &r->tick);
	loop_timer_clear(r->loop, &r->pulse);
	top_act_abandon(&r->app->act);
}

static bool wants_color(const struct top_options *o)
{
	const char *no = getenv("NO_COLOR");

	return !o->no_color && !(no && *no);
}

int top_app_run(struct top_app *a, struct err *err)
{
	struct run r = {.app = a,
	    .signal_fd = -1,
	    .keys.fd = -1,
	    .signals.fd = -1,
	    .supervisor.fd = -1,
	    .act.fd = -1};
	int rc = catch_signals(&r);

	a->act.fd = -1;
	if (rc < 0)
		return err_sys(err, -rc, "catch signals");
	a->paused = a->s.replaying;
	r.loop = loop_create();
	if (!r.loop) {
		rc = err_sys(err, errno, "event loop");
		fd_close(&r.signal_fd);
		return rc;
	}
	rc = top_screen_open(NULL, stdout, stdin, wants_color(a->options), err);
	if (rc == 0) {
		rc = start(&r);
		end(&r);
		top_screen_close();
		if (rc < 0)
			(void)err_sys(err, -rc, "event loop");
	}
	loop_destroy(r.loop);
	fd_close(&r.signal_fd);
	return rc;
}
