/*
 * command_request: what POST run and POST exec have in common: the fields of a command, checked,
 * and turned into an AGENT_EXEC request. sbx-worker.
 */
#ifndef SBXD_WORKER_COMMAND_REQUEST_H
#define SBXD_WORKER_COMMAND_REQUEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "wire/api_error.h"

#define COMMAND_COLS 80
#define COMMAND_ROWS 24

struct service;

#define COMMAND_START_NS (30 * NS_PER_S) /* for the guest to say that one runs */

/* All pointers are the caller's; NULL: not given. */
struct command_fields {
	const char *first; /* a line for the shell, or the program */
	json_t *rest;	   /* array of strings: what follows; without `first`, the program too */
	json_t *env;	   /* object of strings */
	const char *cwd;
	const char *user;
	uint32_t flags; /* AGENT_EXEC_* */
	uint16_t cols;
	uint16_t rows;
};

/* Names as POSIX has them, values strings. 0 or -EINVAL with *err, which names the field. */
int command_check_env(json_t *env, struct err *err);

/* Every element of the field `name` is a string. The same. */
int command_check_strings(const char *name, json_t *array, struct err *err);

/* The field `name` is an absolute path. The same, with *e. */
int command_check_cwd(const char *name, const char *cwd, enum api_error *e, struct err *err);

/*
 * Builds the payload of AGENT_EXEC. s: as for run_request_parse(). 0, or -E2BIG or -ENOMEM with *e
 * and *err.
 */
int command_build(struct buf *b, const struct command_fields *f, const struct service *s,
    enum api_error *e, struct err *err);

/*
 * What a client is told when the guest could not start or run a command, of enum agent_code. What
 * is not there is the command's, and no resource of this API: never 404.
 */
enum api_error command_error(uint32_t code);

#endif
