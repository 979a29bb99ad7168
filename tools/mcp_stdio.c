/* mcp_stdio: the client at the other end of stdin and stdout. sbx-mcp; when it dies the client sees
 * its pipes close. */
#include "tools/mcp_stdio.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "tools/mcp_call.h"

#define READ_SIZE 65536U
#define OUT_HIGH (1024U * 1024U) /* a client that does not read is not read either */
#define LEAVE_S 7		 /* for the last messages to be read, and the box to be closed */
#define STEP_NS (3600 * NS_PER_S)

struct stdio {
	struct mcp *m;
	struct loop *loop;
	struct loop_watch in;
	struct loop_watch out;
	struct loop_watch stop;
	struct loop_timer again; /* for what cannot be watched: files are always ready */
	struct loop_timer late;
	struct mcp_lines lines;
	int in_fd;
	int out_fd;
	bool in_is_file;
	bool leaving; /* no line is taken any more */
	bool done;
};

static void read_on(struct stdio *s);
static void leave(struct stdio *s);

static struct stdio *owner_of(struct mcp *m)
{
	return m->owner;
}

/* ---- out ---- */

static void on_out(struct loop *l, struct loop_watch *w, uint32_t events);

/* Whether everything that was to be done before the end is. */
static void look_at_end(struct stdio *s)
{
	if (s->leaving && s->m->out.len == 0 && !s->m->box.ending)
		s->done = true;
}

static void client_gone(struct stdio *s, int code)
{
	if (code != EPIPE)
		log_error("stdout: %s", strerror(code));
	buf_clear(&s->m->out);
	loop_del(s->loop, &s->out);
	leave(s);
}

static void write_on(struct stdio *s)
{
	while (s->m->out.len > 0) {
		ssize_t n = buf_write_fd(&s->m->out, s->out_fd);

		if (n == -EAGAIN && s->out.fd < 0)
			n = loop_add(s->loop, &s->out, s->out_fd, EPOLLOUT, on_out);
		else if (n == -EAGAIN)
			n = 0;
		else if (n > 0 || n == -EINTR)
			continue;
		if (n < 0)
			client_gone(s, (int)-n);
		return;
	}
	loop_del(s->loop, &s->out);
	buf_trim(&s->m->out, OUT_HIGH);
	look_at_end(s);
}

static void on_said(struct mcp *m)
{
	struct stdio *s = owner_of(m);

	if (m->broken)
		client_gone(s, ENOMEM);
	else if (s->out.fd < 0)
		write_on(s);
	else
		look_at_end(s);
}

static void on_out(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct stdio *s = LOOP_OWNER(w, struct stdio, out);

	(void)l;
	(void)events; /* whatever it is, writing tells */
	write_on(s);
	if (!s->leaving)
		read_on(s);
}

/* ---- in ---- */

static void on_in(struct loop *l, struct loop_watch *w, uint32_t events)
{
	(void)l;
	(void)events; /* whatever it is, reading tells */
	read_on(LOOP_OWNER(w, struct stdio, in));
}

static void on_again(struct loop *l, struct loop_timer *t)
{
	(void)l;
	read_on(LOOP_OWNER(t, struct stdio, again));
}

static bool is_choked(const struct stdio *s)
{
	return s->m->out.len > OUT_HIGH;
}

/* Takes the lines that are here. False when the client has to read first. */
static bool take_lines(struct stdio *s)
{
	const uint8_t *line = NULL;
	size_t n = 0;
	int rc;

	while (!s->leaving && !is_choked(s)) {
		rc = mcp_lines_next(&s->lines, &line, &n);
		if (rc == 0)
			return true;
		if (rc < 0)
			mcp_refuse_line(s->m, MCP_LINE_MAX);
		else
			mcp_take_line(s->m, line, n);
	}
	return false;
}

