/*
 * agent_link: the link itself: reading frames and handing them to channels. sbx-worker. If we die
 * here the guest sees the end of its stream; the box is then killed by whoever cleans up.
 */
#include "worker/agent_link.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"
#include "worker/agent_link_int.h"

#define LINK_ROUNDS 4 /* reads before other descriptors get their turn */
#define LINK_SOCKET_BUFFER (4 * 1024 * 1024)
#define LINK_PAGE 4096U

static void link_tell_broken(struct loop *loop, struct loop_timer *t)
{
	struct agent_link *l = LOOP_OWNER(t, struct agent_link, breaking);

	(void)loop; /* the link knows its loop */
	l->ops->broken(l->ctx, l->why_code, l->why);
}

void link_break(struct agent_link *l, int code, const char *why)
{
	if (l->broken)
		return;
	l->broken = true;
	l->why_code = code;
	l->why = why;
	loop_del(l->loop, &l->watch);
	/* Whoever hears of it frees operations, one of which may be calling us now. */
	INVARIANT(loop_timer_set(l->loop, &l->breaking, 0, link_tell_broken) == 0);
}

struct agent_chan *link_find_chan(struct agent_link *l, uint32_t id)
{
	struct agent_chan *c = l->chans[id % AGENT_CHANNELS_MAX];

	return c && c->id == id ? c : NULL;
}

/* The head of a data frame: its payload is passed on as it comes. */
static void link_begin_data(struct agent_link *l, const struct agent_head *h)
{
	struct agent_chan *c = link_find_chan(l, h->channel);

	if (h->flags != 0 || h->channel == 0 || h->arg == AGENT_STDIN || h->arg >= AGENT_STREAMS) {
		link_break(l, EBADMSG, "guest sent data that is on no stream");
		return;
	}
	if (c && h->size > c->window[h->arg]) {
		link_break(l, EBADMSG, "guest sent more than its credit");
		return;
	}
	if (c)
		c->window[h->arg] -= h->size;
	l->cur = *h;
	l->cur_left = h->size;
}

static size_t link_pass_data(struct agent_link *l, const uint8_t *p, size_t n)
{
	struct agent_chan *c = link_find_chan(l, l->cur.channel);
	size_t take = n < l->cur_left ? n : l->cur_left;

	if (c)
		c->moves++;
	if (c && c->ops->data)
		take = c->ops->data(c, l->cur.arg, p, take);
	else if (c)
		agent_chan_grant(c, l->cur.arg, take);
	l->cur_left -= take;
	return take;
}

/* Uses as much of what was read as is complete and wanted. */
void link_parse(struct agent_link *l)
{
	const uint8_t *p = l->in + l->in_off;
	struct agent_head h;
	size_t n = l->in_len;
	size_t off = 0;
	int rc;

	while (!l->broken && !l->held && off < n) {
		if (l->cur_left) {
			off += link_pass_data(l, p + off, n - off);
			continue;
		}
		rc = agent_get_head(p + off, n - off, &h);
		if (rc < 0)
			link_break(l, EBADMSG, "guest sent something that is no frame");
		if (rc <= 0)
			break;
		if (!l->greeted && h.type != AGENT_HELLO) {
			link_break(l, EBADMSG, "guest did not begin with a hello");
			break;
		}
		if (h.type == AGENT_DATA) {
			off += AGENT_HEAD_LEN;
			link_begin_data(l, &h);
			continue;
		}
		if (n - off < AGENT_HEAD_LEN + h.size)
			break;
		link_dispatch(l, &h, p + off + AGENT_HEAD_LEN);
		off += AGENT_HEAD_LEN + h.size;
	}
	l->in_len -= off;
	l->in_off = l->in_len ? l->in_off + off : 0;
}

int link_watch(struct agent_link *l)
{
	uint32_t events = (l->held ? 0 : (uint32_t)EPOLLIN) |
			  (l->out.len || l->pour.left ? (uint32_t)EPOLLOUT : 0);

	return loop_mod(l->loop, &l->watch, events);
}

