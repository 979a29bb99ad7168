/*
 * cli_progress: how far long work is, on a line of standard error if that is a terminal. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_PROGRESS_H
#define SBXD_TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_progress {
	const char *what; /* the caller's; outlives it */
	uint64_t total;	  /* bytes; 0: not known */
	uint64_t done;
	uint64_t began_ns;
	uint64_t next_ns; /* when the line is written again; 0: never */
	bool shown;
};

/* Nothing is shown when `quiet`, when standard error is no terminal, or before it has taken a
 * while. */
void cli_progress_begin(struct cli_progress *p, const char *what, uint64_t total, bool quiet);

/* More bytes are done. */
void cli_progress_add(struct cli_progress *p, uint64_t bytes);

/* Takes the line away until there is more to tell: before anything else is written to standard
 * error. */
void cli_progress_clear(struct cli_progress *p);

/* The same for good. */
void cli_progress_end(struct cli_progress *p);

/* The line after so many seconds, in at most `columns` columns; size has room for them. */
void cli_progress_line(
    const struct cli_progress *p, double seconds, int columns, char *out, size_t size);

#endif
