/* relay: between the worker's stream and the agent's command. sbx-boxlite; the loop. */
#include "drivers/boxlite/program/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "drivers/boxlite/program/program.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "wire/agent.h"
#include "wire/base64.h"

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

static void relay_read(struct relay *r)
{
	ssize_t n = recv(r->stream, r->in, sizeof(r->in), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		r->ended = true;
	r->in_len = n > 0 ? (size_t)n : 0;
	r->write.fn = relay_write;
	r->writing = true;
	caller_post(r->p->caller, &r->write);
}

void relay_written(struct relay *r)
{
	r->writing = false;
	if (r->write_code != BLX_OK)
		relay_break(r);
	relay_watch(r);
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

/* Whole groups of four, the last of which may be padded. */
static int decode_run(struct relay *r, const char *text, size_t n)
{
	size_t len = 0;
	uint8_t *bytes;
	int rc;

	if (n == 0)
		return 0;
	bytes = base64_decode(text, n, &len);
	if (!bytes)
		return -errno;
	rc = buf_append(&r->out, bytes, len);
	free(bytes);
	return rc;
}

/* Each piece ends where a padded group does. */
static int decode(struct relay *r, const char *text, size_t n)
{
	const char *pad;
	int rc = 0;

	while (rc == 0 && (pad = memchr(text, '=', n))) {
		size_t run = (size_t)(pad - text) / 4 * 4 + 4;

		rc = decode_run(r, text, run);
		text += run;
		n -= run;
	}
	return rc == 0 ? decode_run(r, text, n) : rc;
}

/* With what was left over from before, as far as it is whole groups. */
static int relay_decode(struct relay *r, const char *text, size_t n)
{
	size_t whole;
	int rc = 0;

	while (rc == 0 && n && r->text_len) {
		r->text[r->text_len++] = *text++;
		n--;
		if (r->text_len == sizeof(r->text)) {
			rc = decode_run(r, r->text, sizeof(r->text));
			r->text_len = 0;
		}
	}
	whole = n / 4 * 4;
	if (rc == 0)
		rc = decode(r, text, whole);
	if (rc == 0 && n > whole) {
		memcpy(r->text, text + whole, n - whole);
		r->text_len = n - whole;
	}
	return rc;
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

void relay_output(struct relay *r, const uint8_t *bytes, size_t n)
{
	if (r->broken) {
		inbox_passed(r->p->inbox, n);
		return;
	}
	r->passing += n;
	if (relay_decode(r, (const char *)bytes, n) < 0) {
		log_warn("box %s: what the agent says is no base64", r->p->name);
		relay_break(r);
	}
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
	buf_init(&r->out, OUT_MAX);
	rc = fd_set_nonblock(stream);
	return rc < 0 ? rc : loop_add(p->loop, &r->watch, stream, 0, relay_on_stream);
}

void relay_run(struct relay *r)
{
	r->running = true;
	relay_watch(r);
}
