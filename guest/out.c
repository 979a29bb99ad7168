/*
 * out: the two queues towards the worker, see out.h. sbx-guest; if we die here the stream ends.
 */
#include "guest/out.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void out_init(struct out *o, int fd)
{
	o->fd = fd;
	o->blocked = false;
	o->main = (struct out_queue){.bytes = o->main_bytes, .size = sizeof(o->main_bytes)};
	o->quick = (struct out_queue){.bytes = o->quick_bytes, .size = sizeof(o->quick_bytes)};
}

static size_t queue_len(const struct out_queue *q)
{
	return q->tail - q->head;
}

bool out_may_serve(const struct out *o)
{
	return queue_len(&o->quick) < OUT_QUICK_MAX / 2 &&
	       queue_len(&o->main) < OUT_DATA_MAX + OUT_CONTROL_MAX / 4;
}

/* Forgets what was sent; n more bytes fit then, or false. */
static bool queue_room(struct out_queue *q, size_t n)
{
	if (q->head == q->tail) {
		q->head = 0;
		q->tail = 0;
		q->border = 0;
	}
	if (q->size - q->tail >= n)
		return true;
	if (q->size - queue_len(q) < n)
		return false;
	memmove(q->bytes, q->bytes + q->head, queue_len(q));
	q->border -= q->head;
	q->tail -= q->head;
	q->head = 0;
	return true;
}

static bool queue_put(struct out_queue *q, const struct agent_head *h, const void *a, size_t a_len,
    const void *b, size_t b_len)
{
	uint8_t *to;

	if (!queue_room(q, AGENT_HEAD_LEN + a_len + b_len))
		return false;
	to = q->bytes + q->tail;
	agent_put_head(to, h->type, h->flags, h->arg, h->channel, (uint32_t)(a_len + b_len));
	to += AGENT_HEAD_LEN;
	if (a_len > 0)
		memcpy(to, a, a_len);
	if (b_len > 0)
		memcpy(to + a_len, b, b_len);
	q->tail += AGENT_HEAD_LEN + a_len + b_len;
	return true;
}

bool out_put(struct out *o, enum agent_type type, uint8_t arg, uint32_t channel, const void *a,
    size_t a_len, const void *b, size_t b_len)
{
	const struct agent_head h = {.type = (uint8_t)type, .arg = arg, .channel = channel};

	return queue_put(&o->main, &h, a, a_len, b, b_len);
}

bool out_put_quick(struct out *o, enum agent_type type, uint8_t arg, uint32_t channel,
    const void *payload, size_t len)
{
	const struct agent_head h = {.type = (uint8_t)type, .arg = arg, .channel = channel};

	return queue_put(&o->quick, &h, payload, len, NULL, 0);
}

uint8_t *out_data_room(struct out *o, size_t *max)
{
	struct out_queue *q = &o->main;
	size_t room;

	if (o->blocked || !queue_room(q, AGENT_HEAD_LEN + 1) ||
	    q->tail + AGENT_HEAD_LEN >= OUT_DATA_MAX)
		return NULL;
	room = OUT_DATA_MAX - q->tail - AGENT_HEAD_LEN;
	*max = room < AGENT_PAYLOAD_MAX ? room : AGENT_PAYLOAD_MAX;
	return q->bytes + q->tail + AGENT_HEAD_LEN;
}

void out_data_commit(struct out *o, uint32_t channel, uint8_t stream, size_t n)
{
	struct out_queue *q = &o->main;

	agent_put_head(q->bytes + q->tail, AGENT_DATA, 0, stream, channel, (uint32_t)n);
	q->tail += AGENT_HEAD_LEN + n;
}

int out_data_rooms(struct out *o, size_t want, struct iovec iov[OUT_FRAMES])
{
	struct out_queue *q = &o->main;
	uint8_t *at;
	int n = 0;

	if (o->blocked || queue_len(q) != 0 || !queue_room(q, 0))
		return 0;
	at = q->bytes;
	while (n < (int)OUT_FRAMES && want > 0) {
		size_t take = want < AGENT_PAYLOAD_MAX ? want : AGENT_PAYLOAD_MAX;

		iov[n++] = (struct iovec){.iov_base = at + AGENT_HEAD_LEN, .iov_len = take};
		at += OUT_FRAME_MAX;
		want -= take;
	}
	return n;
}

void out_data_commits(struct out *o, uint32_t channel, uint8_t stream, size_t n)
{
	while (n > 0) {
		size_t take = n < AGENT_PAYLOAD_MAX ? n : AGENT_PAYLOAD_MAX;

		out_data_commit(o, channel, stream, take);
		n -= take;
	}
}

/* Moves the border to the first one at or after head. */
static void queue_find_border(struct out_queue *q)
{
	while (q->border < q->head) {
		struct agent_head h;

		memcpy(&h, q->bytes + q->border, sizeof(h));
		q->border += AGENT_HEAD_LEN + h.size;
	}
}

static struct iovec queue_iov(struct out_queue *q, size_t from, size_t to)
{
	return (struct iovec){.iov_base = q->bytes + from, .iov_len = to - from};
}

int out_flush(struct out *o)
{
	struct out_queue *m = &o->main;
	struct out_queue *k = &o->quick;

	o->blocked = false;
	while (!out_is_empty(o)) {
		struct iovec iov[3];
		size_t begun;
		size_t quick;
		ssize_t n;

		/* The frame that was begun, then the quick ones, then the rest. */
		queue_find_border(m);
		begun = m->border - m->head;
		quick = queue_len(k);
		iov[0] = queue_iov(m, m->head, m->border);
		iov[1] = queue_iov(k, k->head, k->tail);
		iov[2] = queue_iov(m, m->border, m->tail);
		do {
			n = quick + begun == 0 ? write(o->fd, iov[2].iov_base, iov[2].iov_len)
					       : writev(o->fd, iov, 3);
		} while (n < 0 && errno == EINTR);
		if (n < 0 && errno == EAGAIN) {
			o->blocked = true;
			return 0;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		if ((size_t)n <= begun) {
			m->head += (size_t)n;
		} else if ((size_t)n - begun <= quick) {
			m->head += begun;
			k->head += (size_t)n - begun;
		} else {
			k->head += quick;
			m->head += (size_t)n - quick;
		}
	}
	return 0;
}
