/*
 * top_rows: which boxes are listed, in which order, and which of them is selected. Knows nothing of
 * terminals.
 */
#ifndef SBXD_TOOLS_TOP_ROWS_H
#define SBXD_TOOLS_TOP_ROWS_H

#include "tools/top_columns.h"

#define TOP_FILTER 128

struct top_rows {
	/* Boxes of the model, as it was when they were listed. */
	const struct top_box **row;
	size_t count;
	size_t cap;

	int sort; /* index of a column */
	bool descending;
	char filter[TOP_FILTER];

	/* The selected box. It stays selected wherever it moves; when it goes, the one in its place
	 * follows it. Until one is chosen it is whichever stands first. */
	bool chosen;
	uint32_t slot;
	uint64_t generation;
	size_t selected; /* its row */
};

void top_rows_init(struct top_rows *r);
void top_rows_free(struct top_rows *r);

/* Sorts by that column, the way that is usual for it. */
void top_rows_sort_by(struct top_rows *r, int column);

/* Lists the model's boxes anew. 0, or -ENOMEM with no rows. */
int top_rows_update(struct top_rows *r, const struct top_model *m);

/* The selected box, or NULL. */
const struct top_box *top_rows_selected(const struct top_rows *r);

/* Chooses a row; one past the end is the last. */
void top_rows_select(struct top_rows *r, size_t row);

/* Moves so many rows on (or back). To the first one: nothing is chosen any more. */
void top_rows_move(struct top_rows *r, long by);

/*
 * Chooses the next row after the selected one (or, with `here`, that one itself) in which `text`
 * stands, going on from the top after the last. False when there is none.
 */
bool top_rows_find(struct top_rows *r, const char *text, bool here);

/*
 * True when the filter lets a box through: one of its alternatives, which '|' separates, stands in
 * one of its texts; "COLUMN:text" looks into that column alone, as it is shown.
 */
bool top_filter_matches(const char *filter, const struct top_box *b);

#endif
