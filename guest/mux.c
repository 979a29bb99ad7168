/*
 * mux: the loop and the channels of sbx-guest. If we die here PID 1 is dead and the kernel ends the
 * box.
 */
#include "guest/mux.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Credit is given back in portions of this size: a frame for every read would cost more. */
#define MUX_CREDIT_MIN (AGENT_WINDOW / 2U)

enum mux_slot {
	MUX_SLOT_IN,
	MUX_SLOT_OUT,
	MUX_SLOT_SIGNAL,
};

uint64_t mux_clock(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void mux_init(struct guest *g, int in_fd, int out_fd)
{
	g->in_fd = in_fd;
	g->sig_fd = -1;
	g->data_left = 0;
	g->root_fd = -1;
	g->helper_fd = -1;
	g->syncing.fd = -1;
	g->killer.tree.dir = -1;
	out_init(&g->out, out_fd);
}

struct channel *mux_find(struct guest *g, uint32_t id)
{
	for (unsigned int i = 0; i < g->open; i++)
		if (g->channels[g->order[i]].id == id)
			return &g->channels[g->order[i]];
	return NULL;
}

struct channel *mux_new_channel(struct guest *g, uint32_t id, uint8_t type)
{
	for (uint16_t i = 0; g->open < AGENT_CHANNELS_MAX && i < AGENT_CHANNELS_MAX; i++) {
		struct channel *c = &g->channels[i];

		if (c->phase != CHANNEL_FREE)
			continue;
		c->id = id;
		c->phase = CHANNEL_REQUEST;
		c->type = type;
		c->eof = false;
		c->pours = false;
		c->owed = 0;
		g->order[g->open++] = i;
		return c;
	}
	return NULL;
}

void mux_free_request(struct guest *g, struct channel *c)
{
	g->requests_bytes -= c->request_size;
	free(c->request);
	c->request = NULL;
	c->request_len = 0;
	c->request_size = 0;
}

void mux_forget(struct guest *g, struct channel *c)
{
	uint16_t slot = (uint16_t)(c - g->channels);

	if (c->phase == CHANNEL_OPEN)
		c->op->drop(g, c);
	mux_free_request(g, c);
	c->phase = CHANNEL_FREE;
	for (unsigned int i = 0; i < g->open; i++)
		if (g->order[i] == slot)
			g->order[i] = g->order[--g->open];
}

void mux_drop_all(struct guest *g)
{
	while (g->open > 0)
		mux_forget(g, &g->channels[g->order[0]]);
}

void mux_end(struct guest *g, struct channel *c, const struct agent_end *end)
{
	(void)out_put(&g->out, AGENT_END, 0, c->id, end, sizeof(*end), NULL, 0); /* has room */
	mux_forget(g, c);
}

void mux_fail(
    struct guest *g, struct channel *c, enum agent_code code, int sys_err, const struct text *why)
{
	const struct agent_error e = {.code = code, .sys_err = sys_err};

	(void)out_put(
	    &g->out, AGENT_ERROR, 0, c->id, &e, sizeof(e), why->s, why->len); /* has room */
	mux_forget(g, c);
}

void mux_fail_str(
    struct guest *g, struct channel *c, enum agent_code code, int sys_err, const char *why)
{
	struct text t;

	text_clear(&t);
	text_add(&t, why);
	mux_fail(g, c, code, sys_err, &t);
}

void mux_refuse(struct guest *g, uint32_t id, enum agent_code code, const char *why)
{
	const struct agent_error e = {.code = code};

	(void)out_put(&g->out, AGENT_ERROR, 0, id, &e, sizeof(e), why, strlen(why)); /* has room */
}

void mux_consumed(struct guest *g, struct channel *c, size_t n)
{
	c->owed += (uint32_t)n;
	if (c->owed < MUX_CREDIT_MIN || c->eof)
		return;
	/* The queue may be full of PONGs for a worker that does not read: later, then. */
	if (!out_put_quick(&g->out, AGENT_CREDIT, AGENT_STDIN, c->id, &c->owed, sizeof(c->owed)))
		return;
	c->allowance += c->owed;
	c->owed = 0;
}

int mux_hello(struct guest *g)
{
	const struct agent_hello hello = {.version = AGENT_VERSION, .pid = (uint32_t)g->pid};

	(void)out_put(&g->out, AGENT_HELLO, 0, 0, &hello, sizeof(hello), NULL, 0); /* the first */
	return out_flush(&g->out);
}

/* Fills r->fds; returns the latest time for the next round. */
static uint64_t mux_prepare(struct guest *g, struct mux_round *r)
{
	uint64_t at = MUX_NEVER;
	struct pollfd *w = r->fds;

	w[MUX_SLOT_IN] =
	    (struct pollfd){.fd = g->in_fd, .events = (short)(out_may_serve(&g->out) ? POLLIN : 0)};
	w[MUX_SLOT_OUT] = (struct pollfd){.fd = g->out.blocked ? g->out.fd : -1, .events = POLLOUT};
	w[MUX_SLOT_SIGNAL] = (struct pollfd){.fd = g->sig_fd, .events = POLLIN};
	w += MUX_FDS_FIXED;
	r->sinks = sink_wait(&g->sinks, w, g->now, &at);
	w += r->sinks;
	r->channels = g->open;
	g->turn++;
	for (unsigned int i = 0; i < g->open; i++, w += MUX_WAITS) {
		uint16_t slot = g->order[(i + g->turn) % g->open];
		struct channel *c = &g->channels[slot];

		r->order[i] = slot;
		for (int j = 0; j < MUX_WAITS; j++)
			w[j] = (struct pollfd){.fd = -1};
		if (c->phase == CHANNEL_OPEN)
			c->op->wait(g, c, w, &at);
	}
	kill_wait(g, &at);
	if (g->held && out_may_serve(&g->out))
		at = 0;
	return at;
}

/* Waits. 0 or -errno. */
static int mux_poll(struct guest *g, struct mux_round *r, uint64_t at)
{
	nfds_t n = MUX_FDS_FIXED + r->sinks + r->channels * MUX_WAITS;
	struct timespec ts = {0};
	int rc;

	if (at != MUX_NEVER) {
		uint64_t now = mux_clock();
		uint64_t left = at > now ? at - now : 0;

		ts.tv_sec = (time_t)(left / 1000000000ULL);
		ts.tv_nsec = (long)(left % 1000000000ULL);
	}
	do {
		rc = ppoll(r->fds, n, at != MUX_NEVER ? &ts : NULL, NULL);
	} while (rc < 0 && errno == EINTR);
	g->now = mux_clock();
	r->due = g->now >= at;
	return rc < 0 ? -errno : 0;
}

/*
 * Reaps what is ours: shims, commands whose shim was killed, and the orphans of the box. A shim
 * that somebody in the box has stopped goes on: else its command never begins, or never ends.
 */
static void mux_reap(struct guest *g)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(g->sig_fd, &info, sizeof(info)) < 0)
		info.ssi_signo = 0; /* no SIGCHLD is pending; looking is right all the same */
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
		if (WIFSTOPPED(status) && shim_is(&g->shims, pid))
			(void)kill(pid, SIGCONT); /* ours and not reaped: it is there */
		else if (!WIFSTOPPED(status) && !shim_reaped(&g->shims, pid))
			(void)command_reaped(g, pid, status); /* or an orphan's */
	}
}

