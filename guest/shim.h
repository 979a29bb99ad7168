/*
 * shim: the process that a command runs under, so that its tree stays together. sbx-guest.
 *
 * A shim shares memory and descriptors with the guest (clone VM|FILES|FS, about a quarter of a
 * fork), is a subreaper, and vforks the command. Whatever the command starts, however often it
 * forks and whatever session it makes, stays a descendant of the shim; when the shim has no child
 * left, the whole tree is gone. It reaps everything that ends below it. It tells the guest of a
 * change by SIGCHLD and then sleeps again.
 *
 * A shim is used for one command at a time and kept for the next when its tree is empty. When its
 * command's channel ends while background processes live on, it is dismissed: they become children
 * of the guest, which reaps them. Anybody may kill a shim who may kill root in the box: the guest
 * then goes on with what it can see.
 */
#ifndef SBXD_GUEST_SHIM_H
#define SBXD_GUEST_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/agent.h"

#define SHIM_SLOTS (AGENT_CHANNELS_MAX + 32U)
#define SHIM_IDLE_MAX 2U
#define SHIM_STACK 2048U /* the shim's, and as much for the child until it execs */
#define SHIM_ARENA 3584U
#define SHIM_CWDS 4
#define SHIM_GROUPS 32

enum shim_phase {
	SHIM_EMPTY = 0, /* no process below it; ready for work */
	SHIM_GO,	/* told to start */
	SHIM_STARTED,	/* execve succeeded; pid is set */
	SHIM_FAILED,	/* not started: step and err say why; no process below it */
	SHIM_EXITED,	/* the command was reaped, status is set; others live on below it */
	SHIM_DONE,	/* as SHIM_EXITED, and no process is left below it; or flushed */
};

/* Where the start of a command failed. */
enum shim_step {
	SHIM_STEP_FORK,
	SHIM_STEP_STDIO,
	SHIM_STEP_TTY,
	SHIM_STEP_USER,
	SHIM_STEP_CWD,
	SHIM_STEP_EXEC,
};

/* What a shim is told to do. Flushing may take long, and the guest's loop must not wait for it. */
enum shim_job {
	SHIM_JOB_COMMAND,
	SHIM_JOB_FSYNC,	 /* of `flush_fd`; err is its errno, then SHIM_DONE */
	SHIM_JOB_SYNCFS, /* the same for a whole file system */
};

/* What the child does; everything it points to stays untouched until SHIM_STARTED or SHIM_FAILED.
 */
struct shim_plan {
	const char *file;   /* what to execute */
	int program;	    /* a descriptor to execute instead, from 3 on; or -1 */
	const char *search; /* where to look for it, as PATH; NULL when it is a path already */
	char *candidate;    /* room for any element of search, a slash, and file */
	char **argv;
	char **envp;
	const char *cwd[SHIM_CWDS]; /* the first that exists; NULL ends */
	int stdio[3];		    /* -1: /dev/null */
	bool tty;		    /* stdio[0] becomes the controlling terminal */
	bool set_user;
	uint32_t uid;
	uint32_t gid;
	uint32_t group_count;
	uint32_t groups[SHIM_GROUPS];
};

struct shim {
	/* Shared with the shim process: read with shim_phase(), then the rest. */
	_Atomic uint32_t phase; /* enum shim_phase */
	_Atomic uint32_t lock;	/* held by the shim while it reaps the command, by us while we
				   signal it: so a recycled pid is never hit */
	_Atomic int32_t child;	/* the command, from its birth until the next one's */
	int32_t status;		/* wait status */
	int32_t err;		/* errno */
	int32_t step;		/* enum shim_step */
	int32_t guest;		/* the guest's pid, told by SIGCHLD */
	int32_t job;		/* enum shim_job */
	int32_t flush_fd;
	bool dies_with_guest;

	/* The guest's alone. */
	int32_t pid; /* 0: no process, it was killed; phase stands as it left it */
	bool taken;
	bool dismissed;

	struct shim_plan plan;
	_Alignas(16) uint8_t arena[SHIM_ARENA]; /* for what the plan points to */
	_Alignas(16) uint8_t stack[SHIM_STACK];
	_Alignas(16) uint8_t child_stack[SHIM_STACK];
	_Alignas(4096) uint8_t end[0]; /* a command touches two pages: the first, and the stacks */
};
_Static_assert(sizeof(struct shim) == 8192, "a shim is two pages");

struct shim_pool {
	unsigned int used; /* slots that ever had a process are the first */
	unsigned int idle;
	struct shim slots[SHIM_SLOTS];
};

/* A shim with no command, the caller's until shim_release(). NULL with *err set to an errno when
 * no process can be made. */
struct shim *shim_take(struct shim_pool *p, int *err);

/* Keeps one idle shim ready, so that the first command finds it. Failure is no harm. */
void shim_prepare(struct shim_pool *p);

/* Starts what s->plan says. */
void shim_start(struct shim *s);

/* Starts flushing fd, which stays open until SHIM_DONE. */
void shim_start_flush(struct shim *s, enum shim_job job, int fd);

enum shim_phase shim_phase(const struct shim *s);

/* Gives it back. Whatever still lives below it becomes the guest's child. */
void shim_release(struct shim_pool *p, struct shim *s);

/* Sends a signal to the command's process group, unless it was reaped. 0 or -errno. */
int shim_signal(struct shim *s, int sig);

/* waitpid() returned `pid`: true when it was a shim. */
bool shim_reaped(struct shim_pool *p, pid_t pid);

/* Whether the live process `pid` is a shim. */
bool shim_is(const struct shim_pool *p, pid_t pid);

/* Whether a command is about to begin: its process may not be there yet. */
bool shim_any_starting(const struct shim_pool *p);

#endif
