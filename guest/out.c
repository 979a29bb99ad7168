/*
 * out: the two queues towards the worker, see out.h. sbx-guest; if we die here the stream ends.
 */
#include "guest/out.h"

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

void out_init(struct out *o, int fd)
{
	o->fd = fd;
	o->blocked = false;
	o->file = (struct out_file){.fd = -1};
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
	       queue_len(&o->main) + o->file.left < OUT_DATA_MAX + OUT_CONTROL_MAX / 4;
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

/* One write of what is in the queues. */
static ssize_t flush_queues(struct out *o)
{
	struct out_queue *m = &o->main;
	struct out_queue *k = &o->quick;
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
	n = quick + begun == 0 ? write(o->fd, iov[2].iov_base, iov[2].iov_len)
			       : writev(o->fd, iov, 3);
	if (n <= 0)
		return n;
	if ((size_t)n <= begun) {
		m->head += (size_t)n;
	} else if ((size_t)n - begun <= quick) {
		m->head += begun;
		k->head += (size_t)n - begun;
	} else {
		k->head += quick;
		m->head += (size_t)n - quick;
	}
	return n;
}

static void file_done(struct out *o, const struct out_told *told)
{
	struct out_file *f = &o->file;

	if (told && f->told)
		*f->told = *told;
	if (f->owned)
		(void)close(f->fd); /* was only read */
	*f = (struct out_file){.fd = -1};
}

/* The rest of the payload is read into its place in the queue, or zeros are: whatever the file has
 * become, its frame is whole. */
static void file_copy(struct out *o, bool refused)
{
	struct out_file *f = &o->file;
	struct out_queue *m = &o->main;
	struct out_told told = {.copied = refused};
	size_t done = 0;
	ssize_t n = 0;
	uint8_t *to;

	if (!queue_room(m, f->left))
		__builtin_trap(); /* out_may_serve() has kept it: our own invariant */
	to = m->bytes + m->head + f->head;
	memmove(to + f->left, to, queue_len(m) - f->head);
	while (done < f->left) {
		n = pread(f->fd, to + done, f->left - done, (off_t)(f->offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	told.cut = done < f->left;
	told.err = n < 0 ? errno : 0;
	memset(to + done, 0, f->left - done);
	m->border = m->head + f->head + f->left;
	m->tail += f->left;
	file_done(o, &told);
}

/* One system call for the frame whose payload is in a file: its head, then the payload. */
static ssize_t flush_file(struct out *o)
{
	struct out_file *f = &o->file;
	off_t at = (off_t)f->offset;
	ssize_t n;

	if (f->head > 0) {
		n = write(o->fd, o->main.bytes + o->main.head, f->head);
		if (n > 0) {
			f->head -= (size_t)n;
			o->main.head += (size_t)n;
			o->main.border = o->main.head;
		}
		return n;
	}
	n = sendfile(o->fd, f->fd, &at, f->left);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return n;
	if (n <= 0) {
		file_copy(o, n < 0);
		return 1; /* if it was the stream, writing to it will tell */
	}
	f->offset += (size_t)n;
	f->left -= (size_t)n;
	if (f->left == 0)
		file_done(o, NULL);
	return n;
}

int out_flush(struct out *o)
{
	o->blocked = false;
	while (!out_is_empty(o)) {
		ssize_t n = o->file.left > 0 ? flush_file(o) : flush_queues(o);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			o->blocked = true;
			return 0;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
	}
	return 0;
}

bool out_send_file(struct out *o, uint32_t channel, uint8_t stream, int fd, uint64_t offset,
    size_t n, struct out_told *told)
{
	struct out_queue *m = &o->main;

	if (o->blocked || !out_is_empty(o) || !queue_room(m, AGENT_HEAD_LEN))
		return false;
	agent_put_head(m->bytes + m->tail, AGENT_DATA, 0, stream, channel, (uint32_t)n);
	m->tail += AGENT_HEAD_LEN;
	o->file = (struct out_file){
	    .fd = fd, .offset = offset, .left = n, .head = AGENT_HEAD_LEN, .told = told};
	(void)out_flush(o); /* the next one fails as well */
	return true;
}

bool out_take_file(struct out *o, int fd)
{
	struct out_file *f = &o->file;

	if (f->left == 0 || f->fd != fd)
		return false;
	f->owned = true;
	f->told = NULL;
	return true;
}
