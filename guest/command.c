/*
 * command: the life of one AGENT_EXEC. sbx-guest; if we die here PID 1 is dead and the kernel ends
 * the box.
 */
#include "guest/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "guest/mux.h"

static void command_drop(struct guest *g, struct channel *c)
{
	struct command *cmd = &c->u.command;

	command_close_child_fds(cmd);
	command_close_fds(cmd);
	free(cmd->memory);
	cmd->memory = NULL;
	if (cmd->shim != NULL)
		shim_release(&g->shims, cmd->shim);
	cmd->shim = NULL;
}

static int command_open(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	struct command *cmd = &c->u.command;
	enum agent_code code = AGENT_E_RESOURCES;
	struct agent_exec head;
	struct text why;
	int err = 0;
	int rc;

	*cmd = (struct command){.fd = {-1, -1, -1}, .child_fd = {-1, -1, -1}};
	text_clear(&why);
	cmd->shim = shim_take(&g->shims, &err);
	if (cmd->shim == NULL) {
		mux_fail_str(g, c, code, err, "no process can be started in the box");
		return 0;
	}
	rc = command_plan(g, cmd, request, n, &code, &why);
	if (rc == -EBADMSG)
		return rc;
	if (rc != 0) {
		mux_fail(g, c, code, -rc, &why);
		return 0;
	}
	memcpy(&head, request, sizeof(head)); /* checked by command_plan() */
	rc = command_open_stdio(cmd, head.flags, head.cols, head.rows);
	if (rc != 0) {
		mux_fail_str(g, c, rc == -ENOENT ? AGENT_E_EXEC : AGENT_E_RESOURCES, -rc,
		    cmd->tty || rc == -ENOENT ? "no terminal can be opened in the box"
					      : "no pipe can be opened in the box");
		return 0;
	}
	if ((head.flags & AGENT_EXEC_NARROW) != 0)
		c->credit[AGENT_STDOUT] = c->credit[AGENT_STDERR] = AGENT_WINDOW_NARROW;
	memcpy(cmd->shim->plan.stdio, cmd->child_fd, sizeof(cmd->child_fd));
	cmd->shim->plan.tty = cmd->tty;
	shim_start(cmd->shim);
	return 0;
}

static int command_data(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n)
{
	struct command *cmd = &c->u.command;

	if (command_feed(g, c, bytes, n) == 0)
		return 0;
	cmd->broken = true;
	cmd->closing = true;
	kill_begin(g);
	return 0;
}

static int command_eof(struct guest *g, struct channel *c)
{
	if (c->u.command.in_len == 0)
		command_feed_more(g, c);
	return 0;
}

static void command_resize(struct guest *g, struct channel *c, uint16_t cols, uint16_t rows)
{
	struct command *cmd = &c->u.command;
	struct winsize size = {.ws_col = cols, .ws_row = rows};

	(void)g;
	if (cmd->tty && cmd->fd[1] >= 0)
		(void)ioctl(cmd->fd[1], TIOCSWINSZ, &size); /* hung up: nothing has a size */
}

static void command_signal(struct guest *g, struct channel *c, int sig)
{
	struct command *cmd = &c->u.command;

	(void)g;
	if (!cmd->started)
		cmd->signals |= 1ULL << (sig - 1);
	else
		(void)shim_signal(cmd->shim, sig); /* gone already: END will tell */
}

static void command_close(struct guest *g, struct channel *c)
{
	c->u.command.closing = true;
	kill_begin(g);
}

static bool command_has_output(const struct command *cmd)
{
	return cmd->fd[1] >= 0 || cmd->fd[2] >= 0;
}

static bool command_owes_output(const struct command *cmd)
{
	return (cmd->fd[1] >= 0 && cmd->must[1] > 0) || (cmd->fd[2] >= 0 && cmd->must[2] > 0);
}

static uint64_t command_drain_end(const struct command *cmd)
{
	uint64_t idle = cmd->active_at + COMMAND_DRAIN_IDLE_NS;
	uint64_t total = cmd->exited_at + COMMAND_DRAIN_TOTAL_NS;

	return idle < total ? idle : total;
}

static void command_wait(struct guest *g, struct channel *c, struct pollfd *w, uint64_t *at)
{
	const struct command *cmd = &c->u.command;

	if (cmd->in_len > 0 || cmd->eofs > 0)
		w[0] = (struct pollfd){.fd = cmd->fd[0], .events = POLLOUT};
	if (cmd->rest_until > g->now && cmd->rest_until < *at)
		*at = cmd->rest_until;
	for (int s = 1; s < 3; s++)
		if (cmd->started && c->credit[s] > 0 && !g->out.blocked &&
		    cmd->rest_until <= g->now)
			w[s] = (struct pollfd){.fd = cmd->fd[s], .events = POLLIN};
	if (cmd->exited && !cmd->closing && command_has_output(cmd) && !command_owes_output(cmd) &&
	    command_drain_end(cmd) < *at)
		*at = command_drain_end(cmd);
}

