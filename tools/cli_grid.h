/*
 * cli_grid: tables that fit the terminal, and colours where there is one. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_GRID_H
#define SBXD_TOOLS_CLI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What is written to. */
struct cli_screen {
	int columns; /* 0: no terminal, lines may be of any length */
	bool colors;
};

/* A terminal has its width (COLUMNS where it does not tell, else 80), and colours unless NO_COLOR
 * is set or TERM is "dumb". Also sets the locale, by which the width of text is counted. */
struct cli_screen cli_screen_of(int fd);

enum cli_style {
	CLI_PLAIN,
	CLI_HEADING,
	CLI_GOOD,
	CLI_QUIET,
	CLI_WARN,
	CLI_BAD,
	CLI_FOLDER,
	CLI_LINK,
	CLI_STYLES,
};

/* Writes text without control characters, in that style where there are colours. */
void cli_put_styled(FILE *f, const struct cli_screen *s, enum cli_style style, const char *text);

struct cli_column {
	const char *title;
	int least;	   /* columns that it needs; 0: as many as its longest text has */
	unsigned int drop; /* where there is no room, the highest goes first; 0: never */
	bool right;	   /* numbers */
};

struct cli_cell {
	const char *text;
	enum cli_style style;
};

#define CLI_GRID_COLUMNS 16

/* Rows are collected, then written. Columns are the caller's and outlive it. */
struct cli_grid {
	const struct cli_column *columns;
	size_t count;
	char **texts;		/* count of them per row, owned */
	enum cli_style *styles; /* likewise */
	size_t rows;
	size_t room; /* rows that there is memory for */
	bool failed; /* some did not fit into memory */
};

void cli_grid_init(struct cli_grid *g, const struct cli_column *columns, size_t count);
void cli_grid_free(struct cli_grid *g);

/* Adds a row of as many cells as there are columns; copies the texts. */
void cli_grid_add(struct cli_grid *g, const struct cli_cell *cells);

/*
 * Widths of columns that take so many columns each, in `limit` with a blank between them; 0: no
 * limit. What has more than its least gives, the widest first; then columns go, which get width 0;
 * at last those that are to stay get less than their least. The caller's arrays have `count`
 * entries.
 */
void cli_grid_fit(
    const struct cli_column *columns, const int *natural, size_t count, int limit, int *widths);

/* Writes headings and rows. */
void cli_grid_put(const struct cli_grid *g, FILE *f, const struct cli_screen *screen);

/* Writes one text into a column of that width, and a blank after it unless it is the last. */
void cli_put_cell(FILE *f, const struct cli_screen *s, const struct cli_cell *cell, int width,
    bool right, bool last);

#endif
