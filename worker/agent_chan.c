/*
 * agent_chan: channels of the link to the guest, and sending. sbx-worker. If we die here the guest
 * sees the end of its stream.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "worker/agent_link.h"
#include "worker/agent_link_int.h"

#define CHAN_GRANT (AGENT_WINDOW / 4) /* credit is given in portions of at least this */

static bool chan_has_room(const struct agent_link *l)
{
	return l->pour.left == 0 && l->out.len < AGENT_LINK_OUT_LOW;
}

int agent_link_rouse(struct agent_link *l)
{
	int rc;

	l->asleep = false;
	rc = l->ops->rouse(l->ctx);
	if (rc < 0 && !l->broken)
		link_break(l, -rc, "the box does not go on after it was paused");
	return l->broken ? -EPIPE : 0;
}

/* Queues one frame, or writes it at once when nothing is queued. 0, -EPIPE. */
static int link_put(
    struct agent_link *l, const uint8_t head[AGENT_HEAD_LEN], const void *payload, size_t n)
{
	struct iovec iov[2] = {
	    {.iov_base = (void *)(uintptr_t)head, .iov_len = AGENT_HEAD_LEN},
	    {.iov_base = (void *)(uintptr_t)payload, .iov_len = n},
	};
	size_t sent = 0;
	ssize_t rc;

	if (l->broken || (l->asleep && agent_link_rouse(l) < 0))
		return -EPIPE;
	if (l->out.len == 0 && l->pour.left == 0) {
		rc = writev(l->fd, iov, n ? 2 : 1);
		if (rc < 0 && errno != EAGAIN && errno != EINTR)
			rc = 0; /* what is wrong with the stream, reading it will tell */
		sent = rc > 0 ? (size_t)rc : 0;
	}
	if (sent == AGENT_HEAD_LEN + n)
		return 0;
	rc = 0;
	if (sent < AGENT_HEAD_LEN) {
		rc = buf_append(&l->out, head + sent, AGENT_HEAD_LEN - sent);
		sent = AGENT_HEAD_LEN;
	}
	if (rc == 0)
		rc = buf_append(&l->out, (const uint8_t *)payload + (sent - AGENT_HEAD_LEN),
		    n - (sent - AGENT_HEAD_LEN));
	if (rc == 0)
		rc = link_watch(l);
	if (rc < 0) {
		link_break(l, (int)-rc, "guest does not read what it is sent");
		return -EPIPE;
	}
	return 0;
}

static int link_send_frame(struct agent_link *l, enum agent_type type, uint8_t flags, uint8_t arg,
    uint32_t channel, const void *payload, size_t n)
{
	uint8_t head[AGENT_HEAD_LEN];

	agent_put_head(head, type, flags, arg, channel, (uint32_t)n);
	if (l->held && type != AGENT_CREDIT)
		link_release(l); /* somebody waits for an answer */
	return link_put(l, head, payload, n);
}

int agent_link_send(struct agent_link *l, enum agent_type type, const void *payload, size_t n)
{
	l->unanswered++;
	return link_send_frame(l, type, 0, 0, 0, payload, n);
}

void link_flush(struct agent_link *l)
{
	ssize_t rc;

	link_pour_on(l);
	if (l->broken)
		return;
	if (l->out.len && l->pour.left == 0) {
		rc = buf_write_fd(&l->out, l->fd);
		if (rc < 0 && rc != -EAGAIN && rc != -EINTR) {
			link_break(l, (int)-rc, "the stream to the guest ended");
			return;
		}
	}
	if (l->out.len == 0 && l->pour.left == 0) {
		buf_trim(&l->out, AGENT_LINK_OUT_LOW);
		(void)link_watch(l); /* at worst we are woken once more */
	}
	for (size_t i = 0; i < AGENT_CHANNELS_MAX && chan_has_room(l); i++) {
		struct agent_chan *c = l->chans[i];

		if (!c || !(c->crowded || (c->blocked && c->credit)))
			continue;
		c->blocked &= !c->credit;
		c->crowded = false;
		c->ops->sendable(c);
		if (l->broken)
			return;
	}
}

int agent_chan_open(struct agent_link *l, struct agent_chan *c, const struct agent_chan_ops *ops,
    enum agent_type type, const void *request, size_t n)
{
	const uint8_t *p = request;
	uint32_t id = 0;