/* To be called again when there is more, or when there is room. */
static void wait_for_more(struct stdio *s, bool want)
{
	int rc = 0;

	if (!want)
		loop_del(
		    s->loop, &s->in); /* with no events it would still tell of an end, for ever */
	else if (s->in_is_file)
		rc = loop_timer_set(s->loop, &s->again, loop_now(s->loop), on_again);
	else if (s->in.fd < 0)
		rc = loop_add(s->loop, &s->in, s->in_fd, EPOLLIN, on_in);
	if (rc < 0)
		leave(s);
}

static void read_on(struct stdio *s)
{
	ssize_t n;

	if (s->leaving)
		return;
	if (!take_lines(s)) {
		wait_for_more(s, false);
		return;
	}
	buf_trim(&s->lines.b, OUT_HIGH);
	n = buf_read_fd(&s->lines.b, s->in_fd, READ_SIZE);
	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR)) {
		if (n < 0)
			log_error("stdin: %s", strerror((int)-n));
		leave(s);
		return;
	}
	wait_for_more(s, take_lines(s) && !s->leaving);
}

/* ---- the end ---- */

static void on_stop(struct loop *l, struct loop_watch *w, uint32_t events)
{
	(void)l;
	(void)events;
	leave(LOOP_OWNER(w, struct stdio, stop));
}

static void on_late(struct loop *l, struct loop_timer *t)
{
	struct stdio *s = LOOP_OWNER(t, struct stdio, late);

	(void)l;
	log_warn("the box or the client did not let go in time");
	s->done = true;
}

/* Commands under way are ended; the box is given back. */
static void leave(struct stdio *s)
{
	if (s->leaving)
		return;
	s->leaving = true;
	loop_del(s->loop, &s->in);
	loop_del(s->loop, &s->stop);
	loop_timer_clear(s->loop, &s->again);
	if (loop_timer_set(s->loop, &s->late, loop_now(s->loop) + LEAVE_S * NS_PER_S, on_late) < 0)
		s->done = true;
	mcp_calls_drop(s->m, true);
	(void)mcp_box_end(s->m);
	look_at_end(s);
}

/* A pipe's or socket's end is ours alone; a terminal we share, and never wait for it. */
static bool can_wait(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static int begin(struct stdio *s, int stop_fd, struct err *err)
{
	int rc = loop_add(s->loop, &s->stop, stop_fd, EPOLLIN, on_stop);

	if (rc < 0)
		return err_sys(err, -rc, "signals");
	if (can_wait(s->out_fd) && fd_set_nonblock(s->out_fd) < 0)
		return err_set(err, EIO, "stdout cannot be made non-blocking");
	rc = loop_add(s->loop, &s->in, s->in_fd, EPOLLIN, on_in);
	s->in_is_file = rc == -EPERM; /* always ready, and nothing to be watched */
	if (s->in_is_file)
		rc = loop_timer_set(s->loop, &s->again, loop_now(s->loop), on_again);
	else if (rc == 0 && can_wait(s->in_fd) && fd_set_nonblock(s->in_fd) < 0)
		rc = -EIO;
	return rc < 0 ? err_sys(err, -rc, "stdin") : 0;
}

int mcp_serve(struct mcp *m, int in, int out, int stop_fd, struct err *err)
{
	struct stdio s = {.m = m,
	    .loop = m->loop,
	    .in.fd = -1,
	    .out.fd = -1,
	    .stop.fd = -1,
	    .in_fd = in,
	    .out_fd = out};
	int rc;

	mcp_lines_init(&s.lines, MCP_LINE_MAX);
	m->owner = &s;
	m->said = on_said;
	rc = begin(&s, stop_fd, err);
	while (rc == 0 && !s.done) {
		rc = loop_step(s.loop, STEP_NS);
		if (rc < 0)
			(void)err_sys(err, -rc, "epoll");
	}
	m->said = NULL;
	loop_del(s.loop, &s.in);
	loop_del(s.loop, &s.out);
	loop_del(s.loop, &s.stop);
	loop_timer_clear(s.loop, &s.again);
	loop_timer_clear(s.loop, &s.late);
	mcp_lines_free(&s.lines);
	return rc;
}
