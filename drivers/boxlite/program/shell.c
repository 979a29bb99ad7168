/* shell: the worker's stream, served by the box's own programs. sbx-boxlite; the loop. */
#include "drivers/boxlite/program/shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/fd.h"
#include "lib/log.h"

#define SHELL_IN_MAX (AGENT_HEAD_LEN + AGENT_DATA_MAX)
#define SHELL_OUT_MAX (8U * 1024 * 1024)
#define SHELL_OUT_LOW (1024U * 1024) /* above it no data is added */

static void shell_end(struct shell *s)
{
	int fd = s->watch.fd;

	s->over = true;
	loop_del(s->p->loop, &s->watch);
	fd_close(&fd);
}

static void shell_watch(struct shell *s)
{
	uint32_t events = EPOLLIN | (s->out.len ? EPOLLOUT : 0U);

	if (!s->over && loop_mod(s->p->loop, &s->watch, events) < 0)
		shell_end(s);
}

bool shell_has_room(const struct shell *s)
{
	return s->out.len < SHELL_OUT_LOW;
}

void shell_send(struct shell *s, enum agent_type type, uint8_t arg, uint32_t channel,
    const void *payload, size_t n)
{
	uint8_t head[AGENT_HEAD_LEN];

	if (s->over)
		return;
	agent_put_head(head, type, 0, arg, channel, (uint32_t)n);
	if (buf_append(&s->out, head, sizeof(head)) < 0 || buf_append(&s->out, payload, n) < 0)
		shell_end(s);
	else
		shell_watch(s);
}

/* Nobody sees what runs in the box, so each process but the first is told. */
static void shell_stop(struct shell *s, const uint8_t *payload, size_t n)
{
	struct agent_stop stop;

	if (n != sizeof(stop)) {
		shell_end(s);
		return;
	}
	memcpy(&stop, payload, sizeof(stop));
	for (size_t i = 0; !(stop.flags & AGENT_STOP_CANCEL) && i < AGENT_CHANNELS_MAX; i++) {
		if (s->chans[i] && !s->chans[i]->closing) {
			s->chans[i]->closing = true;
			shell_run_drop(s->chans[i]);
		}
	}
	shell_send(s, AGENT_PONG, 0, 0, &stop.nonce, sizeof(stop.nonce));
}

static int shell_frame(struct shell *s, const struct agent_head *h, const uint8_t *payload)
{
	switch (h->type) {
	case AGENT_PING:
	case AGENT_SYNC: /* what is written is the box's to keep: there is nothing of ours */
		shell_send(s, AGENT_PONG, 0, 0, payload, h->size);
		return 0;
	case AGENT_STOP:
		shell_stop(s, payload, h->size);
		return 0;
	default:
		return shell_chan_frame(s, h, payload);
	}
}

static void shell_read(struct shell *s)
{
	ssize_t n = buf_recv(&s->in, s->watch.fd, buf_room(&s->in));
	struct agent_head head;
	int rc = 1;

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		shell_end(s);
		return;
	}
	while (rc == 1 && !s->over) {
		rc = agent_get_head(buf_head(&s->in), s->in.len, &head);
		if (rc != 1 || s->in.len < AGENT_HEAD_LEN + head.size)
			break;
		rc = shell_frame(s, &head, buf_head(&s->in) + AGENT_HEAD_LEN) < 0 ? -EBADMSG : 1;
		buf_consume(&s->in, AGENT_HEAD_LEN + head.size);
	}
	if (rc < 0) {
		log_error("box %s: the worker breaks the agent's contract", s->p->name);
		shell_end(s);
	}
}

static void shell_flush(struct shell *s)
{
	ssize_t n = buf_send(&s->out, s->watch.fd);

	if (n < 0 && n != -EAGAIN && n != -EINTR)
		shell_end(s);
	for (size_t i = 0; !s->over && i < AGENT_CHANNELS_MAX && shell_has_room(s); i++) {
		if (s->chans[i])
			shell_chan_pump(s->chans[i]);
	}
}