	if (l->broken)
		return -EPIPE;
	if (n > AGENT_REQUEST_MAX)
		return -EMSGSIZE;
	if (l->out.len > AGENT_LINK_OUT_MAX - 2 * AGENT_REQUEST_MAX)
		return -EAGAIN;
	for (size_t tries = 0; id == 0 && tries <= AGENT_CHANNELS_MAX; tries++) {
		uint32_t next = ++l->next_id;

		if (next != 0 && !l->chans[next % AGENT_CHANNELS_MAX])
			id = next;
	}
	if (id == 0)
		return -EAGAIN;
	*c = (struct agent_chan){.link = l, .ops = ops, .id = id, .credit = AGENT_WINDOW};
	for (size_t s = 0; s < AGENT_STREAMS; s++)
		c->window[s] = AGENT_WINDOW;
	l->chans[id % AGENT_CHANNELS_MAX] = c;
	l->open++;
	for (;;) {
		size_t part = n < AGENT_PAYLOAD_MAX ? n : AGENT_PAYLOAD_MAX;
		uint8_t flags = part < n ? AGENT_F_MORE : 0;

		if (link_send_frame(l, type, flags, 0, id, p, part) < 0)
			return -EPIPE;
		p += part;
		n -= part;
		if (!flags)
			return 0;
	}
}

size_t agent_chan_room(struct agent_chan *c)
{
	size_t room = 0;

	if (!c->link || c->link->broken)
		return 0;
	if (chan_has_room(c->link))
		room = c->credit;
	c->blocked |= room == 0;
	return room;
}

bool agent_chan_crowded(struct agent_chan *c)
{
	bool crowded = c->link && !c->link->broken && c->link->out.len >= AGENT_LINK_OUT_LOW;

	c->crowded |= crowded;
	return crowded;
}

size_t agent_chan_send(struct agent_chan *c, const uint8_t *p, size_t n)
{
	size_t done = 0;

	while (c->link && done < n && c->credit > 0) {
		size_t part = n - done;

		if (part > c->credit)
			part = c->credit;
		if (part > AGENT_PAYLOAD_MAX)
			part = AGENT_PAYLOAD_MAX;
		c->credit -= (uint32_t)part;
		if (link_send_frame(c->link, AGENT_DATA, 0, AGENT_STDIN, c->id, p + done, part) < 0)
			break;
		done += part;
		c->moves++;
	}
	c->blocked |= done < n;
	return done;
}

void agent_chan_eof(struct agent_chan *c)
{
	if (c->link)
		(void)link_send_frame(c->link, AGENT_EOF, 0, AGENT_STDIN, c->id, NULL, 0);
}

void agent_chan_signal(struct agent_chan *c, int signal)
{
	uint32_t number = (uint32_t)signal;

	if (c->link)
		(void)link_send_frame(c->link, AGENT_SIGNAL, 0, 0, c->id, &number, sizeof(number));
}

void agent_chan_resize(struct agent_chan *c, uint16_t cols, uint16_t rows)
{
	const uint16_t size[2] = {cols, rows};

	if (c->link)
		(void)link_send_frame(c->link, AGENT_RESIZE, 0, 0, c->id, size, sizeof(size));
}

void agent_chan_narrow(struct agent_chan *c)
{
	c->window[AGENT_STDOUT] = AGENT_WINDOW_NARROW;
	c->window[AGENT_STDERR] = AGENT_WINDOW_NARROW;
}

void agent_chan_widen(struct agent_chan *c)
{
	agent_chan_grant(c, AGENT_STDOUT, AGENT_WINDOW - AGENT_WINDOW_NARROW);
	agent_chan_grant(c, AGENT_STDERR, AGENT_WINDOW - AGENT_WINDOW_NARROW);
}

int chan_add_credit(struct agent_chan *c, uint32_t n)
{
	if (n > AGENT_WINDOW - c->credit)
		return -EBADMSG;
	c->credit += n;
	if (c->blocked && n && chan_has_room(c->link)) {
		c->blocked = false;
		c->ops->sendable(c);
	}
	return 0;
}

void agent_chan_grant(struct agent_chan *c, unsigned int stream, size_t n)
{
	uint32_t portion;

	if (!c->link)
		return;
	c->granted[stream] += (uint32_t)n;
	if (c->granted[stream] < CHAN_GRANT)
		return;
	portion = c->granted[stream];
	c->granted[stream] = 0;
	c->window[stream] += portion;
	(void)link_send_frame(
	    c->link, AGENT_CREDIT, 0, (uint8_t)stream, c->id, &portion, sizeof(portion));
}

void agent_chan_close(struct agent_chan *c)
{
	if (!c->link || c->closing)
		return;
	c->closing = true;
	(void)link_send_frame(c->link, AGENT_CLOSE, 0, 0, c->id, NULL, 0);
}

void agent_chan_drop(struct agent_chan *c)
{
	if (!c->link)
		return;
	c->link->chans[c->id % AGENT_CHANNELS_MAX] = NULL;
	c->link->open--;
	if (c->link->piped == c)
		c->link->piped = NULL;
	if (c->link->held)
		link_release(c->link);
	c->link = NULL;
}

bool agent_chan_hold(struct agent_chan *c)
{
	struct agent_link *l = c->link;

	if (!l || l->broken || l->open != 1 || l->unanswered != 0 || c->closing)
		return false;
	l->held = true;
	return link_watch(l) == 0;
}

void agent_chan_release(struct agent_chan *c)
{
	if (c->link && c->link->held)
		link_release(c->link);
}
