/*
 * mux_receive: bytes from the worker: into in[], or, when much of them is only passed on, straight
 * to the operation that passes it on. sbx-guest; if we die here PID 1 is dead and the kernel ends
 * the box.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "guest/mux.h"

#define RECEIVE_ROUNDS 64 /* system calls before others have their turn */

/* The channel that all that comes is for, if its operation takes it from the stream itself. What is
 * left of a frame may be of one that is closed. */
static struct channel *find_pouring(struct guest *g)
{
	struct channel *c = g->open == 1 ? &g->channels[g->order[0]] : NULL;

	if (c == NULL || c->phase != CHANNEL_OPEN || !c->pours)
		return NULL;
	return g->data_left == 0 || g->data_channel == c->id ? c : NULL;
}

/* How much more makes in[] hold a head, or the whole frame after it. */
static size_t find_want(const struct guest *g)
{
	size_t have = g->in_tail - g->in_head;
	struct agent_head h;

	if (agent_get_head(g->in + g->in_head, have, &h) != 1)
		return AGENT_HEAD_LEN - have;
	return AGENT_HEAD_LEN + h.size - have;
}

/* As read(2), but -errno. */
static ssize_t receive(struct guest *g, struct channel *pouring)
{
	size_t want = sizeof(g->in) - g->in_tail;
	ssize_t n;

	if (pouring != NULL && g->data_left > 0) {
		n = pouring->op->pour(g, pouring, g->in_fd, g->data_left);
		g->data_left -= n > 0 ? (size_t)n : 0;
		return n; /* in[] is empty: what is in it would have been taken */
	}
	if (pouring != NULL)
		want = find_want(g);
	n = read(g->in_fd, g->in + g->in_tail, want);
	g->in_tail += n > 0 ? (size_t)n : 0;
	return n < 0 ? -errno : n;
}

static void make_room(struct guest *g)
{
	if (g->in_head == 0)
		return;
	memmove(g->in, g->in + g->in_head, g->in_tail - g->in_head);
	g->in_tail -= g->in_head;
	g->in_head = 0;
}

int mux_receive(struct guest *g)
{
	struct channel *c;
	int rounds = 0;

	do {
		ssize_t n;
		int rc;

		make_room(g);
		if (g->held || g->in_tail == sizeof(g->in))
			return 0;
		c = find_pouring(g);
		n = receive(g, c);
		if (n == -EAGAIN || n == -EINTR)
			return 0;
		if (n <= 0)
			return n < 0 ? (int)n : -EPIPE;
		rc = mux_take_frames(g);
		if (rc != 0)
			return rc;
		/* What is to be sent may be the credit that the next bytes wait for. */
	} while (c != NULL && out_is_empty(&g->out) && ++rounds < RECEIVE_ROUNDS);
	return 0;
}
