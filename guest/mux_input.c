/*
 * mux_input: takes frames from the worker and hands them to the operation of their channel.
 * sbx-guest.
 *
 * The worker is not trusted: -EBADMSG from here ends the connection and with it the guest, nothing
 * else. If we die here PID 1 is dead and the kernel ends the box.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "guest/mux.h"

static bool refused_take(struct guest *g, uint32_t id, bool more)
{
	for (unsigned int i = 0; i < g->refused_len; i++) {
		if (g->refused[i] != id)
			continue;
		if (!more)
			g->refused[i] = g->refused[--g->refused_len];
		return true;
	}
	return false;
}

/* Answers a request with an error; what still comes of it is thrown away. */
static int request_refuse(struct guest *g, const struct agent_head *h, const char *why)
{
	mux_refuse(g, h->channel, AGENT_E_RESOURCES, why);
	if ((h->flags & AGENT_F_MORE) == 0)
		return 0;
	if (g->refused_len == MUX_REFUSED_MAX)
		return -EBADMSG;
	g->refused[g->refused_len++] = h->channel;
	return 0;
}

/* Keeps a part of a request. 0 or -ENOMEM. */
static int request_keep(struct guest *g, struct channel *c, const uint8_t *payload, size_t n)
{
	size_t size = c->request_size;

	while (size < c->request_len + n)
		size = size == 0 ? 2U * AGENT_PAYLOAD_MAX : size * 2;
	if (size != c->request_size) {
		uint8_t *bigger;

		if (g->requests_bytes - c->request_size + size > MUX_REQUESTS_MAX)
			return -ENOMEM;
		bigger = realloc(c->request, size);
		if (bigger == NULL)
			return -ENOMEM;
		g->requests_bytes += size - c->request_size;
		c->request = bigger;
		c->request_size = size;
	}
	memcpy(c->request + c->request_len, payload, n);
	c->request_len += n;
	return 0;
}

static int request_open(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	static const struct pollfd nothing[MUX_WAITS] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
	uint32_t id = c->id;
	int rc;

	c->phase = CHANNEL_OPEN;
	c->op = g->ops[c->type];
	c->allowance = AGENT_WINDOW;
	for (int i = 0; i < AGENT_STREAMS; i++)
		c->credit[i] = AGENT_WINDOW;
	rc = c->op->open(g, c, request, n);
	if (rc != 0 || mux_find(g, id) != c)
		return rc;
	mux_free_request(g, c);
	c->op->step(g, c, nothing);
	return 0;
}

static int take_request(struct guest *g, const struct agent_head *h, const uint8_t *payload)
{
	struct channel *c = mux_find(g, h->channel);
	bool more = (h->flags & AGENT_F_MORE) != 0;

	if (refused_take(g, h->channel, more))
		return 0;
	if (c == NULL) {
		c = mux_new_channel(g, h->channel, h->type);
		if (c == NULL)
			return request_refuse(g, h, "too many operations at once");
		if (!more)
			return request_open(g, c, payload, h->size);
	}
	if (c->phase != CHANNEL_REQUEST || c->type != h->type ||
	    c->request_len + h->size > AGENT_REQUEST_MAX)
		return -EBADMSG;
	if (h->size > 0 && request_keep(g, c, payload, h->size) != 0) {
		mux_forget(g, c);
		return request_refuse(g, h, "no memory for a request of this size");
	}
	if (more)
		return 0;
	return request_open(g, c, c->request, c->request_len);
}

static int take_channel_zero(struct guest *g, const struct agent_head *h, const uint8_t *payload)
{
	if (h->channel != 0 || h->flags != 0)
		return -EBADMSG;
	if (h->type == AGENT_WAKE)
		return g->wake != NULL ? g->wake(g, payload, h->size) : -EBADMSG;
	if (h->size > FILE_PING_MAX)
		return -EBADMSG;
	if (h->type == AGENT_STOP)
		return g->stop(g, payload, h->size);
	if (h->type == AGENT_SYNC)
		g->sync(g, payload, h->size);
	else
		(void)out_put_quick(&g->out, AGENT_PONG, 0, 0, payload, h->size); /* has room */
	return 0;
}

/* The head of a data frame: its payload is passed on as it comes. */
static int begin_data(struct guest *g, const struct agent_head *h)
{
	struct channel *c = mux_find(g, h->channel);

	if (h->channel == 0 || h->flags != 0)
		return -EBADMSG;
	if (c != NULL) {
		if (c->phase != CHANNEL_OPEN || c->op->data == NULL || h->arg != AGENT_STDIN ||
		    c->eof || h->size > c->allowance)
			return -EBADMSG;
		c->allowance -= h->size;
	}
	g->data_channel = h->channel;
	g->data_left = h->size;
	return 0;
}

