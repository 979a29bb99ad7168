/*
 * cli: what the files of sbxctl share. A command is one function below and one row in sbxctl.c.
 */
#ifndef SBXD_TOOLS_CLI_H
#define SBXD_TOOLS_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/paths.h"
#include "tools/httpc.h"

/* Exit statuses of sbxctl, besides those of commands that ran in a box. */
enum cli_exit {
	CLI_OK = 0,
	CLI_WRONG = 1, /* doctor, shm dump: something is wrong with what was looked at */
	CLI_USAGE = 2,
	CLI_TIMEOUT = 124,
	CLI_FAILED = 125,
	CLI_SIGNAL = 128, /* plus the signal's number */
};

struct cli_command;

/* One run of sbxctl. Texts point into argv or the environment. */
struct cli {
	const struct cli_command *command;
	bool json;
	const char *socket;   /* --socket or SBXD_SOCKET; NULL */
	const char *instance; /* --instance; NULL */
	char *const *env;
	int signal_fd; /* -1 until cli_catch_signals() */
};

struct cli_command {
	const char *name;
	const char *sub; /* second word, "dump" of "shm dump"; NULL */
	const char *args;
	const char *help;
	int (*run)(struct cli *cli, int argc, char **argv); /* argv[0] is the command's last word */
};

int cli_run(struct cli *cli, int argc, char **argv);
int cli_exec(struct cli *cli, int argc, char **argv);
int cli_acquire(struct cli *cli, int argc, char **argv);
int cli_release(struct cli *cli, int argc, char **argv);
int cli_inspect(struct cli *cli, int argc, char **argv);
int cli_rm(struct cli *cli, int argc, char **argv);
int cli_events(struct cli *cli, int argc, char **argv);
int cli_ps(struct cli *cli, int argc, char **argv);
int cli_pool(struct cli *cli, int argc, char **argv);
int cli_shutdown(struct cli *cli, int argc, char **argv);
int cli_token(struct cli *cli, int argc, char **argv);
int cli_shm_dump(struct cli *cli, int argc, char **argv);
int cli_doctor(struct cli *cli, int argc, char **argv);

/* ---- options (cli_options.c) ---- */

enum cli_option_type {
	CLI_OPTION_FLAG,    /* bool * */
	CLI_OPTION_TEXT,    /* const char ** */
	CLI_OPTION_SECONDS, /* double *, 0.001 to 31536000 */
	CLI_OPTION_LIST,    /* struct cli_list *; may be given again */
};

#define CLI_LIST_MAX 1024

struct cli_list {
	const char *items[CLI_LIST_MAX];
	size_t count;
};

struct cli_option {
	const char *name; /* without dashes */
	char letter;	  /* 0: none */
	enum cli_option_type type;
	void *out;
};

#define CLI_OPTIONS_MAX 12

/*
 * Reads a command's options and those that all commands have (--json, --socket, --instance); their
 * values are UTF-8. With `command` the first argument that is no option ends them, as what follows
 * is a command line; otherwise they may stand anywhere. Returns the index of the first argument in
 * argv, or -CLI_USAGE after it has said what is wrong.
 */
int cli_parse(struct cli *cli, const struct cli_option *options, size_t count, bool command,
    int argc, char **argv);

/* JSON can carry nothing else. */
bool cli_is_utf8(const char *text);

/* Says how the command is called. Returns CLI_USAGE. */
int cli_usage(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- talking to the service (cli_call.c) ---- */

#define CLI_WAIT_S 60 /* for answers that come at once, or when a box has been closed */

/* Seconds from now as a deadline. */
uint64_t cli_deadline(double seconds);

/* Where the service is. *name of shared memory too. 0 or -errno with *err. */
int cli_paths(const struct cli *cli, struct paths *out, struct err *err);

/* Connects to the service: --socket, SBXD_SOCKET, our own instance, root's. 0 or -errno. */
int cli_connect(const struct cli *cli, struct httpc **out, struct err *err);

/*
 * One request on a connection of its own, and its answer's JSON, which the caller json_decref()s.
 * body NULL: none. CLI_OK, or CLI_FAILED after it has said what went wrong as "sbxctl: WHAT: ...".
 */
int cli_call(const struct cli *cli, const char *what, const char *method, const char *path,
    const struct buf *body, double seconds, json_t **out);

/* The same on a connection that exists; *out may be NULL when the answer is not needed. */
int cli_call_on(struct httpc *c, const char *what, const char *method, const char *path,
    const struct buf *body, double seconds, json_t **out);

/* Says what an answer that is no success means. Returns CLI_FAILED. */
int cli_fail_answer(const char *what, unsigned int status, const uint8_t *body, size_t len);

/* Says "sbxctl: WHAT: TEXT". Returns CLI_FAILED. */
int cli_fail(const char *what, const struct err *err);

/* "/v1/boxes/ID" and what follows, ID escaped. 0 or -errno. */
int cli_put_box_path(struct buf *out, const char *id, const char *rest);

/* ---- output (cli_print.c) ---- */

/* Writes text with control characters shown as '?': names come from outside. */
void cli_put_text(FILE *f, const char *text);

/* Pretty-prints JSON to stdout. CLI_OK or CLI_FAILED. */
int cli_put_json(const json_t *value);

/* Writes all of it, past stdio, and stops at a signal that was caught. 0, -ECANCELED, -EPIPE when
 * nobody reads it any more, or -errno. */
int cli_write(const struct cli *cli, int fd, const void *bytes, size_t n);

/* Flushes stdout; CLI_FAILED when something could not be written, else status. */
int cli_finish(int status);

/* "1.2s", "3m04s", "2h05m", "3d04h"; out has at least 16 bytes. */
void cli_format_age(double seconds, char *out, size_t size);

/* "12K", "3.4M"; out has at least 16 bytes. */
void cli_format_bytes(uint64_t bytes, char *out, size_t size);

/* ---- signals (cli_signals.c) ---- */

/* From now on SIGINT, SIGTERM and SIGHUP make cli->signal_fd readable. 0 or -errno. */
int cli_catch_signals(struct cli *cli);

/* The signal that came, 0 none. */
int cli_caught_signal(const struct cli *cli);

#endif
