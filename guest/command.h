/*
 * command: AGENT_EXEC. sbx-guest.
 *
 * command.c is the operation: life and end. command_plan.c turns a request into what the child will
 * do. command_io.c moves bytes. If we die here PID 1 is dead and the kernel ends the box.
 */
#ifndef SBXD_GUEST_COMMAND_H
#define SBXD_GUEST_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/shim.h"
#include "guest/text.h"

struct guest;
struct channel;
struct operation;

#define COMMAND_DRAIN_IDLE_NS 50000000ULL
#define COMMAND_DRAIN_TOTAL_NS 250000000ULL
#define COMMAND_TTY_REST_NS 50000000ULL /* between looks at a terminal that nobody has open */

struct command {
	struct shim *shim;
	void *memory;	 /* malloc'ed: a request too large for the shim's arena */
	int fd[3];	 /* our ends; with a terminal [0] and [1] are the same descriptor */
	int child_fd[3]; /* the child's, ours until it started */
	bool tty;
	bool started;	     /* STARTED was sent */
	bool closing;	     /* AGENT_CLOSE came */
	bool exited;	     /* status is known */
	bool tree_gone;	     /* with closing: no shim, and nothing is known to be left */
	bool swept;	     /* with closing: what the dead left in the pipes was measured */
	bool broken;	     /* stdin was lost for want of memory: closing, then an error */
	bool measured;	     /* must[] is set */
	bool line_begun;     /* terminal: there is input that no line end follows */
	bool ending;	     /* terminal: eofs is set */
	uint8_t eofs;	     /* terminal: characters that end the input, not yet written */
	int status;	     /* wait status */
	uint64_t signals;    /* bits of those that came before it had started */
	uint64_t must[3];    /* bytes that lay in the pipe after the command's exit: never lost */
	uint64_t exited_at;  /* when the drain bound began to count */
	uint64_t active_at;  /* when something was read last */
	uint64_t rest_until; /* terminal: nobody has it open, and we look again then */
	uint8_t *in;	     /* stdin that the pipe did not take; a ring of AGENT_WINDOW, mmap'ed */
	uint32_t in_head;
	uint32_t in_len;
};

extern const struct operation command_operation;

/* The process `pid`, our own child, ended: true when it was the command of an orphaned channel. */
bool command_reaped(struct guest *g, pid_t pid, int status);

/* ---- command_plan.c ---- */

/*
 * Fills the plan of cmd->shim from a request. 0, or an errno value with *code and *why set; the
 * caller drops what was opened.
 */
int command_plan(struct guest *g, struct command *cmd, const uint8_t *request, size_t n,
    enum agent_code *code, struct text *why);

/* Says why the child could not become the command. Returns the code. */
enum agent_code command_explain(const struct command *cmd, struct text *why);

/* ---- command_io.c ---- */

/* Opens pipes or a terminal of that size. 0 or -errno; what was opened is in cmd. */
int command_open_stdio(struct command *cmd, uint32_t flags, uint16_t cols, uint16_t rows);

/* Closes the child's ends, or ours. */
void command_close_child_fds(struct command *cmd);
void command_close_fds(struct command *cmd);

/* Stdin from the worker, into the pipe or the ring. 0 or -ENOMEM. */
int command_feed(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n);

/* Writes from the ring what the pipe takes; closes the pipe after the last byte. */
void command_feed_more(struct guest *g, struct channel *c);

/* Reads stream s (1 or 2) into the batch, as far as credit and room go. */
void command_read(struct guest *g, struct channel *c, int s);

/* Remembers how much lies in the pipes now. */
void command_measure_pipes(struct command *cmd);

/* Leaves the pipes that background processes hold to the sinks. True when there were any. */
bool command_leave_pipes(struct guest *g, struct command *cmd);

#endif
