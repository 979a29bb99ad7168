/* packet: sending and checking messages by the shapes of a contract. Any process; holds no state.
 */
#include "wire/packet.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/fd.h"

const char *packet_type_name(const struct packet_contract *c, uint32_t type)
{
	return type < c->types ? c->shapes[type].name : "?";
}

static bool tail_fits(const struct packet_contract *c, const struct packet_shape *shape,
    const uint8_t *tail, size_t n)
{
	switch (shape->tail) {
	case TAIL_NONE:
		return n == 0;
	case TAIL_BYTES:
		return n <= c->tail_max;
	case TAIL_STRINGS:
		return n == 0 || (n <= c->tail_max && tail[n - 1] == '\0');
	}
	return false;
}

static bool texts_end(const struct packet_shape *shape, const uint8_t *body)
{
	for (size_t i = 0; i < PACKET_TEXTS_MAX && shape->texts[i].size; i++) {
		if (!memchr(body + shape->texts[i].off, '\0', shape->texts[i].size))
			return false;
	}
	return true;
}

static bool fd_fits(const struct packet_shape *shape, int fd)
{
	return shape->fd == FD_MAY || (shape->fd == FD_ONE) == (fd >= 0);
}

int packet_send(const struct packet_contract *c, int sock, const void *head, const void *body,
    const void *tail, int fd)
{
	const struct packet_shape *shape;
	struct packet_head h;
	struct iovec iov[3] = {
	    {.iov_base = (void *)(uintptr_t)head, .iov_len = c->head_len},
	    {.iov_base = (void *)(uintptr_t)body},
	    {.iov_base = (void *)(uintptr_t)tail},
	};
	ssize_t n;

	memcpy(&h, head, sizeof(h));
	if (h.version != c->version || h.type == 0 || h.type >= c->types)
		return -EINVAL;
	shape = &c->shapes[h.type];
	if (h.tail > c->tail_max)
		return -EMSGSIZE;
	if ((shape->fixed != 0) != (body != NULL) || !fd_fits(shape, fd) ||
	    !tail_fits(c, shape, tail, h.tail))
		return -EINVAL;
	iov[1].iov_len = shape->fixed;
	iov[2].iov_len = h.tail;
	n = fd_send_iov(sock, iov, 3, &fd, fd >= 0 ? 1 : 0);
	return n < 0 ? (int)n : 0;
}

int packet_parse(const struct packet_contract *c, const uint8_t *buf, size_t n, struct packet *out)
{
	const struct packet_shape *shape;
	const uint8_t *body = buf + c->head_len;
	struct packet_head h;

	if (n < c->head_len)
		return -EBADMSG;
	memcpy(&h, buf, sizeof(h));
	if (h.version != c->version || h.type == 0 || h.type >= c->types)
		return -EBADMSG;
	shape = &c->shapes[h.type];
	n -= c->head_len;
	if (n < shape->fixed || n - shape->fixed != h.tail)
		return -EBADMSG;
	if (!tail_fits(c, shape, body + shape->fixed, h.tail) || !texts_end(shape, body))
		return -EBADMSG;
	*out = (struct packet){
	    .shape = shape,
	    .body = body,
	    .tail = body + shape->fixed,
	    .tail_len = h.tail,
	    .fd = -1,
	};
	return 0;
}

int packet_recv(const struct packet_contract *c, int sock, uint8_t *buf, struct packet *out)
{
	int fds[FD_PASS_MAX];
	ssize_t n = fd_recv_msg(sock, buf, c->packet_max, fds);
	struct packet p;

	if (n == -ECONNRESET) /* it ended with unread messages; what it had sent is still there */
		n = fd_recv_msg(sock, buf, c->packet_max, fds);
	if (n < 0)
		return n == -EMSGSIZE ? -EBADMSG : (int)n;
	if (packet_parse(c, buf, (size_t)n, &p) == 0 && fds[1] < 0 && fd_fits(p.shape, fds[0])) {
		p.fd = fds[0];
		*out = p;
		return 1;
	}
	for (size_t i = 0; i < FD_PASS_MAX; i++)
		fd_close(&fds[i]);
	return n == 0 ? 0 : -EBADMSG;
}
