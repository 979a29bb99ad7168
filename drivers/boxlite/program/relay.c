/* relay: between the worker's stream and the agent's command. sbx-boxlite; the loop. */
#include "drivers/boxlite/program/relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "drivers/boxlite/program/program.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "wire/agent.h"

#define OUT_MAX (2U * INBOX_OUTPUT_MAX)

int relay_give_up(struct relay *r)
{
	r->broken = true;
	loop_del(r->p->loop, &r->watch);
	if (r->passing)
		inbox_passed(r->p->inbox, r->passing);
	r->passing = 0;
	buf_free(&r->out);
	return fd_take(&r->stream);
}

void relay_close(struct relay *r)
{
	int fd;

	if (!r->p)
		return; /* it never began */
	fd = relay_give_up(r);
	fd_close(&fd);
}

/* Before the agent has said anything somebody else may serve in its place, over the same stream. */
static void relay_break(struct relay *r)
{
	if (r->greeted)
		relay_close(r);
	else
		r->broken = true;
}

static void relay_watch(struct relay *r)
{
	uint32_t events = 0;

	if (r->broken)
		return;
	if (r->running && !r->writing && !r->ended)
		events |= EPOLLIN;
	if (r->out.len && r->greeted)
		events |= EPOLLOUT;
	if (loop_mod(r->p->loop, &r->watch, events) < 0)
		relay_break(r);
}

/* ---- to the box ---- */

/* Call thread. */
static void relay_write(struct call *c)
{
	struct relay *r = LOOP_OWNER(c, struct relay, write);
	struct program *p = r->p;
	struct blx_error error = {0};

	if (r->in_len)
		r->write_code = p->api.stdin_write(p->exec, r->in, r->in_len, &error);
	else
		r->write_code = p->api.stdin_close(p->exec, &error);
	if (error.message)
		p->api.error_free(&error);
}

static void relay_written(struct call *c)
{
	struct relay *r = LOOP_OWNER(c, struct relay, write);

	r->writing = false;
	if (r->write_code != BLX_OK)
		relay_break(r);
	relay_watch(r);
}

static void relay_read(struct relay *r)
{
	ssize_t n =
	    recv(r->stream, r->in + PIECE_HEAD_LEN, sizeof(r->in) - PIECE_HEAD_LEN, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		r->ended = true;
	r->in_len = 0;
	if (n > 0) {
		piece_seal(&r->to, PIECE_DATA, r->in, (size_t)n);
		r->in_len = PIECE_HEAD_LEN + (size_t)n;
	}
	r->write.fn = relay_write;
	r->write.then = relay_written;
	r->writing = true;
	caller_post(r->p->caller, &r->write);
}

/* ---- from the box ---- */

static void relay_flush(struct relay *r)
{
	ssize_t n = 0;

	while (r->out.len && n >= 0)
		n = buf_send(&r->out, r->stream);
	if (n < 0 && n != -EAGAIN && n != -EINTR) {
		relay_close(r);
		return;
	}
	if (r->out.len == 0 && r->passing) {
		inbox_passed(r->p->inbox, r->passing);
		r->passing = 0;
	}
	relay_watch(r);
}

static void relay_on_stream(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct relay *r = LOOP_OWNER(w, struct relay, watch);

	(void)l;
	if (events & (EPOLLHUP | EPOLLERR)) { /* both ways are closed */
		relay_close(r);
		return;
	}
	if (events & EPOLLOUT)
		relay_flush(r);
	if ((events & EPOLLIN) && !r->writing && !r->ended && !r->broken)
		relay_read(r);
	relay_watch(r);
}

/* The first that comes must be a HELLO: anything else is some other program's word. */
static void relay_check_hello(struct relay *r)
{
	struct agent_head head;
	int rc = agent_get_head(buf_head(&r->out), r->out.len, &head);

	if (rc < 0 || (rc == 1 && head.type != AGENT_HELLO))
		relay_break(r);
	else
		r->greeted = rc == 1;
}

/* The worker is told why before it sees the stream's end. */
static void relay_fail(struct relay *r, int code)
{
	struct eng_done why = {.code = -code};

	if (code == -EPROTO)
		pieces_explain(&r->from, r->why, sizeof(r->why));
	else
		(void)snprintf(r->why, sizeof(r->why), "the agent's stream: %s", strerror(-code));
	log_error("box %s: %s", r->p->name, r->why);
	(void)snprintf(why.text, sizeof(why.text), "%s", r->why);
	if (r->greeted) /* who is not there any more needs no word */
		(void)eng_send(r->p->control.fd, ENG_DONE, ENG_SEQ_DIED, &why, NULL, 0, -1);
	relay_break(r);
}

void relay_output(struct relay *r, const uint8_t *bytes, size_t n)
{
	int rc;

	if (r->broken) {
		inbox_passed(r->p->inbox, n);
		return;
	}
	r->passing += n;
	rc = pieces_take(&r->from, (const char *)bytes, n, &r->out);
	if (rc < 0)
		relay_fail(r, rc);
	if (!r->greeted && !r->broken)
		relay_check_hello(r);
	if (r->greeted && !r->broken)
		relay_flush(r);
}

/* ---- its life ---- */

int relay_begin(struct relay *r, struct program *p, int stream)
{
	int rc;

	*r = (struct relay){.p = p, .stream = stream, .watch.fd = -1};
	piece_begin(&r->to);
	pieces_begin(&r->from);
	buf_init(&r->out, OUT_MAX);
	rc = fd_set_nonblock(stream);
	return rc < 0 ? rc : loop_add(p->loop, &r->watch, stream, 0, relay_on_stream);
}

void relay_run(struct relay *r)
{
	r->running = true;
	relay_watch(r);
}
