/*
 * files: sbx-files, the helper of sbx-guest for what walks through trees of files. One process for
 * each request: it may take its time, and the guest's loop never waits for it.
 *
 * START HERE in guest/files/. main.c has the table of commands; options.c takes their arguments;
 * emit.c writes records (wire/entry.h). It runs as the root of its box and trusts nothing in it:
 * trees change while it looks at them. If it dies, the worker says that the request failed.
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

/* ---- emit.c ---- */

/* Queues a record of up to three parts. If nobody reads it any more, the process ends. */
void emit_record(enum entry_type type, const void *fixed, size_t n, const void *a, size_t a_len,
    const void *b, size_t b_len);

/* Queues the last record and writes everything. Returns the exit status. */
int emit_done(uint32_t flags, uint64_t count);

/* Says on standard error why the command fails. Returns the exit status `code`. */
int emit_failure(enum agent_code code, const struct text *why);

/* The same for an errno: "<what> <path>: <reason>". */
int emit_errno(const char *what, const char *path, int err);

#endif