/* Reads and serves. 0, or -errno: the worker is gone (-EPIPE) or breaks the rules. */
static int mux_serve(struct guest *g, const struct pollfd *in)
{
	int rc = mux_take_frames(g); /* what could not be served the last time */

	if (rc != 0 || in->revents == 0)
		return rc;
	if ((in->revents & POLLIN) == 0)
		return -EPIPE; /* hung up */
	return mux_receive(g);
}

static void mux_step(struct guest *g, const struct mux_round *r)
{
	const struct pollfd *w = r->fds + MUX_FDS_FIXED + r->sinks;

	for (unsigned int i = 0; i < r->channels; i++, w += MUX_WAITS) {
		struct channel *c = &g->channels[r->order[i]];
		bool ready = false;

		for (int j = 0; j < MUX_WAITS; j++)
			ready = ready || w[j].revents != 0;
		if (c->phase == CHANNEL_OPEN && (ready || r->children || r->due))
			c->op->step(g, c, w);
	}
}

static int mux_round(struct guest *g, struct mux_round *r)
{
	int rc = mux_poll(g, r, mux_prepare(g, r));

	if (rc != 0)
		return rc;
	sink_step(&g->sinks, r->fds + MUX_FDS_FIXED, r->sinks, g->now);
	r->children = r->fds[MUX_SLOT_SIGNAL].revents != 0;
	if (r->children)
		mux_reap(g);
	rc = mux_serve(g, &r->fds[MUX_SLOT_IN]);
	if (rc != 0)
		return rc;
	if (r->children)
		file_sync_step(g);
	kill_step(g);
	stop_step(g);
	mux_step(g, r);
	if (g->out.blocked && r->fds[MUX_SLOT_OUT].revents == 0)
		return 0;
	return out_flush(&g->out);
}

int mux_run(struct guest *g)
{
	int rc;

	do {
		rc = mux_round(g, &g->round);
	} while (rc == 0);
	mux_drop_all(g);
	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}
