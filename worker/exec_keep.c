/*
 * exec_keep: executions that nobody looks at: how long they may run, and how long they can be asked
 * about when they are over. sbx-worker. If we die here they die with the box.
 */
#include <signal.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "worker/exec.h"

static struct execution *keep_find(struct service *s, const char *id)
{
	struct execution *x;

	LIST_FOREACH (x, &s->executions, entry) {
		if (x->state != EXEC_STARTING && !strcmp(x->id, id))
			return x;
	}
	return NULL;
}

struct execution *exec_find(struct service *s, const char *id)
{
	struct execution *x = keep_find(s, id);

	return x && !x->evicted ? x : NULL;
}

struct execution *exec_find_to_attach(struct service *s, const char *id)
{
	struct execution *x = keep_find(s, id);

	return x && (!x->evicted || !x->attached_once) ? x : NULL;
}

/* ---- while it runs ---- */

static void alone_on_timer(struct loop *loop, struct loop_timer *t)
{
	static const int signals[] = {SIGHUP, SIGTERM};
	struct execution *x = LOOP_OWNER(t, struct execution, alone);

	if (x->alone_step == sizeof(signals) / sizeof(signals[0])) {
		exec_end(x, EXEC_CAUSE_ALONE);
		return;
	}
	agent_chan_signal(&x->chan, signals[x->alone_step++]);
	INVARIANT(loop_timer_set(
		      loop, &x->alone, clock_now_ns() + EXEC_GRACE_STEP_NS, alone_on_timer) == 0);
}

void exec_watch_alone(struct execution *x)
{
	uint64_t grace = x->s->limits->exec_detach_grace_ms * NS_PER_MS;

	if (grace == 0 || x->chan.closing)
		return;
	INVARIANT(
	    loop_timer_set(x->s->loop, &x->alone, clock_now_ns() + grace, alone_on_timer) == 0);
}

/* ---- when it is over ---- */

static void evict_now(struct execution *x)
{
	x->evicted = true;
	exec_release(x); /* or its client does, who is still there */
}

static void keep_on_timer(struct loop *loop, struct loop_timer *t)
{
	(void)loop; /* the service knows its loop */
	evict_now(LOOP_OWNER(t, struct execution, alone));
}

static void keep_for(struct execution *x, uint64_t ns)
{
	INVARIANT(loop_timer_set(x->s->loop, &x->alone, clock_now_ns() + ns, keep_on_timer) == 0);
}

/* The one that is over for longest gives way when there are too many. */
static void keep_bound(struct service *s)
{
	struct execution *oldest = NULL;
	struct execution *x;
	unsigned int kept = 0;

	LIST_FOREACH (x, &s->executions, entry) {
		if (x->state != EXEC_OVER || x->attach)
			continue;
		kept++;
		if (!oldest || x->ended_ns < oldest->ended_ns)
			oldest = x;
	}
	if (kept > s->limits->max_executions)
		evict_now(oldest);
}

void exec_evict(struct execution *x)
{
	if (x->attached_once || x->evicted) {
		evict_now(x);
		return;
	}
	x->evicted = true;
	keep_for(x, EXEC_DOOMED_NS);
	keep_bound(x->s);
}

/* One more, that has no client. */
static void keep_more(struct execution *x)
{
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		exec_output_pack(&x->out[i]);
	keep_bound(x->s);
}

void exec_keep(struct execution *x)
{
	keep_for(x, x->s->limits->exec_keep_ms * NS_PER_MS);
	if (!x->attach)
		keep_more(x);
}

/* ---- its clients ---- */

void exec_joined(struct execution *x, struct exec_attach *a, bool replay)
{
	if (!x->attached_once)
		agent_chan_widen(&x->chan);
	x->attached_once = true;
	x->attach = a;
	for (size_t i = 0; i < EXEC_STREAMS && replay; i++)
		exec_output_rewind(&x->out[i]);
	if (x->state == EXEC_OVER && !x->evicted)
		return; /* its time to be kept goes on */
	loop_timer_clear(x->s->loop, &x->alone);
	x->alone_step = 0;
}

void exec_left(struct execution *x)
{
	x->attach = NULL;
	for (unsigned int i = 0; i < EXEC_STREAMS; i++) {
		agent_chan_grant(&x->chan, AGENT_STDOUT + i, exec_output_leave(&x->out[i]));
		x->s->buffered -= exec_output_settle(&x->out[i]);
	}
	if (x->state == EXEC_RUNNING)
		exec_watch_alone(x);
	else if (x->evicted)
		exec_release(x);
	else
		keep_more(x);
}
