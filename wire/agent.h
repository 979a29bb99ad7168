/*
 * agent: the whole contract between a worker and sbx-guest, over one byte stream.
 *
 * A frame is struct agent_head (16 bytes, little endian) and `size` bytes of payload, at most
 * AGENT_PAYLOAD_MAX, or AGENT_DATA_MAX of AGENT_DATA, which is passed on as it comes and need not
 * be kept. A channel is one operation (a command or a file transfer), numbered by the worker, never
 * reused while open. Channel 0 is the connection itself.
 *
 * Flow control: on a channel, data frames (AGENT_DATA, per stream) may be sent only against credit
 * given by the other side: AGENT_CREDIT adds bytes. The first credit is AGENT_WINDOW for every
 * stream, implied when the channel opens (AGENT_EXEC_NARROW: less). So neither side ever buffers
 * more than AGENT_WINDOW bytes for a stream, and a slow reader stops only its own channel. Credit
 * in hand never exceeds AGENT_WINDOW; more of it, or data without it, breaks the rules.
 *
 * A request that does not fit one frame is continued: every frame but its last has AGENT_F_MORE.
 *
 * Life of a channel: worker sends one request (EXEC, READ, WRITE, ...); the guest answers
 * AGENT_ERROR (closed), or data and finally AGENT_END (closed); it sends no AGENT_EOF. After
 * AGENT_CLOSE from the worker the guest ends the operation (a command: its whole process tree is
 * killed and seen gone) and still sends AGENT_END or AGENT_ERROR. Frames for a channel that is not
 * open are ignored by both sides (they crossed the end on the wire).
 *
 * Both ends treat what they receive as hostile: a frame that breaks the rules ends the connection,
 * nothing else.
 */
#ifndef SBXD_WIRE_AGENT_H
#define SBXD_WIRE_AGENT_H

#include <stddef.h>
#include <stdint.h>

#define AGENT_VERSION 3U
#define AGENT_HEAD_LEN 16U
#define AGENT_PAYLOAD_MAX 65536U
#define AGENT_DATA_MAX (256U * 1024U)
#define AGENT_WINDOW (1024U * 1024U)
#define AGENT_WINDOW_NARROW (256U * 1024U)
#define AGENT_REQUEST_MAX \
	(4U * 1024U *     \
	    1024U) /* a continued request: argv and env are bounded by the kernel's limits */
#define AGENT_CHANNELS_MAX 256U

enum agent_type {
	AGENT_NONE = 0,

	/* worker -> guest */
	AGENT_PING = 1, /* payload is echoed by AGENT_PONG; channel 0 */
	AGENT_EXEC,	/* request: struct agent_exec + strings */
	AGENT_READ,	/* request: struct agent_read + path */
	AGENT_WRITE,	/* request: struct agent_write + path; then data, then AGENT_EOF */
	AGENT_SIGNAL,	/* u32 signal number, to the command's process group */
	AGENT_RESIZE,	/* u16 cols, u16 rows */
	AGENT_CLOSE,	/* end this operation */
	AGENT_SYNC,	/* flush file systems, answered by AGENT_PONG; channel 0 */
	AGENT_PATH,	/* request: struct agent_path + one or two paths */
	AGENT_STOP,	/* struct agent_stop: end every process; channel 0 */
	AGENT_WAKE,	/* struct agent_wake: the machine goes on after it stood still; channel 0 */

	/* both ways */
	AGENT_DATA = 32, /* stream number in head.arg */
	AGENT_EOF,	 /* no more data on stream head.arg */
	AGENT_CREDIT,	 /* u32 bytes, for stream head.arg */

	/* guest -> worker */
	AGENT_HELLO = 64, /* struct agent_hello; first frame; channel 0 */
	AGENT_PONG,
	AGENT_STARTED, /* EXEC: u32 pid in the box; READ: struct agent_stat of the opened file; PATH
			  with AGENT_PATH_STAT: struct agent_stat, then the text of a link */
	AGENT_END,     /* struct agent_end */
	AGENT_ERROR,   /* struct agent_error + text; closes the channel */
};

#define AGENT_F_MORE 1U /* the request goes on in the next frame of this channel */

enum agent_stream {
	AGENT_STDIN = 0,  /* also: file data towards the guest */
	AGENT_STDOUT = 1, /* also: file data from the guest */
	AGENT_STDERR = 2,
	AGENT_STREAMS,
};

struct agent_head {
	uint32_t size; /* payload bytes */
	uint8_t type;
	uint8_t flags;
	uint8_t arg; /* stream */
	uint8_t reserved;
	uint32_t channel;
	uint32_t check; /* AGENT_CHECK ^ size ^ channel: desynchronised streams are found at once */
};