static void shell_on_stream(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct shell *s = LOOP_OWNER(w, struct shell, watch);

	(void)l;
	if (events & (EPOLLHUP | EPOLLERR))
		shell_end(s);
	if (!s->over && (events & EPOLLOUT))
		shell_flush(s);
	if (!s->over && (events & EPOLLIN))
		shell_read(s);
	shell_watch(s);
}

/* ---- what every box has, and the agent would make ---- */

/* Call thread. */
static int post_mkdir(struct ask *a, struct blx_error *error)
{
	static const char *const args[] = {"-c",
	    "cd /mnt 2>&- || { mkdir /mnt && cd /mnt; } || exit 1; mkdir -p user-data && cd "
	    "user-data && "
	    "mkdir -p -m 0777 outputs uploads workspace ../skills"};
	const struct blx_command cmd = {
	    .command = "/bin/sh",
	    .args = args,
	    .argc = 2,
	    .workdir = "/",
	    .user = "0:0",
	};
	struct program *p = a->p;
	int code = p->api.exec(p->box, &cmd, &p->mkdir, error);

	return code == BLX_OK ? p->api.on_exit(p->mkdir, ask_on_exit, ask_ticket(a), error) : code;
}

/* Call thread. */
static int post_mkdir_end(struct ask *a, struct blx_error *error)
{
	(void)error;
	if (a->p->mkdir)
		a->p->api.exec_free(a->p->mkdir);
	a->p->mkdir = NULL;
	return BLX_OK;
}

/* A root that cannot be written to has none of them: then there is no workspace. */
static void make_directories(struct program *p)
{
	struct ask making = {.what = "make directories", .post = post_mkdir, .later = true};
	struct ask ending = {.what = "end what made directories", .post = post_mkdir_end};
	struct answer got = {0};
	struct answer ended = {0};
	struct err ignored = {0};

	p->workspace = ask(p, &making, &got, &ignored) == 0 && got.number == 0;
	(void)ask(p, &ending, &ended, &ignored); /* it has no error */
}

/* ---- for program and start ---- */

int shell_begin(struct program *p, struct err *err)
{
	const struct agent_hello hello = {.version = AGENT_VERSION, .pid = 1};
	struct shell *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;
	int fd;

	make_directories(p);
	fd = relay_give_up(&p->relay);
	if (rc == 0) {
		s->p = p;
		buf_init(&s->in, SHELL_IN_MAX);
		buf_init(&s->out, SHELL_OUT_MAX);
		rc = loop_add(p->loop, &s->watch, fd, EPOLLIN, shell_on_stream);
	}
	if (rc < 0) {
		free(s);
		fd_close(&fd);
		return err_sys(err, -rc, "serve by the box's shell");
	}
	shell_send(s, AGENT_HELLO, 0, 0, &hello, sizeof(hello));
	p->shell = s;
	return 0;
}

bool shell_is_over(const struct shell *s)
{
	return s->over;
}

/* ---- output ---- */

static void shell_output(struct shell_chan *c, const struct note *n)
{
	uint8_t stream = (uint8_t)n->code;
	int rc = 0;

	c->passing += n->len;
	if (c->script && stream == AGENT_STDOUT)
		rc = c->script->output(c, (const char *)n->bytes, n->len);
	else
		rc = buf_append(&c->output[stream], n->bytes, n->len);
	if (rc < 0)
		shell_chan_fail(c, AGENT_E_IO, "what the box's programs say is not understood");
	else
		shell_chan_pump(c);
}

void shell_note(struct shell *s, const struct note *n)
{
	struct shell_chan *c = shell_chan_by_ticket(s, n->ticket);

	if (n->kind == NOTE_OUTPUT && (!c || c->ended)) {
		inbox_passed(s->p->inbox, n->len);
	} else if (n->kind == NOTE_OUTPUT) {
		shell_output(c, n);
	} else if (c) {
		c->exited = true;
		c->status = n->code;
		shell_chan_pump(c);
	}
}
