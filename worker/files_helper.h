/*
 * files_helper: sbx-files (wire/entry.h), which does in the box what walks through trees of files.
 * sbx-worker only.
 */
#ifndef SBXD_WORKER_FILES_HELPER_H
#define SBXD_WORKER_FILES_HELPER_H

#include <stddef.h>
#include <stdint.h>

#include "wire/agent.h"
#include "wire/api_error.h"

struct agent_chan_ops;
struct op;

/* What it says on standard error; zero at first. */
struct files_helper {
	size_t len;
	char why[AGENT_ERROR_TEXT + 1]; /* NUL-terminated, perhaps no UTF-8 */
};

/*
 * Starts sbx-files with argv (NULL-terminated, a command first) on op's channel. flags: 0, or
 * AGENT_EXEC_NO_STDIN. The result is agent_chan_open()'s, or -ENOMEM.
 */
int files_helper_open(
    struct op *op, const struct agent_chan_ops *ops, const char *const argv[], uint32_t flags);

/* Keeps what came on AGENT_STDERR, as far as it is of interest, and grants it all. */
void files_helper_keep(struct files_helper *h, struct op *op, const uint8_t *p, size_t n);

/* Whether op's helper succeeded: API_OK, or the error with *why, which lives as long as h. */
enum api_error files_helper_result(
    struct files_helper *h, const struct op *op, const struct agent_end *end, const char **why);

#endif
