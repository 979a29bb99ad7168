/*
 * cli_attach: the session of an attached client. sbxctl; when it dies its guard sets the terminal
 * back and kills the execution.
 *
 * One loop over five descriptors, none of which is ever waited for alone: output that nobody takes
 * must not keep input, a new size of the window or a sign of life from going out.
 */
#include "tools/cli_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "tools/ws_client.h"

#define ATOMIC_OUT 4096U /* what a pipe that polls writable takes without blocking */
#define ALIVE_S 15	 /* the service gives up who says nothing for 45 */

enum wake {
	WAKE_SOCK,
	WAKE_STDIN,
	WAKE_STDOUT,
	WAKE_STDERR,
	WAKE_SIGNAL, /* one that ends us */
	WAKE_WINDOW, /* SIGWINCH, SIGTSTP, SIGCONT */
	WAKES,
};

/* ---- our own side ---- */

static int put_out(struct cli_session *a, int stream)
{
	struct buf *b = &a->out[stream];
	size_t n = b->len < ATOMIC_OUT ? b->len : ATOMIC_OUT;
	ssize_t written = write(stream + 1, buf_head(b), n);

	if (written >= 0) {
		buf_consume(b, (size_t)written);
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	a->closed_out = true;
	buf_clear(&a->out[0]);
	buf_clear(&a->out[1]);
	return errno == EPIPE || errno == EIO ? -EPIPE : -errno;
}

/* Stopped from outside, we give the terminal back meanwhile. */
static int take_window_signals(struct cli_session *a)
{
	struct signalfd_siginfo info;
	int rc = 0;

	while (rc == 0 && read(a->window_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP) {
			cli_terminal_leave(&a->terminal);
			(void)raise(SIGSTOP); /* goes on here */
		}
		if (info.ssi_signo != SIGWINCH) {
			a->terminal.raw = false; /* whoever was at it meanwhile */
			rc = cli_terminal_enter(&a->terminal);
		}
		if (rc == 0)
			rc = cli_session_tell_size(a);
	}
	return rc;
}

static int catch_window_signals(struct cli_session *a)
{
	sigset_t set;

	a->window_fd = -1;
	if (a->terminal.fd < 0)
		return 0;
	(void)sigemptyset(&set); /* these fail only for numbers that are no signals */
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGTSTP);
	(void)sigaddset(&set, SIGCONT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	a->window_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->window_fd < 0 ? -errno : 0;
}

/* ---- the loop ---- */

static bool is_over(const struct cli_session *a)
{
	return (a->lost || a->close_code != CLI_SESSION_OPEN) && a->out[0].len == 0 &&
	       a->out[1].len == 0;
}

static void choose(const struct cli_session *a, struct pollfd p[WAKES])
{
	bool ended = a->lost || a->close_code != CLI_SESSION_OPEN;
	bool room = a->out[0].len < CLI_SESSION_HIGH && a->out[1].len < CLI_SESSION_HIGH;

	p[WAKE_SOCK] = (struct pollfd){.fd = ended ? -1 : a->sock,
	    .events = (short)((room ? POLLIN : 0) | (a->to.len ? POLLOUT : 0))};
	p[WAKE_STDIN] = (struct pollfd){
	    .fd = a->stdin_open && !ended && a->to.len < CLI_SESSION_HIGH ? STDIN_FILENO : -1,
	    .events = POLLIN};
	p[WAKE_STDOUT] =
	    (struct pollfd){.fd = a->out[0].len ? STDOUT_FILENO : -1, .events = POLLOUT};
	p[WAKE_STDERR] =
	    (struct pollfd){.fd = a->out[1].len ? STDERR_FILENO : -1, .events = POLLOUT};
	p[WAKE_SIGNAL] = (struct pollfd){.fd = a->cli->signal_fd, .events = POLLIN};
	p[WAKE_WINDOW] = (struct pollfd){.fd = a->window_fd, .events = POLLIN};
}

static int wait_ms(const struct cli_session *a)
{
	uint64_t now = clock_now_ns();

	return a->alive_ns > now ? (int)((a->alive_ns - now) / NS_PER_MS) + 1 : 0;
}

static int step(struct cli_session *a, const struct pollfd p[WAKES], struct err *err)
{
	int rc = 0;

	if (p[WAKE_SIGNAL].revents)
		return -ECANCELED;
	if (p[WAKE_WINDOW].revents)
		rc = take_window_signals(a);
	if (rc == 0 && p[WAKE_SOCK].revents & (POLLIN | POLLHUP | POLLERR))
		rc = cli_session_receive(a, err);
	if (rc == 0 && p[WAKE_STDOUT].revents)
		rc = put_out(a, 0);
	if (rc == 0 && p[WAKE_STDERR].revents)
		rc = put_out(a, 1);
	if (rc == 0 && p[WAKE_STDIN].revents)
		rc = cli_session_take_stdin(a);
	if (rc == 0)
		rc = cli_session_take_frames(a, err);
	if (rc == 0 && clock_now_ns() >= a->alive_ns) {
		a->alive_ns = clock_now_ns() + ALIVE_S * NS_PER_S;
		rc = ws_client_put(&a->to, WS_PONG, NULL, 0);
	}
	if (a->to.len > 0)
		cli_session_send(a);
	return rc;
}

/* To the end of the connection. 0, -ECANCELED (a signal), -EPIPE, or -errno with *err. */
static int converse(struct cli_session *a, struct err *err)
{
	struct pollfd p[WAKES];
	int rc = cli_session_take_frames(a, err); /* what came with the answer to the upgrade */

	while (rc == 0 && !is_over(a)) {
		choose(a, p);
		if (poll(p, WAKES, wait_ms(a)) < 0 && errno != EINTR)
			return err_sys(err, errno, "waiting");
		rc = step(a, p, err);
	}
	return rc;
}

/* Stopped for so long that the service gave us up: the execution has gone on, and so do we. */
static bool can_go_on(struct cli_session *a, int rc)
{
	if (rc != 0 || a->close_code != WS_POLICY || a->status >= 0)
		return false;
	fd_close(&a->sock);
	buf_free(&a->from);
	buf_clear(&a->to);
	a->close_code = CLI_SESSION_OPEN;
	return cli_attach_again(a->cli, &a->execution, &a->sock, &a->from) == CLI_OK &&
	       cli_session_tell_size(a) == 0;
}

static int fail(struct cli_session *a, const struct err *err)
{
	cli_attach_kill(a->cli, &a->execution);
	return cli_fail(a->box, err);
}

/* What it all means for our exit status; the terminal is as it was. */
static int conclude(struct cli_session *a, int rc, struct err *err)
{
	int sig = cli_caught_signal(a->cli);

	if (rc < 0 && (sig || rc == -EPIPE)) {
		cli_attach_kill(a->cli, &a->execution);
		return CLI_SIGNAL + (sig ? sig : SIGPIPE);
	}
	if (rc < 0) {
		if (err->code == 0)
			(void)err_sys(err, -rc, "the session");
		return fail(a, err);
	}
	if (a->error[0]) {
		(void)err_set(err, EIO, "%s", a->error);
		(void)cli_fail(a->box, err);
	}
	if (a->close_code == WS_NORMAL && a->status >= 0)
		return a->status;
	if (!a->error[0]) {
		(void)err_set(err, ECONNRESET, "the connection ended before the command did");
		return fail(a, err);
	}
	return CLI_FAILED;
}

static int run_session(struct cli_session *a, struct err *err)
{
	int rc = catch_window_signals(a);

	if (rc == 0 && a->tty)
		rc = cli_terminal_enter(&a->terminal);
	if (rc == 0)
		rc = cli_session_tell_size(a); /* it may have changed since the start */
	do {
		a->alive_ns = clock_now_ns() + ALIVE_S * NS_PER_S;
		if (rc == 0)
			rc = converse(a, err);
	} while (can_go_on(a, rc));
	cli_terminal_leave(&a->terminal);
	fd_close(&a->window_fd);
	return rc;
}

int cli_attach_run(
    const struct cli *cli, const struct cli_command_line *line, const struct cli_box *box)
{
	struct cli_session a = {.cli = cli,
	    .box = box->id,
	    .tty = line->tty,
	    .sock = -1,
	    .window_fd = -1,
	    .stdin_open = true,
	    .status = -1,
	    .terminal = {.fd = -1}};
	struct cli_guard guard = {.pipe = -1};
	struct err err = {0};
	int status = cli_attach_start(cli, line, box, &a.execution, &a.sock, &a.from);
	int rc;

	if (status != CLI_OK)
		return status;
	buf_init(&a.to, CLI_SESSION_BUFFER);
	buf_init(&a.out[0], CLI_SESSION_BUFFER);
	buf_init(&a.out[1], CLI_SESSION_BUFFER);
	if (a.tty)
		cli_terminal_look(&a.terminal);
	rc = cli_guard_start(&guard, cli, &a.execution, &a.terminal);
	if (rc == 0)
		rc = run_session(&a, &err);
	status = conclude(&a, rc, &err);
	cli_guard_end(&guard);
	fd_close(&a.sock);
	buf_free(&a.from);
	buf_free(&a.to);
	buf_free(&a.out[0]);
	buf_free(&a.out[1]);
	return status;
}