#define AGENT_CHECK 0x53425831U /* "SBX1" */

/*
 * Every process in the box but the guest's own gets SIGTERM, and SIGKILL after timeout_ms.
 * Answered by AGENT_PONG with the nonce when all are seen gone; commands end as always. Another
 * AGENT_STOP, or one that only cancels, has the earlier answered at once: what is left is left.
 */
struct agent_stop {
	uint64_t nonce;
	uint32_t timeout_ms; /* 0: killed at once */
	uint32_t flags;	     /* AGENT_STOP_* */
};

#define AGENT_STOP_CANCEL 1U /* ends nothing more */

/*
 * To the guest of a virtual machine, of no other. Its clock is set. With AGENT_WAKE_NEW it is the
 * copy of another that becomes a box of its own: it takes the seed into the kernel's random pool
 * before anything else runs, gets its names and its limits. Answered by AGENT_PONG with the nonce
 * when all of that is done, and with AGENT_WAKE_NEW by AGENT_HELLO then; or by AGENT_ERROR on
 * channel 0.
 */
struct agent_wake {
	uint64_t nonce;
	uint64_t realtime_ns;
	uint32_t flags;	   /* AGENT_WAKE_* */
	uint32_t disk_mib; /* what can be written to its root */
	uint32_t pids_max; /* processes and threads */
	uint32_t reserved;
	uint8_t machine_id[16];
	uint8_t seed[64];
	char hostname[64]; /* NUL-terminated */
};

#define AGENT_WAKE_NEW 1U

struct agent_hello {
	uint32_t version;
	uint32_t pid; /* the guest's own, as it sees it; 1 when it is init */
};

/* Followed by: user, cwd, argc strings, envc strings; each u32 length, bytes (no NUL inside, none
 * at the end). */
struct agent_exec {
	uint32_t flags; /* AGENT_EXEC_* */
	uint16_t cols;
	uint16_t rows;
	uint32_t argc;
	uint32_t envc;
};

#define AGENT_EXEC_TTY \
	1U /* a pseudo-terminal: stdin, stdout and stderr are one; everything is AGENT_STDOUT */
#define AGENT_EXEC_NO_STDIN 2U /* stdin is /dev/null and not a stream */
#define AGENT_EXEC_SHELL \
	4U /* argc is 1: a command line for the box's shell, /bin/bash if there, else /bin/sh */
#define AGENT_EXEC_NARROW                                                                         \
	8U /* the first credit of stdout and stderr is AGENT_WINDOW_NARROW: nobody reads them yet \
	    */
#define AGENT_EXEC_HELPER                                                                        \
	16U /* argv are the arguments of sbx-files (wire/entry.h), which runs as the guest's own \
	      user, in "/", without environment; none of that and no terminal can be asked for */

struct agent_read {
	uint64_t offset; /* bytes, or with AGENT_READ_LINES the first line, from 1 */
	uint64_t limit;	 /* bytes, or with AGENT_READ_LINES the last line, inclusive; UINT64_MAX: to
			    the end */
	uint32_t flags;
	uint32_t path_len; /* path follows */
};

#define AGENT_READ_LINES 1U /* lines end at \n only */

struct agent_write {
	uint64_t size; /* bytes that will come, UINT64_MAX when not known: a shorter body is an
			  error, nothing is renamed */
	uint32_t flags;
	uint32_t mode; /* permission bits of a new file; an existing file keeps its own unless
			  AGENT_WRITE_MODE */
	uint32_t path_len;
	uint32_t reserved;
};

#define AGENT_WRITE_APPEND 1U
#define AGENT_WRITE_MODE 2U /* set `mode` also on an existing file */

struct agent_stat {
	uint64_t size;
	uint64_t mtime_ns;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	uint32_t link_len; /* AGENT_PATH_STAT of a symbolic link: bytes of its text; else 0 */
};

/* What is done to a name. Symbolic links are followed on the way to it, never at its end. */
enum agent_path_op {
	AGENT_PATH_NONE = 0,
	AGENT_PATH_STAT,
	AGENT_PATH_MKDIR,  /* END tells how many directories were made */
	AGENT_PATH_REMOVE, /* of a directory only if it is empty */
	AGENT_PATH_RENAME, /* to the second path */
	AGENT_PATH_OPS,
};

struct agent_path {
	uint32_t op;	/* enum agent_path_op */
	uint32_t flags; /* AGENT_PATH_* that its operation knows */
	uint32_t mode;
	uint32_t path_len;
	uint32_t other_len; /* 0 where there is no second path */
	uint32_t reserved;
};