static int pass_data(struct guest *g, const uint8_t *bytes, size_t n)
{
	struct channel *c = mux_find(g, g->data_channel);

	if (n > g->data_left)
		n = g->data_left;
	g->in_head += n;
	g->data_left -= n;
	return c != NULL ? c->op->data(g, c, bytes, n) : 0; /* none: crossed our END */
}

static int take_eof(struct guest *g, struct channel *c, const struct agent_head *h)
{
	if (c->op->eof == NULL || h->arg != AGENT_STDIN || c->eof || h->size != 0)
		return -EBADMSG;
	c->eof = true;
	return c->op->eof(g, c);
}

static int take_credit(struct channel *c, const struct agent_head *h, const uint8_t *payload)
{
	uint32_t n;

	if (h->arg == AGENT_STDIN || h->size != sizeof(n))
		return -EBADMSG;
	memcpy(&n, payload, sizeof(n));
	c->credit[h->arg] += n;
	/* More than a window can never have been used up. */
	return c->credit[h->arg] > AGENT_WINDOW ? -EBADMSG : 0;
}

static int take_resize(
    struct guest *g, struct channel *c, const struct agent_head *h, const uint8_t *payload)
{
	uint16_t size[2];

	if (c->op->resize == NULL || h->size != sizeof(size))
		return -EBADMSG;
	memcpy(size, payload, sizeof(size));
	c->op->resize(g, c, size[0], size[1]);
	return 0;
}

static int take_signal(
    struct guest *g, struct channel *c, const struct agent_head *h, const uint8_t *payload)
{
	uint32_t sig;

	if (c->op->signal == NULL || h->size != sizeof(sig))
		return -EBADMSG;
	memcpy(&sig, payload, sizeof(sig));
	if (sig == 0 || sig >= (uint32_t)_NSIG)
		return -EBADMSG;
	c->op->signal(g, c, (int)sig);
	return 0;
}

/* A frame for an open channel, or one that is still being asked for. */
static int take_for_channel(struct guest *g, const struct agent_head *h, const uint8_t *payload)
{
	struct channel *c = mux_find(g, h->channel);

	if (h->channel == 0 || h->flags != 0)
		return -EBADMSG;
	if (c == NULL)
		return 0; /* crossed our END */
	if (h->type == AGENT_CLOSE && c->phase == CHANNEL_REQUEST) {
		const struct agent_end end = {.flags = AGENT_END_KILLED};

		mux_end(g, c, &end);
		return 0;
	}
	if (c->phase != CHANNEL_OPEN)
		return -EBADMSG;
	switch (h->type) {
	case AGENT_EOF:
		return take_eof(g, c, h);
	case AGENT_CREDIT:
		return take_credit(c, h, payload);
	case AGENT_RESIZE:
		return take_resize(g, c, h, payload);
	case AGENT_SIGNAL:
		return take_signal(g, c, h, payload);
	case AGENT_CLOSE:
		c->op->close(g, c);
		return 0;
	default:
		return -EBADMSG; /* what only we may say */
	}
}

static int take_frame(struct guest *g, const struct agent_head *h, const uint8_t *payload)
{
	switch (h->type) {
	case AGENT_PING:
	case AGENT_SYNC:
	case AGENT_STOP:
	case AGENT_WAKE:
		return take_channel_zero(g, h, payload);
	case AGENT_EXEC:
	case AGENT_READ:
	case AGENT_WRITE:
	case AGENT_PATH:
		return h->channel == 0 ? -EBADMSG : take_request(g, h, payload);
	default:
		return take_for_channel(g, h, payload);
	}
}

/* One frame, or of a data frame its head or what is there. 1; 0 when more must come first, or
 * everything is held; -EBADMSG. */
static int take_next(struct guest *g)
{
	const uint8_t *at = g->in + g->in_head;
	size_t left = g->in_tail - g->in_head;
	struct agent_head h = {0};
	int rc = left > 0;

	if (g->data_left == 0)
		rc = agent_get_head(at, left, &h);
	if (rc > 0 && h.type != AGENT_DATA && g->data_left == 0 && left - AGENT_HEAD_LEN < h.size)
		rc = 0;
	if (rc <= 0)
		return rc;
	g->held = !out_may_serve(&g->out);
	if (g->held)
		return 0;
	if (g->data_left > 0) {
		rc = pass_data(g, at, left);
	} else if (h.type == AGENT_DATA) {
		g->in_head += AGENT_HEAD_LEN;
		rc = begin_data(g, &h);
	} else {
		g->in_head += AGENT_HEAD_LEN + h.size;
		rc = take_frame(g, &h, at + AGENT_HEAD_LEN);
	}
	return rc == 0 ? 1 : rc;
}

int mux_take_frames(struct guest *g)
{
	int rc;

	g->held = false;
	do {
		rc = take_next(g);
	} while (rc > 0);
	if (g->in_head == g->in_tail) {
		g->in_head = 0;
		g->in_tail = 0;
	}
	return rc;
}
