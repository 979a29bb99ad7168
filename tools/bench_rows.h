/*
 * bench_rows: files of rows.
 */
#ifndef SBXD_TOOLS_BENCH_ROWS_H
#define SBXD_TOOLS_BENCH_ROWS_H

#include "tools/bench_summary.h"

/* Adds the rows of all files ("-": standard input); paths end with NULL. BENCH_OK, or BENCH_FAILED
 * after it has said which lines are wrong, or that there is no row. */
int bench_rows_read(struct bench_summary *s, char *const *paths);

#endif