static void link_on_resume(struct loop *loop, struct loop_timer *t)
{
	struct agent_link *l = LOOP_OWNER(t, struct agent_link, resuming);

	(void)loop; /* the link knows its loop */
	if (l->pipe_len)
		link_pump_pipe(l);
	link_parse(l);
	agent_link_poll(l);
}

void link_release(struct agent_link *l)
{
	l->held = false;
	/* From the loop: whoever releases may be in the middle of something. */
	if (l->broken || link_watch(l) < 0)
		return;
	INVARIANT(loop_timer_set(l->loop, &l->resuming, 0, link_on_resume) == 0);
}

void agent_link_poll(struct agent_link *l)
{
	for (int round = 0; round < LINK_ROUNDS && !l->broken && !l->held; round++) {
		size_t want = AGENT_LINK_IN - l->in_len;
		ssize_t n;

		if (link_may_pipe(l)) {
			link_poll_pipe(l);
			return;
		}
		if (l->in_off) /* less than one frame: data is passed on in pieces */
			memmove(l->in, l->in + l->in_off, l->in_len);
		l->in_off = 0;
		n = read(l->fd, l->in + l->in_len, want);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			link_break(l, n < 0 ? errno : EPIPE, "the stream to the guest ended");
			return;
		}
		l->heard++;
		l->in_len += (size_t)n;
		l->in_hot |= l->in_len > LINK_PAGE;
		link_parse(l);
		if ((size_t)n < want)
			return;
	}
}

static void link_event(struct loop *loop, struct loop_watch *w, uint32_t events)
{
	struct agent_link *l = LOOP_OWNER(w, struct agent_link, watch);

	(void)loop; /* the link knows its loop */
	if (events & EPOLLOUT)
		link_flush(l);
	if (l->held && (events & (EPOLLHUP | EPOLLERR)))
		link_break(l, EPIPE, "the stream to the guest ended");
	if (!l->broken && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		agent_link_poll(l);
}

int agent_link_init(
    struct agent_link *l, struct loop *loop, int fd, const struct agent_link_ops *ops, void *ctx)
{
	static const int size = LINK_SOCKET_BUFFER;
	int rc;

	*l = (struct agent_link){
	    .loop = loop,
	    .fd = fd,
	    .ops = ops,
	    .ctx = ctx,
	    .watch.fd = -1,
	    .pipe = {-1, -1},
	    .pour.pipe = {-1, -1},
	};
	buf_init(&l->out, AGENT_LINK_OUT_MAX);
	/* Both only make large transfers faster; a stream that is no socket has neither. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	l->in =
	    mmap(NULL, AGENT_LINK_IN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->in == MAP_FAILED) {
		rc = -errno;
		fd_close(&l->fd);
		return rc;
	}
	rc = loop_add(loop, &l->watch, fd, EPOLLIN, link_event);
	if (rc < 0)
		agent_link_fini(l);
	return rc;
}

void agent_link_fini(struct agent_link *l)
{
	loop_del(l->loop, &l->watch);
	loop_timer_clear(l->loop, &l->breaking);
	loop_timer_clear(l->loop, &l->resuming);
	for (size_t i = 0; i < AGENT_CHANNELS_MAX; i++) {
		if (l->chans[i])
			agent_chan_drop(l->chans[i]);
	}
	link_close_pipe(l);
	link_close_pour(l);
	(void)munmap(l->in, AGENT_LINK_IN); /* our own mapping */
	buf_free(&l->out);
	fd_close(&l->fd);
	l->broken = true;
}

void agent_link_trim(struct agent_link *l)
{
	if (l->pipe_len == 0)
		link_close_pipe(l);
	if (l->pour.left == 0)
		link_close_pour(l);
	buf_trim(&l->out, LINK_PAGE);
	if (l->in_hot && l->in_off + l->in_len <= LINK_PAGE) {
		/* Advice: when it is refused the pages just stay. */
		(void)madvise(l->in + LINK_PAGE, AGENT_LINK_IN - LINK_PAGE, MADV_DONTNEED);
		l->in_hot = false;
	}
}
