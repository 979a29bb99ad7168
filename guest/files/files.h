/*
 * files: sbx-files, the helper of sbx-guest for what walks through trees of files. One process for
 * each request: it may take its time, and the guest's loop never waits for it.
 *
 * START HERE in guest/files/. main.c has the table of commands; options.c takes their arguments;
 * root.c opens the place where they begin; emit.c writes records (wire/entry.h). list.c, glob.c,
 * grep.c and remove.c are commands, over walk.c; match.c and ignore.c say what a search looks at.
 * It runs as the root of its box and trusts nothing in it: trees change while it looks at them. If
 * it dies, the worker says that the request failed.
 */
#ifndef SBXD_GUEST_FILES_FILES_H
#define SBXD_GUEST_FILES_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "guest/text.h"
#include "wire/agent.h"
#include "wire/entry.h"

/* A command: args are its NAME=VALUE arguments, NULL-terminated. Returns the exit status. */
typedef int files_command(char *const *args);

files_command version_run;
files_command list_run;
files_command glob_run;
files_command grep_run;
files_command remove_run;
files_command pack_run;
files_command unpack_run;

/* ---- options.c ---- */

enum option_type {
	OPTION_TEXT,   /* const char ** */
	OPTION_NUMBER, /* uint64_t * */
	OPTION_FLAG,   /* bool *, of 0 or 1 */
};

struct option_field {
	const char *name;
	enum option_type type;
	void *out; /* left alone when the argument is not there */
};

/* Takes the arguments. 0, or an exit status after saying what is wrong with them. */
int options_take(char *const *args, const struct option_field *fields, size_t count);

/* ---- root.c ---- */

/*
 * Opens the directory at `path` for reading; links in it are followed, within the box. The
 * descriptor, or -1 after saying why with *status set to an exit status.
 */
int root_open(const char *path, int *status);

/*
 * Opens the directory that `path` is in, and finds its last component (*name, in path), which may
 * be anything. As root_open(), but it only names the place; "/" is refused.
 */
int root_open_parent(const char *path, const char **name, int *status);

/* ---- emit.c ---- */

/* Queues a record of up to three parts. If nobody reads it any more, the process ends. */
void emit_record(enum entry_type type, const void *fixed, size_t n, const void *a, size_t a_len,
    const void *b, size_t b_len);

/* Queues the last record and writes everything. Returns the exit status. */
int emit_done(uint32_t flags, uint64_t count);

/* Says on standard error why the command fails. Returns the exit status `code`. */
int emit_failure(enum agent_code code, const struct text *why);

/* Says that something could not be read, for the reason of an errno, and goes on. */
void emit_problem(const char *path, size_t len, int err);

/* How often that was. */
uint64_t emit_problems(void);

/*
 * For struct walk_ops: one more step was made. Now and then it writes what there is, or else says
 * that it works, so that nobody takes it for stuck.
 */
void emit_step(void);

/* emit_failure() for an errno: "<what> <path>: <reason>". */
int emit_errno(const char *what, const char *path, int err);

#endif
