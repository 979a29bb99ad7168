/*
 * relay_pump: both ways of a relayed stream, neither of which waits for the other. sbx-guest, in
 * the process beside the guest itself (relay.h). What it holds is one piece each way.
 */
#include "guest/relay_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "wire/base64.h"
#include "wire/piece.h"

#define TURNS 16 /* pieces or parts of them, before the other way is looked at */

/* From the guest. */
struct up {
	int from;
	struct piece_way way;
	uint8_t piece[PIECE_TEXT_MAX];
	char text[PIECE_CHARS + 2];
	size_t at; /* of the text: what is written */
	size_t len;
	bool ended;
};

/* To the guest. */
struct down {
	int to; /* -1: nothing more goes there */
	struct piece_way way;
	struct piece_head head;
	uint8_t piece[PIECE_MAX];
	size_t len; /* read of the piece */
	size_t at;  /* of a whole one: what is written */
	bool whole;
};

struct pump {
	struct up up;
	struct down down;
	struct piece_fault fault;
	bool told; /* the fault is in up's text */
};

static bool is_later(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- from the guest ---- */

static void up_fill(struct up *u, enum piece_kind kind, size_t n)
{
	size_t chars = base64_len(PIECE_HEAD_LEN + n);

	piece_seal(&u->way, kind, u->piece, n);
	base64_encode(u->piece, PIECE_HEAD_LEN + n, u->text);
	u->text[chars] = PIECE_END;
	u->text[chars + 1] = '\n'; /* for whoever passes text on by lines */
	u->at = 0;
	u->len = chars + 2;
}

/* True: there is a piece to be written. */
static bool up_read(struct up *u)
{
	ssize_t n = read(u->from, u->piece + PIECE_HEAD_LEN, sizeof(u->piece) - PIECE_HEAD_LEN);

	if (n > 0)
		up_fill(u, PIECE_DATA, (size_t)n);
	else if (!is_later(n))
		u->ended = true;
	return n > 0;
}

/* 0, or -1: nobody hears it. */
static int up_write(struct up *u)
{
	ssize_t n = write(STDOUT_FILENO, u->text + u->at, u->len - u->at);

	if (n < 0)
		return is_later(n) ? 0 : -1;
	u->at += (size_t)n;
	return 0;
}

/* As long as it goes on without a wait, and not for ever. 0, or -1: nobody hears it. */
static int up_go(struct up *u, bool more)
{
	for (int i = 0; i < TURNS; i++) {
		if (u->at == u->len && (!more || u->ended || !up_read(u)))
			break;
		if (up_write(u) != 0)
			return -1;
		if (u->at < u->len)
			break;
	}
	return 0;
}

/* ---- to the guest ---- */

static void down_end(struct down *d)
{
	if (d->to >= 0)
		(void)close(d->to);
	d->to = -1;
}

/* What was read so far. */
static struct piece_fault down_check(struct down *d)
{
	struct piece_fault fault = {.wrong = PIECE_RIGHT};

	if (d->len == PIECE_HEAD_LEN)
		return piece_take_head(&d->way, d->piece, &d->head);
	if (d->len < PIECE_HEAD_LEN + d->head.size)
		return fault;
	fault = piece_take_data(&d->way, &d->head, d->piece + PIECE_HEAD_LEN, d->head.size);
	d->whole = fault.wrong == PIECE_RIGHT;
	d->at = PIECE_HEAD_LEN;
	return fault;
}

/* A head alone, then what it announces: so nothing of the next piece is ever in hand. False: there
 * is nothing more for now. */
static bool down_read(struct down *d, struct piece_fault *fault)
{
	size_t want = d->len < PIECE_HEAD_LEN ? PIECE_HEAD_LEN : PIECE_HEAD_LEN + d->head.size;
	ssize_t n = read(STDIN_FILENO, d->piece + d->len, want - d->len);

	if (n > 0) {
		d->len += (size_t)n;
		if (d->len == want)
			*fault = down_check(d);
	} else if (!is_later(n)) {
		down_end(d);
	}
	return n > 0 && fault->wrong == PIECE_RIGHT;
}

static void down_write(struct down *d)
{
	ssize_t n = write(d->to, d->piece + d->at, d->len - d->at);

	if (n > 0)
		d->at += (size_t)n;
	else if (!is_later(n))
		down_end(d); /* the guest has ended: its output will say so */
	if (d->at == d->len) {
		d->len = 0;
		d->whole = false;
	}
}

/* As up_go(). */
static struct piece_fault down_go(struct down *d)
{
	struct piece_fault fault = {.wrong = PIECE_RIGHT};

	for (int i = 0; i < TURNS && d->to >= 0; i++) {
		if (!d->whole && !down_read(d, &fault))
			break;
		if (d->whole)
			down_write(d);
		if (d->whole)
			break;
	}
	return fault;
}

/* ---- both ---- */

enum { POLL_STDIN, POLL_TO, POLL_FROM, POLL_STDOUT, POLLS };

/* Only who can go on is asked. */
static int pump_wait(const struct pump *p, struct pollfd fds[POLLS])
{
	const bool going = p->down.to >= 0;
	const bool saying = p->up.at < p->up.len;

	fds[POLL_STDIN] = (struct pollfd){going && !p->down.whole ? STDIN_FILENO : -1, POLLIN, 0};
	fds[POLL_TO] = (struct pollfd){going ? p->down.to : -1, p->down.whole ? POLLOUT : 0, 0};
	fds[POLL_FROM] = (struct pollfd){!saying && !p->up.ended ? p->up.from : -1, POLLIN, 0};
	fds[POLL_STDOUT] = (struct pollfd){saying ? STDOUT_FILENO : -1, POLLOUT, 0};
	return poll(fds, POLLS, -1) < 0 && errno != EINTR ? -1 : 0;
}

/* What the guest said before is said; then the fault, and nothing more. */
static void pump_tell_fault(struct pump *p)
{
	memcpy(p->up.piece + PIECE_HEAD_LEN, &p->fault, sizeof(p->fault));
	up_fill(&p->up, PIECE_FAULT, sizeof(p->fault));
	p->up.ended = true;
	p->told = true;
}

static int pump_turn(struct pump *p)
{
	struct pollfd fds[POLLS];

	if (pump_wait(p, fds) != 0)
		return -1;
	if (fds[POLL_TO].revents & ~POLLOUT)
		down_end(&p->down);
	else if (fds[POLL_TO].revents || fds[POLL_STDIN].revents)
		p->fault = down_go(&p->down);
	if (p->fault.wrong != PIECE_RIGHT)
		down_end(&p->down);
	if ((fds[POLL_STDOUT].revents || fds[POLL_FROM].revents) &&
	    up_go(&p->up, p->fault.wrong == PIECE_RIGHT) != 0)
		return -1;
	if (p->fault.wrong != PIECE_RIGHT && !p->told && p->up.at == p->up.len)
		pump_tell_fault(p);
	return 0;
}

static int no_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int relay_pump(int to, int from)
{
	static struct pump p;
	int rc;

	p.up.from = from;
	p.down.to = to;
	piece_begin(&p.up.way);
	piece_begin(&p.down.way);
	rc = no_wait(STDIN_FILENO) | no_wait(STDOUT_FILENO) | no_wait(to) | no_wait(from);
	while (rc == 0 && !(p.up.ended && p.up.at == p.up.len))
		rc = pump_turn(&p);
	down_end(&p.down);
	return p.told ? -1 : rc;
}
