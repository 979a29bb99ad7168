/*
 * control_link: messages to and from sbxd. sbx-worker. If we die here sbxd sees the pair closed;
 * descriptors that were on their way are closed by the kernel, sbxd has its own.
 */
#include "worker/control_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fd.h"
#include "lib/log.h"

struct control_msg {
	STAILQ_ENTRY(control_msg) entry;
	enum ctl_type type;
	uint64_t seq;
	int fd; /* owned */
	uint32_t word;
	bool has_body;
	union ctl_body body;
	size_t tail_len;
	uint8_t tail[];
};

static void control_drop_queue(struct control_link *l)
{
	struct control_msg *m;

	while ((m = STAILQ_FIRST(&l->queue))) {
		STAILQ_REMOVE_HEAD(&l->queue, entry);
		fd_close(&m->fd);
		free(m);
	}
}

static void control_lose(struct control_link *l)
{
	if (l->fd < 0)
		return;
	loop_del(l->loop, &l->watch);
	fd_close(&l->fd);
	control_drop_queue(l);
	l->ops->gone(l->ctx);
}

/* True when there was a message. */
static bool control_read(struct control_link *l)
{
	struct ctl_msg msg;
	int rc = ctl_recv(l->fd, l->scratch, &msg);

	if (rc == -EAGAIN || rc == -EINTR)
		return false;
	if (rc == 1) {
		l->ops->message(l->ctx, &msg);
		return true;
	}
	if (rc == -EBADMSG)
		log_error("sbxd sent a message that breaks the contract");
	control_lose(l);
	return false;
}

void control_link_end(struct control_link *l)
{
	while (l->fd >= 0 && control_read(l))
		;
	control_lose(l);
}

/* For now: the socket, or the number of descriptors that our user may have under way. */
static bool control_is_full(int rc)
{
	return rc == -EAGAIN || rc == -EINTR || rc == -ETOOMANYREFS;
}

static void control_flush(struct control_link *l)
{
	struct control_msg *m;
	uint32_t word;
	int rc;

	while ((m = STAILQ_FIRST(&l->queue))) {
		rc = ctl_send(l->fd, m->type, m->seq, l->gen, m->has_body ? &m->body : NULL,
		    m->tail, m->tail_len, m->fd);
		if (control_is_full(rc))
			return;
		if (rc < 0) {
			control_link_end(l);
			return;
		}
		word = m->word;
		STAILQ_REMOVE_HEAD(&l->queue, entry);
		fd_close(&m->fd);
		free(m);
		if (word != CONTROL_NO_WORD)
			l->ops->sent(l->ctx, word);
	}
	(void)loop_mod(l->loop, &l->watch, EPOLLIN); /* at worst we are woken once more */
}

static void control_on_event(struct loop *loop, struct loop_watch *w, uint32_t events)
{
	struct control_link *l = LOOP_OWNER(w, struct control_link, watch);

	(void)loop; /* the link knows its loop */
	if (events & EPOLLOUT)
		control_flush(l);
	if (l->fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		(void)control_read(l); /* if there are more, we are woken again */
}

int control_link_init(struct control_link *l, struct loop *loop, int fd, uint64_t gen,
    uint8_t *scratch, const struct control_link_ops *ops, void *ctx)
{
	int rc;

	*l = (struct control_link){
	    .loop = loop,
	    .watch.fd = -1,
	    .fd = fd,
	    .gen = gen,
	    .ops = ops,
	    .ctx = ctx,
	    .scratch = scratch,
	};
	STAILQ_INIT(&l->queue);
	rc = loop_add(loop, &l->watch, fd, EPOLLIN, control_on_event);
	if (rc < 0)
		fd_close(&l->fd);
	return rc;
}

void control_link_fini(struct control_link *l)
{
	loop_del(l->loop, &l->watch);
	fd_close(&l->fd);
	control_drop_queue(l);
}

static bool control_keep(struct control_link *l, enum ctl_type type, uint64_t seq, const void *body,
    size_t body_len, const void *tail, size_t tail_len, int fd, uint32_t word)
{
	struct control_msg *m = calloc(1, sizeof(*m) + tail_len);

	if (!m || loop_mod(l->loop, &l->watch, EPOLLIN | EPOLLOUT) < 0) {
		free(m);
		return false;
	}
	m->type = type;
	m->seq = seq;
	m->fd = fd;
	m->word = word;
	m->has_body = body != NULL;
	if (body)
		memcpy(&m->body, body, body_len);
	if (tail_len)
		memcpy(m->tail, tail, tail_len);
	m->tail_len = tail_len;
	STAILQ_INSERT_TAIL(&l->queue, m, entry);
	return true;
}

bool control_link_send(struct control_link *l, enum ctl_type type, uint64_t seq, const void *body,
    size_t body_len, const void *tail, size_t tail_len, int fd, uint32_t word)
{
	int rc = -EAGAIN;

	if (l->fd < 0)
		return false;
	if (STAILQ_EMPTY(&l->queue))
		rc = ctl_send(l->fd, type, seq, l->gen, body, tail, tail_len, fd);
	if (control_is_full(rc))
		return control_keep(l, type, seq, body, body_len, tail, tail_len, fd, word);
	if (rc < 0) /* reading will tell that sbxd is gone */
		return false;
	fd_close(&fd);
	if (word != CONTROL_NO_WORD)
		l->ops->sent(l->ctx, word);
	return true;
}

bool control_link_idle(const struct control_link *l)
{
	return STAILQ_EMPTY(&l->queue);
}
