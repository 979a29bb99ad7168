/*
 * top_columns: what can be shown of a box. A new column is one row of the table in top_columns.c.
 */
#ifndef SBXD_TOOLS_TOP_COLUMNS_H
#define SBXD_TOOLS_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/top_line.h"
#include "tools/top_model.h"
#include "tools/top_text.h"

#define TOP_COLUMNS_MAX 48

enum top_type {
	TYPE_TEXT,     /* char[] */
	TYPE_NUMBER32, /* uint32_t */
	TYPE_NUMBER64, /* uint64_t */
	TYPE_PID,      /* int32_t, 0 none */
	TYPE_BYTES,    /* uint64_t */
	TYPE_MIB,      /* uint32_t, 0 no limit */
	TYPE_CPUS,     /* uint32_t, thousandths, 0 no limit */
	TYPE_SPAN,     /* uint64_t, ns */
	TYPE_PERCENT,  /* double */
	TYPE_STATE,    /* uint32_t, enum slot_state */
	TYPE_SOURCE,   /* uint32_t, enum shm_source */
	TYPE_LOCK,     /* enum top_lock */
	TYPE_USER,     /* these are of the box as a whole */
	TYPE_THREAD,
	TYPE_ERROR,
	TYPES,
};

struct top_column {
	const char *key;   /* in options, filters and settings */
	const char *title; /* above the column */
	const char *help;
	enum top_type type;
	size_t at;   /* in struct top_box */
	int width;   /* at least */
	int grows;   /* columns it takes beyond that where there is room */
	bool hidden; /* until it is asked for */
};

size_t top_columns_count(void);
const struct top_column *top_column_at(size_t index);

/* The index of the column with that key, or -1. */
int top_column_find(const char *key);

/* What it shows of a box: points into the box or into buf. */
const char *top_column_text(
    const struct top_column *c, const struct top_box *b, char buf[TOP_NUMBER]);

/* -1, 0 or 1, smaller values first. */
int top_column_compare(
    const struct top_column *c, const struct top_box *a, const struct top_box *b);

/* Numbers stand on the right, and the largest come first when nothing else is asked for. */
bool top_column_is_number(const struct top_column *c);

/* Which columns are shown, in which order. */
struct top_layout {
	size_t count;
	uint8_t column[TOP_COLUMNS_MAX];
};

/* Those that are not hidden. */
void top_layout_default(struct top_layout *out);

bool top_layout_has(const struct top_layout *l, int column);

/*
 * Reads "key,key,..." 0, or -EINVAL with the first unknown or repeated key in bad (may be NULL);
 * *out is then untouched.
 */
int top_layout_parse(const char *text, struct top_layout *out, char *bad, size_t size);

/* Its keys, as top_layout_parse() reads them. */
void top_layout_format(const struct top_layout *l, char *out, size_t size);

/* How the columns from number `first` of the layout on share a line of `columns`. */
struct top_widths {
	size_t first;
	int width[TOP_COLUMNS_MAX]; /* of all of the layout; 0: not shown */
};
void top_layout_fit(const struct top_layout *l, size_t first, int columns, struct top_widths *out);

/* The line of the titles, with the one of column `sorted` (-1: none) marked. */
void top_layout_titles(const struct top_layout *l, const struct top_widths *w, int sorted,
    bool descending, struct top_line *out);

/* The line of a box. */
void top_layout_line(const struct top_layout *l, const struct top_widths *w,
    const struct top_box *b, struct top_line *out);

/* Which column of the layout stands at that column of the screen; -1: none. */
int top_layout_hit(const struct top_layout *l, const struct top_widths *w, int x);

#endif
