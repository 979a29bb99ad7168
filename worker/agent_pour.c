/*
 * agent_pour: bulk data from a socket to the guest's stream through a pipe, by reference instead of
 * by copy. sbx-worker. If we die here the stream and the pipe go with us.
 *
 * The pipe is the link's, and holds the payload of one frame. As long as that frame is not all on
 * the stream nothing else is put there: it waits in l->out.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/fd.h"
#include "worker/agent_link.h"
#include "worker/agent_link_int.h"

/* One system call. As write(2). */
static ssize_t pour_some(struct agent_link *l)
{
	struct link_pour *p = &l->pour;
	ssize_t n;

	if (p->head_left) {
		n = write(l->fd, p->head + AGENT_HEAD_LEN - p->head_left, p->head_left);
		p->head_left -= n > 0 ? (size_t)n : 0;
		return n;
	}
	n = splice(p->pipe[0], NULL, l->fd, NULL, p->left, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	p->left -= n > 0 ? (size_t)n : 0;
	return n;
}

void link_pour_on(struct agent_link *l)
{
	while (l->pour.left) {
		ssize_t n = pour_some(l);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n == 0 || errno != EAGAIN)
				link_break(
				    l, n < 0 ? errno : EPIPE, "the stream to the guest ended");
			return;
		}
	}
}

void link_close_pour(struct agent_link *l)
{
	fd_close(&l->pour.pipe[0]);
	fd_close(&l->pour.pipe[1]);
	l->pour.left = 0;
}

static bool open_pipe(int pipe[2])
{
	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* One call moves no more than this; where less is allowed there are more calls. */
	(void)fcntl(pipe[1], F_SETPIPE_SZ, (int)AGENT_DATA_MAX);
	return true;
}

ssize_t agent_chan_pour(struct agent_chan *c, int fd, size_t n)
{
	struct agent_link *l = c->link;
	ssize_t got;

	if (!l || l->broken || l->out.len || l->pour.left || n > c->credit)
		return -EOPNOTSUPP;
	if (l->pour.pipe[0] < 0 && !open_pipe(l->pour.pipe))
		return -EOPNOTSUPP;
	if (n > AGENT_DATA_MAX)
		n = AGENT_DATA_MAX;
	got = splice(fd, NULL, l->pour.pipe[1], NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (got <= 0)
		return got < 0 ? -errno : 0;
	c->credit -= (uint32_t)got;
	c->moves++;
	agent_put_head(l->pour.head, AGENT_DATA, 0, AGENT_STDIN, c->id, (uint32_t)got);
	l->pour.head_left = AGENT_HEAD_LEN;
	l->pour.left = (size_t)got;
	link_pour_on(l);
	if (l->pour.left && !l->broken && link_watch(l) < 0)
		link_break(l, EIO, "the stream to the guest cannot be watched");
	return got;
}
