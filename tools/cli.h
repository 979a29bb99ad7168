/*
 * cli: what the files of sbxctl share. A command is one `const struct cli_command` below, at the
 * end of its own file, and one row in cli_table.c.
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
	CLI_HELPED = 256, /* told how it is used: what main() makes CLI_OK */
};

struct cli_command;

/* One run of sbxctl. Texts point into argv or the environment. */
struct cli {
	const struct cli_command *command;
	bool json;
	bool help;
	const char *socket;   /* --socket or SBXD_SOCKET; NULL */
	const char *instance; /* --instance; NULL */
	char *const *env;
	int signal_fd; /* -1 until cli_catch_signals() */
};

/* ---- commands ---- */

enum cli_option_type {
	CLI_OPTION_FLAG,    /* bool */
	CLI_OPTION_TEXT,    /* const char * */
	CLI_OPTION_SECONDS, /* double, 0.001 to 31536000 */
	CLI_OPTION_NUMBER,  /* uint32_t, 1 to 100000 */
	CLI_OPTION_LIST,    /* struct cli_list; may be given again */
};

#define CLI_LIST_MAX 1024

struct cli_list {
	const char *items[CLI_LIST_MAX];
	size_t count;
};

/* What a word of a command line names: how a shell completes it. */
enum cli_word {
	CLI_WORD_OTHER,	   /* nothing that could be offered */
	CLI_WORD_BOX,	   /* a box */
	CLI_WORD_PLACE,	   /* BOX:PATH */
	CLI_WORD_PATH,	   /* a path in the box that stands before it */
	CLI_WORD_FILE,	   /* a file of the host */
	CLI_WORD_COPY,	   /* a file of the host or BOX:PATH */
	CLI_WORD_CHOICE,   /* one of the command's choices */
	CLI_WORD_TOPIC,	   /* a command of sbxctl */
	CLI_WORD_IMAGE,	   /* an image that the service has */
	CLI_WORD_TEMPLATE, /* the key of a template */
};

struct cli_option {
	const char *name; /* without dashes */
	char letter;	  /* 0: none */
	enum cli_option_type type;
	size_t at;	   /* where its value goes, in the structure that cli_parse() fills */
	const char *value; /* what its value is called; NULL: it takes none */
	const char *help;
	enum cli_word word; /* its value */
};

#define CLI_OPTIONS_MAX 12
#define CLI_WORDS_MAX 3

/*
 * A command: its help, its completion and the check of its manual page are made of this. Defined in
 * the command's own file; cli_table.c has them all.
 */
struct cli_command {
	const char *name;
	const char *sub;  /* second word, "dump" of "shm dump"; NULL */
	const char *args; /* what follows the options */
	const char *help;
	const struct cli_option *options;
	size_t option_count;
	bool command_line;		    /* the first argument that is no option ends them */
	bool hidden;			    /* for shells, not for people */
	enum cli_word words[CLI_WORDS_MAX]; /* its arguments; the last stands for more of them */
	const char *choices;		    /* of CLI_WORD_CHOICE, with blanks between */
	int (*run)(struct cli *cli, int argc, char **argv); /* argv[0] is the command's last word */
};

#define CLI_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])

extern const struct cli_command cli_run;
extern const struct cli_command cli_acquire;
extern const struct cli_command cli_exec;
extern const struct cli_command cli_release;
extern const struct cli_command cli_ps;
extern const struct cli_command cli_inspect;
extern const struct cli_command cli_rm;
extern const struct cli_command cli_cp;
extern const struct cli_command cli_ls;
extern const struct cli_command cli_cat;
extern const struct cli_command cli_stat;
extern const struct cli_command cli_glob;
extern const struct cli_command cli_grep;
extern const struct cli_command cli_image_pull;
extern const struct cli_command cli_image_ls;
extern const struct cli_command cli_image_rm;
extern const struct cli_command cli_image_prune;
extern const struct cli_command cli_template_ls;
extern const struct cli_command cli_template_build;
extern const struct cli_command cli_template_rm;
extern const struct cli_command cli_pool;
extern const struct cli_command cli_events;
extern const struct cli_command cli_token;
extern const struct cli_command cli_shm_dump;
extern const struct cli_command cli_doctor;
extern const struct cli_command cli_gc;
extern const struct cli_command cli_reset;
extern const struct cli_command cli_shutdown;
extern const struct cli_command cli_completion;
extern const struct cli_command cli_help;
extern const struct cli_command cli_complete;

/* The n-th command, NULL past the last (cli_table.c). */
const struct cli_command *cli_command_at(size_t n);

/* The command of that name and, where it has one, second word (NULL: none is given). NULL when
 * there is none. */
const struct cli_command *cli_command_find(const char *name, const char *second);

/* ---- options (cli_options.c) ---- */

/* Those of all commands; their values go into struct cli. */
extern const struct cli_option cli_common_options[];
extern const size_t cli_common_count;

/*
 * Reads the command's options into *out (NULL when it has none of its own) and those that all
 * commands have into *cli; values are UTF-8. Options may stand anywhere before "--", but for a
 * command line. Returns the index of the first argument in argv, or, negative, the exit status of
 * the command: CLI_USAGE after it has said what is wrong, CLI_HELPED after it has said how the
 * command is used.
 */
int cli_parse(struct cli *cli, void *out, int argc, char **argv);

/* The same for a command without arguments: 0, or the exit status. */
int cli_parse_all(struct cli *cli, void *out, int argc, char **argv);

/* JSON can carry nothing else. */
bool cli_is_utf8(const char *text);

/* ---- help (cli_help.c) ---- */

/* Says how the command is called. Returns CLI_USAGE. */
int cli_usage(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "run [-u USER] ... -- CMD...", the caller's; NULL without memory. */
char *cli_synopsis(const struct cli_command *command);

/* All about a command; without one, about all of them. */
void cli_put_help(FILE *f, const struct cli_command *command);

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

/* "2026-11-30 18:32" of a time of the service's. */
void cli_format_time(const char *time, char out[20]);

/* ---- signals (cli_signals.c) ---- */

/* From now on SIGINT, SIGTERM and SIGHUP make cli->signal_fd readable. 0 or -errno. */
int cli_catch_signals(struct cli *cli);

/* The same, and a closed stdout is an error from now on, not a signal. CLI_OK, or CLI_FAILED after
 * it has said why. */
int cli_prepare(struct cli *cli);

/* The signal that came, 0 none. */
int cli_caught_signal(const struct cli *cli);

#endif