/* The command runs, or ran: its ends of the pipes are its own now. */
static void command_started(struct guest *g, struct channel *c)
{
	struct command *cmd = &c->u.command;
	uint32_t pid = (uint32_t)cmd->shim->child;

	cmd->started = true;
	command_close_child_fds(cmd);
	free(cmd->memory);
	cmd->memory = NULL;
	(void)out_put(&g->out, AGENT_STARTED, 0, c->id, &pid, sizeof(pid), NULL, 0); /* has room */
	for (int sig = 1; cmd->signals != 0; sig++, cmd->signals >>= 1)
		if ((cmd->signals & 1) != 0)
			(void)shim_signal(cmd->shim, sig); /* gone already: END will tell */
}

static void command_exited(struct guest *g, struct command *cmd, int status)
{
	cmd->exited = true;
	cmd->status = status;
	cmd->exited_at = g->now;
	cmd->active_at = g->now;
}

/* The shim was killed from within the box. The command is our own child now, or nobody's. */
static void command_check_orphan(struct guest *g, struct command *cmd)
{
	int status = 0;
	pid_t child = cmd->shim->child;
	pid_t rc = child > 0 ? waitpid(child, &status, WNOHANG) : -1;

	if (rc == 0)
		return;
	if (rc < 0) /* the shim had reaped it, or it never was */
		status = cmd->shim->status != -1 ? cmd->shim->status : SIGKILL;
	command_exited(g, cmd, status);
}

bool command_reaped(struct guest *g, pid_t pid, int status)
{
	for (unsigned int i = 0; i < g->open; i++) {
		struct channel *c = &g->channels[g->order[i]];
		struct command *cmd = &c->u.command;
		enum shim_phase phase;

		if (c->phase != CHANNEL_OPEN || c->op != &command_operation || cmd->exited)
			continue;
		phase = shim_phase(cmd->shim);
		if (cmd->shim->child == pid && (phase == SHIM_STARTED || phase == SHIM_GO)) {
			command_exited(g, cmd, status);
			return true;
		}
	}
	return false;
}

static void command_end(struct guest *g, struct channel *c, uint32_t flags)
{
	const struct command *cmd = &c->u.command;
	struct agent_end end = {.flags = flags};

	if (WIFEXITED(cmd->status)) {
		end.exit_code = WEXITSTATUS(cmd->status);
	} else {
		end.exit_code = -1;
		end.signal = WTERMSIG(cmd->status);
	}
	mux_end(g, c, &end);
}

/* Looks at what the shim says; false when the channel is gone. */
static bool command_look(struct guest *g, struct channel *c, enum shim_phase phase)
{
	struct command *cmd = &c->u.command;
	enum agent_code code;
	struct text why;

	if (phase == SHIM_FAILED) {
		text_clear(&why);
		code = command_explain(cmd, &why);
		mux_fail(g, c, code, cmd->shim->err, &why);
		return false;
	}
	if (phase == SHIM_GO && cmd->shim->pid == 0 && cmd->shim->child == 0) {
		mux_fail_str(g, c, AGENT_E_EXEC, 0, "the command was killed before it began");
		return false;
	}
	if (!cmd->started && (phase != SHIM_GO || cmd->shim->pid == 0))
		command_started(g, c);
	if (cmd->exited)
		return true;
	if (phase == SHIM_EXITED || phase == SHIM_DONE)
		command_exited(g, cmd, cmd->shim->status);
	else if (cmd->shim->pid == 0)
		command_check_orphan(g, cmd);
	return true;
}

/* The whole tree is gone: sends what it left in the pipes as far as there is credit, and ends. */
static void command_closed(struct guest *g, struct channel *c)
{
	struct command *cmd = &c->u.command;

	if (!cmd->swept)
		command_measure_pipes(cmd);
	cmd->swept = true;
	for (int s = 1; s < 3; s++)
		if (cmd->fd[s] >= 0 && cmd->must[s] > 0 && c->credit[s] > 0)
			return;
	if (cmd->broken)
		mux_fail_str(g, c, AGENT_E_RESOURCES, ENOMEM, "no memory for stdin");
	else
		command_end(g, c, AGENT_END_KILLED);
}

static void command_step(struct guest *g, struct channel *c, const struct pollfd *w)
{
	struct command *cmd = &c->u.command;
	enum shim_phase phase =
	    shim_phase(cmd->shim); /* before the pipes: exit comes after output */

	if (!command_look(g, c, phase) || !cmd->started)
		return;
	if ((cmd->in_len > 0 || cmd->eofs > 0) && w[0].revents != 0)
		command_feed_more(g, c);
	for (int s = 1; s < 3; s++)
		if (cmd->exited || w[s].revents != 0)
			command_read(g, c, s);
	if (!cmd->exited)
		return;
	if (!cmd->measured) /* usually the pipes are at their end by now */
		command_measure_pipes(cmd);
	cmd->measured = true;
	if (cmd->closing) {
		if (phase == SHIM_DONE || cmd->tree_gone)
			command_closed(g, c);
		return;
	}
	if (command_owes_output(cmd)) {
		cmd->exited_at = g->now;
		cmd->active_at = g->now;
		return;
	}
	if (!command_has_output(cmd))
		command_end(g, c, 0);
	else if (g->now >= command_drain_end(cmd))
		command_end(g, c, command_leave_pipes(g, cmd) ? AGENT_END_LEFT_OPEN : 0);
}

const struct operation command_operation = {
    .open = command_open,
    .data = command_data,
    .eof = command_eof,
    .resize = command_resize,
    .signal = command_signal,
    .close = command_close,
    .wait = command_wait,
    .step = command_step,
    .drop = command_drop,
};
