/* run: a jail's whole life, with bounds. `sbx-worker image`; if it dies the jail does. */
#include "drivers/image/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define SAID_MAX 4096U /* of what it says of its failure; the end counts */
#define REASON_MAX 200
#define PIECE 4096U

/* ---- what it said ---- */

static const char *last_line(const char *said, size_t *len)
{
	const char *line = "";

	*len = 0;
	while (*said) {
		size_t n = strcspn(said, "\n");

		if (strspn(said, " \t") < n) {
			line = said;
			*len = n;
		}
		said += n + (said[n] == '\n');
	}
	return line;
}

/* The text of msg="...", where the line is of that kind; else the line. */
static size_t unquote(const char *line, size_t len, char *out, size_t size)
{
	const char *end = line + len;
	const char *msg = memmem(line, len, "msg=\"", 5);
	size_t n = 0;
	bool quoted = msg != NULL;

	for (const char *at = quoted ? msg + 5 : line; at < end && n + 1 < size; at++) {
		if (quoted && *at == '"')
			break;
		if (quoted && *at == '\\' && at + 1 < end)
			at++;
		if ((unsigned char)*at >= ' ' && *at != 0x7f)
			out[n++] = *at;
	}
	out[n] = '\0';
	return n;
}

/* What the programs say before they come to the point, each time: which image it is about. */
static const char *skip_known(const char *text)
{
	static const struct {
		const char *begin;
		const char *end;
	} known[] = {
	    {"Error parsing image name ", "\": "},
	    {"initializing source ", ": "},
	    {"Error retrieving manifest for image: ", ""},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i].begin);
		const char *end =
		    strncmp(text, known[i].begin, len) ? NULL : strstr(text + len, known[i].end);

		if (end)
			text = end + strlen(known[i].end);
	}
	return text;
}

void image_run_reason(const char *said, char *out, size_t size)
{
	char text[SAID_MAX];
	size_t len;
	const char *line = last_line(said, &len);
	const char *from = text;
	size_t n = unquote(line, len, text, sizeof(text));

	from += strspn(from, " \t");
	from = skip_known(from);
	n -= (size_t)(from - text);
	/* The end is what is particular. */
	if (n >= size)
		(void)snprintf(out, size, "...%s", from + n - (size - 4));
	else
		(void)snprintf(out, size, "%s", from);
}

static int code_of(const char *reason)
{
	static const struct {
		const char *text;
		int code;
	} codes[] = {
	    {"no space left on device", ENOSPC},
	    {"file too large", EFBIG},
	    {"manifest unknown", ENOENT},
	    {"name unknown", ENOENT},
	    {"no such file or directory", ENOENT},
	    {"unauthorized", EACCES},
	    {"permission denied", EACCES},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcasestr(reason, codes[i].text))
			return codes[i].code;
	}
	return EIO;
}

static int failed(const char *name, int status, struct buf *said, struct err *err)
{
	char reason[REASON_MAX];
	const char *text = buf_terminate(said) == 0 ? (const char *)buf_head(said) : "";

	if (WIFSIGNALED(status))
		return err_set(err, EIO, "%s was killed by signal %d", name, WTERMSIG(status));
	image_run_reason(text, reason, sizeof(reason));
	return err_set(
	    err, code_of(text), "%s: %s", name, reason[0] ? reason : "failed without a word");
}

/* ---- running ---- */

struct running {
	struct jail jail;
	int out;
	int err;
	struct buf *printed;
	struct buf said;
	bool too_much;
	bool ended;
};

/* Takes what is there; the end of it closes *fd. Of what it said the end is kept. */
static void drain(struct running *r, int *fd, struct buf *to)
{
	char dropped[PIECE];
	ssize_t n;

	if (to == &r->said && buf_room(to) < PIECE)
		buf_consume(to, to->len / 2);
	if (to && buf_room(to) > 0) {
		n = buf_read_fd(to, *fd, PIECE);
	} else {
		n = read(*fd, dropped, sizeof(dropped));
		if (n < 0)
			n = -errno;
		r->too_much |= n > 0 && to;
	}
	if (n <= 0 && n != -EINTR)
		fd_close(fd);
}

/* One round. 0, or -errno with *err. */
static int look(struct running *r, const struct image_watch *w, struct err *err)
{
	struct pollfd p[] = {
	    {.fd = r->jail.pidfd, .events = POLLIN},
	    {.fd = r->out, .events = POLLIN},
	    {.fd = r->err, .events = POLLIN},
	    {.fd = w->hangup},
	};

	if (poll(p, sizeof(p) / sizeof(p[0]), RUN_TICK_MS) < 0 && errno != EINTR)
		return err_sys(err, errno, "wait for a program");
	if (p[1].revents)
		drain(r, &r->out, r->printed);
	if (p[2].revents)
		drain(r, &r->err, &r->said);
	if (p[3].revents & (POLLHUP | POLLERR))
		return err_set(err, EPIPE, "nobody wants it any more");
	if (r->too_much)
		return err_set(err, EFBIG, "it says more than is believable");
	r->ended = p[0].revents != 0 && r->out < 0 && r->err < 0;
	return 0;
}

static int run_on(struct running *r, const char *name, const struct image_watch *w, struct err *err)
{
	uint64_t next_tick = 0;
	int rc = 0;

	while (rc == 0 && !r->ended) {
		rc = look(r, w, err);
		if (rc < 0 || r->ended)
			break;
		if (clock_now_ns() >= w->deadline_ns)
			return err_set(err, ETIMEDOUT, "%s did not end in time", name);
		if (w->tick && clock_now_ns() >= next_tick) {
			next_tick = clock_now_ns() + RUN_TICK_MS * NS_PER_MS;
			rc = w->tick(w->ctx, err);
		}
	}
	return rc;
}

int image_run(struct jail_spec *spec, const char *name, struct buf *out,
    const struct image_watch *watch, struct err *err)
{
	struct running r = {.out = -1, .err = -1, .printed = out};
	int outs[2];
	int errs[2] = {-1, -1};
	int status;
	int rc;

	if (pipe2(outs, O_CLOEXEC) < 0)
		return err_sys(err, errno, "make a pipe");
	if (pipe2(errs, O_CLOEXEC) < 0) {
		rc = err_sys(err, errno, "make a pipe");
	} else {
		spec->out = outs[1];
		spec->err = errs[1];
		rc = jail_start(spec, &r.jail, err);
	}
	fd_close(&outs[1]);
	fd_close(&errs[1]);
	r.out = outs[0];
	r.err = errs[0];
	if (rc == 0) {
		FAULT_POINT("image.jailed");
		buf_init(&r.said, 2 * SAID_MAX);
		rc = run_on(&r, name, watch, err);
		status = jail_end(&r.jail);
		if (rc == 0 && status != 0)
			rc = failed(name, status, &r.said, err);
		buf_free(&r.said);
	}
	fd_close(&r.out);
	fd_close(&r.err);
	return rc;
}
