/*
 * shell: serves the worker in sbx-guest's place where that cannot be in the box: its root cannot be
 * written to, or its processor is another one. The worker sees the same contract (wire/agent.h).
 *
 * Each command is an execution of BoxLite's; files are what the box's own sh, stat, base64, cat and
 * mv make of them. What that cannot do is refused: lists, searches and archives, which are
 * sbx-files'. Output that is no UTF-8 is not kept as it is: BoxLite gives it as text. A command
 * that is ended takes with it what BoxLite ends, which need not be all that it has started. While a
 * client does not take its output, INBOX_OUTPUT_MAX of it holds up the others.
 *
 * shell.c has the stream, shell_chan.c the channels, shell_run.c a channel's command, shell_file.c
 * what files are asked for.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_SHELL_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_SHELL_H

#include "drivers/boxlite/program/program.h"
#include "drivers/boxlite/program/text64.h"
#include "wire/agent.h"

#define SHELL_ARGS 6
#define SHELL_WORKSPACE "/mnt/user-data/workspace" /* as guest/command_plan.c has it */
#define SHELL_INPUT_MAX (AGENT_WINDOW + AGENT_DATA_MAX)
#define SHELL_TEXT_MAX 8192U

struct shell_chan;

/* What is asked of a file, as a line for the box's sh. */
struct shell_script {
	const char *text; /* $1 ... are the arguments */
	bool input;	  /* it reads the worker's data */
	/* Takes a piece of its output. 0 or -errno: then it is ended. */
	int (*output)(struct shell_chan *c, const char *text, size_t n);
	/* It has ended well: sends what there is to say but END, and sets c->bytes. 0 or -EBADMSG.
	 */
	int (*done)(struct shell_chan *c);
};

/* An operation of the worker's. */
struct shell_chan {
	struct shell *s;
	uint32_t id;
	uint8_t type; /* enum agent_type of its request */
	bool opened;  /* the request is whole */
	struct buf request;

	struct agent_exec_request *exec;   /* AGENT_EXEC */
	const struct shell_script *script; /* else */
	char *args[SHELL_ARGS];
	char *paths;	/* what args point into */
	uint64_t bytes; /* for END */
	struct buf text;
	struct text64 decoder;
	bool told; /* STARTED was sent */

	struct blx_exec *x;    /* its command, NULL before it runs */
	struct blx_exec *made; /* the same, the call thread's while `starting` */
	uint64_t ticket;       /* in notes of it */
	struct call start;
	struct call write;
	struct call drop; /* frees x, which ends what still runs */
	bool starting;
	bool writing;
	bool dropping;
	bool closing; /* AGENT_CLOSE has come */
	bool exited;
	bool ended; /* END or ERROR was sent */
	int code;   /* BoxLite's, of the start */
	int status;
	char why[INBOX_TEXT];

	struct buf input; /* to the command */
	struct buf chunk; /* of it: what is being written */
	bool input_end;
	bool input_ended;
	struct buf output[AGENT_STREAMS]; /* from it, waiting for credit */
	size_t passing;			  /* bytes that the inbox still counts */
	uint64_t credit[AGENT_STREAMS];
};

struct shell {
	struct program *p;
	struct loop_watch watch;
	struct buf in;
	struct buf out;
	bool over;
	uint64_t tickets;
	struct shell_chan *chans[AGENT_CHANNELS_MAX];
};

/* ---- shell.c: for program and start ---- */

/* Makes the directories that every box has, takes the stream from p->relay and says HELLO. 0 or
 * -errno. */
int shell_begin(struct program *p, struct err *err);
void shell_note(struct shell *s, const struct note *n);
bool shell_is_over(const struct shell *s);

/* Sends one frame; where there is no room any more the worker does not read: that is the end. */
void shell_send(struct shell *s, enum agent_type type, uint8_t arg, uint32_t channel,
    const void *payload, size_t n);

/* Is there room for data? */
bool shell_has_room(const struct shell *s);

/* ---- shell_chan.c ---- */

/* A frame of a channel. -EBADMSG breaks the stream. */
int shell_chan_frame(struct shell *s, const struct agent_head *h, const uint8_t *payload);

struct shell_chan *shell_chan_by_ticket(struct shell *s, uint64_t ticket);

/* Sends what there is room and credit for, and the end when all is sent. */
void shell_chan_pump(struct shell_chan *c);

/* Answers with an error, and ends it. */
void shell_chan_fail(struct shell_chan *c, enum agent_code code, const char *text);

/* Ended, and nothing of it runs: forgets it. */
void shell_chan_settle(struct shell_chan *c);

/* ---- shell_run.c ---- */

void shell_run_start(struct shell_chan *c);
void shell_run_input(struct shell_chan *c); /* writes on, if it can */
void shell_run_drop(struct shell_chan *c);
void shell_run_signal(struct shell_chan *c, int sig);
void shell_run_resize(struct shell_chan *c, uint16_t cols, uint16_t rows);

/* ---- shell_file.c ---- */

/* Makes a script of the request. 0, or the code to refuse it with. */
enum agent_code shell_file_open(struct shell_chan *c, const uint8_t *request, size_t n);

/* It has ended, not well. */
void shell_file_failed(struct shell_chan *c);

#endif
