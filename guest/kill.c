/*
 * kill: rounds of stopping and killing, see kill.h. sbx-guest; if we die here PID 1 is dead and the
 * kernel ends the box, which is what was asked for.
 */
#include "guest/kill.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "guest/mux.h"

#define KILL_SLICE 48U
#define KILL_ROUNDS 10U /* of stopping: then kill whatever there is, and look again */
#define KILL_WAIT_MIN_NS 1000000ULL
#define KILL_WAIT_MAX_NS 50000000ULL

static struct command *closing_command(struct guest *g, unsigned int i)
{
	struct channel *c = &g->channels[g->order[i]];

	if (c->phase != CHANNEL_OPEN || c->op != &command_operation || !c->u.command.closing)
		return NULL;
	return c->u.command.tree_gone ? NULL : &c->u.command;
}

/* The process above all that has to go; it goes itself only if it is no shim. */
static int32_t command_root(const struct command *cmd)
{
	return cmd->shim->pid != 0 ? cmd->shim->pid : cmd->shim->child;
}

static void kill_scan(struct guest *g)
{
	struct killer *k = &g->killer;
	bool any = stop_goes_on(g);

	for (unsigned int i = 0; i < g->open && !any; i++)
		any = closing_command(g, i) != NULL;
	k->stage = any ? KILL_SCAN : KILL_IDLE;
	if (!any)
		return;
	k->at = 0;
	if (tree_begin(&k->tree) == 0)
		return;
	/* Without /proc only the group can be hit. */
	for (unsigned int i = 0; i < g->open; i++) {
		struct command *cmd = closing_command(g, i);

		if (cmd != NULL)
			(void)shim_signal(cmd->shim, SIGKILL); /* may have ended by itself */
	}
	k->stage = KILL_WAIT;
	k->at = g->now + KILL_WAIT_MAX_NS;
}

void kill_begin(struct guest *g)
{
	struct killer *k = &g->killer;

	k->kills = 0;
	if (k->stage == KILL_IDLE || k->stage == KILL_WAIT)
		kill_scan(g);
}

void kill_wait(const struct guest *g, uint64_t *at)
{
	if (g->killer.stage != KILL_IDLE && g->killer.at < *at)
		*at = g->killer.at;
}

/* Marks the trees of all closing commands. False when there is nothing to do. */
static bool kill_mark(struct guest *g)
{
	struct tree *t = &g->killer.tree;
	bool any = false;

	for (unsigned int i = 0; i < g->open; i++) {
		struct command *cmd = closing_command(g, i);
		int32_t root;

		if (cmd == NULL)
			continue;
		any = true;
		/* With neither shim nor command nothing is known to belong to it any more. */
		root = command_root(cmd);
		if (root <= 0 || (cmd->shim->pid == 0 && cmd->exited)) {
			cmd->tree_gone = cmd->exited;
			continue;
		}
		tree_mark(t, root);
		if (cmd->shim->pid != 0) {
			(void)kill(cmd->shim->pid, SIGCONT); /* ours; it must be able to reap */
			continue;
		}
		for (uint32_t j = 0; j < t->count; j++)
			if (t->entries[j].pid == root)
				t->entries[j].root = root;
	}
	g->killer.marked_all = stop_mark(g);
	return any || stop_goes_on(g);
}

/* Everything was signalled: what is next? */
static void kill_signalled(struct guest *g)
{
	struct killer *k = &g->killer;
	uint64_t wait = KILL_WAIT_MIN_NS;

	if (!k->stopped && k->found_running && ++k->rounds < KILL_ROUNDS) {
		tree_end(&k->tree);
		kill_scan(g);
		return;
	}
	if (!k->stopped) { /* kill, or tell, what was seen stopped just now */
		k->stopped = true;
		k->next = 0;
		return;
	}
	tree_end(&k->tree);
	g->stopping.told |= k->marked_all;
	k->stopped = false;
	k->rounds = 0;
	for (unsigned int i = 0; i < k->kills && wait < KILL_WAIT_MAX_NS; i++)
		wait *= 2;
	k->kills++;
	k->stage = KILL_WAIT;
	k->at = g->now + wait;
}

/* The signal for a process in this pass, 0: none. What only a stop is about has its time first. */
static int kill_choose(const struct guest *g, const struct tree_entry *e)
{
	bool dead = e->inert && (e->state == 'Z' || e->state == 'X');
	bool has_time = e->root == g->pid && g->now < g->stopping.kill_at;

	if (e->root == 0 || dead || (has_time && g->stopping.told))
		return 0;
	if (!g->killer.stopped)
		return e->inert ? 0 : SIGSTOP;
	return has_time ? SIGTERM : SIGKILL;
}

static void kill_signal(struct guest *g)
{
	struct killer *k = &g->killer;
	unsigned int slice = KILL_SLICE;

	for (; k->next < k->tree.count && slice > 0; k->next++) {
		const struct tree_entry *e = &k->tree.entries[k->next];
		int sig = kill_choose(g, e);

		if (sig == 0)
			continue;
		slice--;
		if (e->state != 'D')
			k->found_running = true;
		(void)tree_signal(&k->tree, e, sig); /* or it is gone */
		if (sig == SIGTERM)		     /* so that it can hear */
			(void)tree_signal(&k->tree, e, SIGCONT);
	}
	if (k->next == k->tree.count)
		kill_signalled(g);
}

void kill_step(struct guest *g)
{
	struct killer *k = &g->killer;
	int rc;

	if (k->stage == KILL_IDLE || k->at > g->now)
		return;
	switch (k->stage) {
	case KILL_IDLE:
		break;
	case KILL_SCAN:
		rc = tree_read(&k->tree, KILL_SLICE);
		if (rc > 0)
			break;
		k->next = 0;
		k->found_running = false;
		k->stage = KILL_SIGNAL;
		if (!kill_mark(g)) {
			tree_end(&k->tree);
			k->stage = KILL_IDLE;
			break;
		}
		kill_signal(g);
		break;
	case KILL_SIGNAL:
		kill_signal(g);
		break;
	case KILL_WAIT:
		kill_scan(g);
		break;
	}
}

/* One round over everything below us, at once. */
static void signal_descendants(struct guest *g, int sig)
{
	struct tree *t = &g->killer.tree;

	tree_end(t);
	if (tree_begin(t) != 0)
		return;
	while (tree_read(t, KILL_SLICE) > 0)
		continue;
	tree_mark(t, g->pid);
	for (uint32_t i = 0; i < t->count; i++)
		if (t->entries[i].root != 0)
			(void)tree_signal(t, &t->entries[i], sig); /* or it is gone */
	tree_end(t);
}

void kill_cancel(struct guest *g)
{
	struct killer *k = &g->killer;

	if (k->stage == KILL_IDLE)
		return;
	signal_descendants(g, SIGCONT); /* what is stopped is not killed any more */
	k->stopped = false;
	k->rounds = 0;
	kill_scan(g);
}

void kill_everything(struct guest *g)
{
	const struct timespec pause = {.tv_nsec = (long)KILL_WAIT_MIN_NS};

	if (g->init) {			 /* the kernel waits for them when we exit */
		(void)kill(-1, SIGKILL); /* ESRCH: there is nobody */
		return;
	}
	for (;;) {
		pid_t pid;

		signal_descendants(g, SIGKILL);
		do {
			pid = waitpid(-1, NULL, WNOHANG | __WALL);
		} while (pid > 0);
		if (pid < 0)
			return;
		(void)nanosleep(&pause, NULL); /* all signals are blocked */
	}
}
