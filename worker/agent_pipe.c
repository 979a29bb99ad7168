/*
 * agent_pipe: bulk data from the guest's stream into a pipe, by reference instead of by copy.
 * sbx-worker. If we die here the stream and the pipe go with us.
 *
 * The pipe is the link's, and holds data of one frame of one channel. Heads and everything that is
 * not data are still read into l->in, but no byte further.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "worker/agent_link.h"
#include "worker/agent_link_int.h"

#define PIPE_ROUNDS 64 /* system calls before other descriptors get their turn */

void agent_chan_pipe(struct agent_chan *c)
{
	struct agent_link *l = c->link;

	if (!l || l->piped)
		return;
	if (l->pipe[0] < 0 && pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return; /* it is copied, then */
	l->piped = c;
}

void link_close_pipe(struct agent_link *l)
{
	fd_close(&l->pipe[0]);
	fd_close(&l->pipe[1]);
	l->pipe_len = 0;
}

bool link_may_pipe(const struct agent_link *l)
{
	struct agent_head h;

	if (!l->piped || l->open != 1 || l->in_off != 0)
		return false;
	return l->in_len < AGENT_HEAD_LEN || agent_get_head(l->in, l->in_len, &h) == 1;
}

/* What its channel does not take and cannot wait for is read out of the pipe after all. */
static void pipe_empty(struct agent_link *l, struct agent_chan *c)
{
	uint8_t *spare = l->in + l->in_off + l->in_len;
	size_t room = (size_t)(l->in + AGENT_LINK_IN - spare);

	l->in_hot = true;
	while (l->pipe_len) {
		ssize_t n = read(l->pipe[0], spare, l->pipe_len < room ? l->pipe_len : room);

		if (n <= 0) {
			link_break(l, n < 0 ? errno : EPIPE, "the pipe lost what was in it");
			return;
		}
		l->pipe_len -= (size_t)n;
		for (size_t off = 0; c && off < (size_t)n;)
			off += c->ops->data(c, l->cur.arg, spare + off, (size_t)n - off);
	}
}

void link_pump_pipe(struct agent_link *l)
{
	struct agent_chan *c = link_find_chan(l, l->cur.channel);

	if (l->broken)
		return;
	if (c)
		c->moves++;
	if (c && c->ops->piped)
		l->pipe_len -= c->ops->piped(c, l->cur.arg, l->pipe[0], l->pipe_len);
	if (l->pipe_len && !l->held)
		pipe_empty(l, c);
}

/* How much more makes l->in hold a head, or the whole frame after it. */
static size_t pipe_want(const struct agent_link *l)
{
	struct agent_head h;

	if (agent_get_head(l->in, l->in_len, &h) != 1)
		return AGENT_HEAD_LEN - l->in_len;
	return AGENT_HEAD_LEN + h.size - l->in_len;
}

/* One system call. False: there is nothing more for now. */
static bool pipe_read(struct agent_link *l)
{
	size_t want = l->cur_left ? l->cur_left : pipe_want(l);
	ssize_t n;

	if (l->cur_left)
		n = splice(l->fd, NULL, l->pipe[1], NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	else
		n = read(l->fd, l->in + l->in_len, want);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		link_break(l, n < 0 ? errno : EPIPE, "the stream to the guest ended");
		return false;
	}
	l->heard++;
	if (l->cur_left) {
		l->cur_left -= (size_t)n;
		l->pipe_len += (size_t)n;
		link_pump_pipe(l);
	} else {
		l->in_len += (size_t)n;
		link_parse(l);
	}
	return true;
}

void link_poll_pipe(struct agent_link *l)
{
	for (int i = 0; i < PIPE_ROUNDS && !l->broken && !l->held && link_may_pipe(l); i++) {
		if (!pipe_read(l))
			return;
	}
}
