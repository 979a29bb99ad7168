/*
 * top_summary: the lines above the list: supervisor, boxes, acquires and latencies, totals.
 */
#ifndef SBXD_TOOLS_TOP_SUMMARY_H
#define SBXD_TOOLS_TOP_SUMMARY_H

#include "tools/top_line.h"
#include "tools/top_model.h"

#define TOP_SUMMARY_SHORT 8 /* lines of it, and with boots, checks and closes: */
#define TOP_SUMMARY_LONG 11

/* What else is to be said. */
struct top_notice {
	const char *table; /* what is wrong with the table: in place of the states; NULL or "" */
	const char *mode;  /* "PAUSED" and the like: in the first line; NULL or "" */
};

/* Fills `count` lines (TOP_SUMMARY_SHORT or _LONG) of `columns`; the texts suit 80 of them. */
void top_summary_lines(const struct top_model *m, const struct top_notice *notice, size_t count,
    int columns, struct top_line *lines);

#endif