#define AGENT_PATH_FOLLOW 1U	/* stat: what a link at the end stands for */
#define AGENT_PATH_PARENTS 2U	/* mkdir: also what is missing on the way; if it is there: well */
#define AGENT_PATH_MODE 4U	/* mkdir: with the permission bits `mode`, whatever the umask is */
#define AGENT_PATH_OVERWRITE 8U /* rename: what is there already is replaced */

/* The end of an operation. For a command: sent when it was reaped and its output is complete (or
 * the drain bound hit). */
struct agent_end {
	int32_t exit_code; /* -1 when a signal ended it */
	int32_t signal;	   /* 0 when it exited */
	uint32_t flags;	   /* AGENT_END_* */
	uint32_t reserved;
	uint64_t bytes; /* files: bytes read or written; AGENT_PATH: what was made or removed */
};

#define AGENT_END_KILLED 1U /* ended by AGENT_CLOSE: the whole tree is gone */
#define AGENT_END_LEFT_OPEN \
	2U /* a background child still holds stdout or stderr; the drain was cut */

/* The reasons of failing operations; INTERFACE.md's names in wire/agent.c. */
enum agent_code {
	AGENT_OK = 0,
	AGENT_E_NOT_FOUND,
	AGENT_E_PERMISSION,
	AGENT_E_IS_DIRECTORY,
	AGENT_E_NOT_A_DIRECTORY,
	AGENT_E_INVALID_PATH,
	AGENT_E_INVALID, /* the request itself makes no sense */
	AGENT_E_TOO_LARGE,
	AGENT_E_NO_SPACE,
	AGENT_E_EXISTS,
	AGENT_E_NO_USER,   /* the user is not in the box's passwd */
	AGENT_E_EXEC,	   /* the command could not be started: text says why */
	AGENT_E_RESOURCES, /* no process, memory or descriptor left in the box */
	AGENT_E_SHORT,	   /* fewer bytes came than were announced */
	AGENT_E_IO,
	AGENT_E_INVALID_PATTERN,
	AGENT_E_NOT_EMPTY,
	AGENT_E_BUSY, /* in use: a mount point, a program that runs */
	AGENT_E_CROSS_DEVICE,
	AGENT_CODES,
};

struct agent_error {
	uint32_t code;	 /* enum agent_code */
	int32_t sys_err; /* errno in the box, 0 none */
			 /* text follows, UTF-8, at most AGENT_ERROR_TEXT bytes */
};

#define AGENT_ERROR_TEXT 512U

/* INTERFACE.md's name, e.g. "is_directory"; "io" when out of range. */
const char *agent_code_name(uint32_t code);

/* Fills a 16-byte frame head. */
void agent_put_head(uint8_t out[AGENT_HEAD_LEN], enum agent_type type, uint8_t flags, uint8_t arg,
    uint32_t channel, uint32_t size);

/*
 * Reads a frame head from n bytes. 1: *head is filled and valid (no larger than it may be); 0:
 * more bytes are needed; -EBADMSG: this is no frame.
 */
int agent_get_head(const uint8_t *bytes, size_t n, struct agent_head *head);

/* A bounds-checked cursor over a payload. Every get returns 0 or -EBADMSG and leaves *out untouched
 * on failure. */
struct agent_cursor {
	const uint8_t *p;
	size_t left;
};

int agent_get_bytes(struct agent_cursor *c, void *out, size_t n);
int agent_get_u32(struct agent_cursor *c, uint32_t *out);

/* A length-prefixed string without NUL; points into the payload. */
int agent_get_string(struct agent_cursor *c, const char **out, size_t *len);

/* A checked AGENT_EXEC request. */
struct agent_exec_request {
	struct agent_exec head;
	char *user;  /* "" means the default */
	char *cwd;   /* "" means the default */
	char **argv; /* NULL-terminated, argc >= 1 */
	char **envp; /* NULL-terminated, with room for AGENT_ENV_SPARE entries more */
};

#define AGENT_ENV_SPARE 8U

/*
 * Checks a whole AGENT_EXEC request and says how many bytes agent_exec_copy() needs for it. 0 or
 * -EBADMSG.
 */
int agent_exec_measure(const uint8_t *payload, size_t n, size_t *bytes);

/*
 * Copies a request that agent_exec_measure() accepted into `mem` (aligned for pointers, `bytes`
 * long): the struct, argv[], envp[] and strings. The result lives in mem.
 */
struct agent_exec_request *agent_exec_copy(const uint8_t *payload, size_t n, void *mem);

/* Both at once, into one allocation that the caller frees with free(). 0, -EBADMSG, -ENOMEM. */
int agent_parse_exec(const uint8_t *payload, size_t n, struct agent_exec_request **out);

#endif
