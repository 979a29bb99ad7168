/*
 * command_io: the bytes of a command: stdin under the window we gave, stdout and stderr under the
 * worker's credit. sbx-guest; if we die here PID 1 is dead and the kernel ends the box.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "guest/command.h"
#include "guest/mux.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define TTY_END_OF_FILE '\x04'

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* pipes and terminals: nothing is lost */
	*fd = -1;
}

void command_close_child_fds(struct command *cmd)
{
	for (int i = 0; i < 3; i++) {
		if (cmd->tty && i > 0)
			cmd->child_fd[i] = -1;
		close_fd(&cmd->child_fd[i]);
	}
}

static void close_stdin(struct command *cmd)
{
	if (cmd->tty)
		cmd->fd[0] = -1;
	close_fd(&cmd->fd[0]);
}

void command_close_fds(struct command *cmd)
{
	close_stdin(cmd);
	close_fd(&cmd->fd[1]);
	close_fd(&cmd->fd[2]);
	if (cmd->in != NULL)
		(void)munmap(cmd->in, AGENT_WINDOW); /* our own mapping */
	cmd->in = NULL;
}

static int open_pipe(int *ours, int *childs, bool we_write)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0)
		return -errno;
	*ours = p[we_write];
	*childs = p[!we_write];
	return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

static int open_tty(struct command *cmd, uint16_t cols, uint16_t rows)
{
	struct winsize size = {.ws_col = cols, .ws_row = rows};
	int unlocked = 0;
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	cmd->tty = true;
	cmd->fd[0] = fd;
	cmd->fd[1] = fd;
	if (ioctl(fd, TIOCSPTLCK, &unlocked) != 0)
		return -errno;
	if (size.ws_col != 0 && size.ws_row != 0 && ioctl(fd, TIOCSWINSZ, &size) != 0)
		return -errno;
	fd = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		cmd->child_fd[i] = fd;
	return 0;
}

int command_open_stdio(struct command *cmd, uint32_t flags, uint16_t cols, uint16_t rows)
{
	int rc;

	if ((flags & AGENT_EXEC_TTY) != 0)
		return open_tty(cmd, cols, rows);
	if ((flags & AGENT_EXEC_NO_STDIN) == 0) {
		rc = open_pipe(&cmd->fd[0], &cmd->child_fd[0], true);
		if (rc != 0)
			return rc;
	}
	rc = open_pipe(&cmd->fd[1], &cmd->child_fd[1], false);
	return rc != 0 ? rc : open_pipe(&cmd->fd[2], &cmd->child_fd[2], false);
}

/* Writes to stdin. The count taken; all of it when nobody will ever read it. */
static size_t write_stdin(struct command *cmd, const uint8_t *bytes, size_t n)
{
	ssize_t done;

	if (cmd->fd[0] < 0)
		return n;
	do {
		done = write(cmd->fd[0], bytes, n);
	} while (done < 0 && errno == EINTR);
	if (done > 0)
		cmd->line_begun = bytes[done - 1] != '\n' && bytes[done - 1] != '\r';
	if (done >= 0)
		return (size_t)done;
	if (errno == EAGAIN)
		return 0;
	close_stdin(cmd); /* EPIPE, or a terminal that hung up */
	return n;
}

/* For a terminal its character, which first only ends a line that was begun. */
static void finish_stdin(struct command *cmd)
{
	static const uint8_t ends[] = {TTY_END_OF_FILE, TTY_END_OF_FILE};

	if (cmd->tty && !cmd->ending) {
		cmd->eofs = cmd->line_begun ? 2 : 1;
		cmd->ending = true;
	}
	if (cmd->eofs > 0)
		cmd->eofs = (uint8_t)(cmd->eofs - write_stdin(cmd, ends, cmd->eofs));
	if (cmd->eofs == 0)
		close_stdin(cmd);
}

int command_feed(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n)
{
	struct command *cmd = &c->u.command;
	size_t done = 0;
	size_t tail;
	size_t first;

	if (cmd->in_len == 0)
		done = write_stdin(cmd, bytes, n);
	mux_consumed(g, c, done);
	bytes += done;
	n -= done;
	if (n == 0)
		return 0;
	if (cmd->in == NULL) {
		void *p = mmap(
		    NULL, AGENT_WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return -ENOMEM;
		cmd->in = p;
		cmd->in_head = 0;
	}
	/* The allowance was checked: n fits. */
	tail = (cmd->in_head + cmd->in_len) % AGENT_WINDOW;
	first = AGENT_WINDOW - tail < n ? AGENT_WINDOW - tail : n;
	memcpy(cmd->in + tail, bytes, first);
	memcpy(cmd->in, bytes + first, n - first);
	cmd->in_len += (uint32_t)n;
	return 0;
}

void command_feed_more(struct guest *g, struct channel *c)
{
	struct command *cmd = &c->u.command;

	while (cmd->in_len > 0) {
		size_t n = AGENT_WINDOW - cmd->in_head;
		size_t done;

		if (n > cmd->in_len)
			n = cmd->in_len;
		done = write_stdin(cmd, cmd->in + cmd->in_head, n);
		if (done == 0)
			return;
		cmd->in_head = (uint32_t)((cmd->in_head + done) % AGENT_WINDOW);
		cmd->in_len -= (uint32_t)done;
		mux_consumed(g, c, done);
	}
	if (c->eof)
		finish_stdin(cmd);
}

void command_read(struct guest *g, struct channel *c, int s)
{
	struct command *cmd = &c->u.command;

	while (cmd->fd[s] >= 0 && c->credit[s] > 0) {
		size_t max;
		uint8_t *to = out_data_room(&g->out, &max);
		ssize_t n;

		if (to == NULL)
			return;
		if (max > c->credit[s])
			max = (size_t)c->credit[s];
		n = read(cmd->fd[s], to, max);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 && cmd->tty && !cmd->exited) {
			/* Nobody has it open: for now, or because the command is about to exit,
			 * and to close our end would end it by a signal. */
			cmd->rest_until = g->now + COMMAND_TTY_REST_NS;
			return;
		}
		if (n <= 0) { /* EIO from a terminal is its end of file */
			if (cmd->tty)
				cmd->fd[0] = -1;
			close_fd(&cmd->fd[s]);
			return;
		}
		out_data_commit(&g->out, c->id, (uint8_t)s, (size_t)n);
		c->credit[s] -= (uint64_t)n;
		cmd->must[s] -= cmd->must[s] < (uint64_t)n ? cmd->must[s] : (uint64_t)n;
		cmd->active_at = g->now;
		if (!cmd->exited && (size_t)n < max)
			return; /* most likely all there is: poll will tell */
	}
}

void command_measure_pipes(struct command *cmd)
{
	for (int s = 1; s < 3; s++) {
		int n = 0;

		if (cmd->fd[s] >= 0 && ioctl(cmd->fd[s], FIONREAD, &n) == 0 && n >= 0)
			cmd->must[s] = (uint64_t)n;
	}
}

bool command_leave_pipes(struct guest *g, struct command *cmd)
{
	bool any = false;

	for (int s = 1; s < 3; s++) {
		if (cmd->fd[s] < 0)
			continue;
		any = true;
		if (cmd->tty)
			continue;
		sink_add(&g->sinks, cmd->fd[s]);
		cmd->fd[s] = -1;
	}
	return any;
}
