/* top_rows: the boxes that are listed. sbxtop; holds no state but its caller's. */
#include "tools/top_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void top_rows_init(struct top_rows *r)
{
	*r = (struct top_rows){0};
	top_rows_sort_by(r, top_column_find("cpu"));
}

void top_rows_free(struct top_rows *r)
{
	free(r->row);
	*r = (struct top_rows){0};
}

void top_rows_sort_by(struct top_rows *r, int column)
{
	r->sort = column;
	r->descending = top_column_is_number(top_column_at((size_t)column));
}

/* ---- filter ---- */

static bool stands_in(const struct top_column *c, const struct top_box *b, const char *text)
{
	char buf[TOP_NUMBER];

	return top_text_has(top_column_text(c, b, buf), text);
}

static bool stands_anywhere(const struct top_box *b, const char *text)
{
	for (size_t i = 0; i < top_columns_count(); i++) {
		const struct top_column *c = top_column_at(i);

		/* Numbers look alike too often. */
		if (!top_column_is_number(c) && stands_in(c, b, text))
			return true;
	}
	return false;
}

static bool alternative_matches(const char *text, const struct top_box *b)
{
	const char *colon = strchr(text, ':');
	char key[32];
	int column = -1;

	if (colon && (size_t)(colon - text) < sizeof(key)) {
		(void)snprintf(key, sizeof(key), "%.*s", (int)(colon - text), text);
		column = top_column_find(key);
	}
	if (column < 0)
		return stands_anywhere(b, text);
	return stands_in(top_column_at((size_t)column), b, colon + 1);
}

bool top_filter_matches(const char *filter, const struct top_box *b)
{
	char text[TOP_FILTER];
	char *rest = text;
	char *one;
	bool asked = false;

	(void)snprintf(text, sizeof(text), "%s", filter);
	while ((one = strsep(&rest, "|"))) {
		if (*one == '\0')
			continue;
		asked = true;
		if (alternative_matches(one, b))
			return true;
	}
	return !asked;
}

/* ---- order ---- */

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct top_box *x = *(const struct top_box *const *)a;
	const struct top_box *y = *(const struct top_box *const *)b;
	const struct top_rows *r = ctx;
	int order = top_column_compare(top_column_at((size_t)r->sort), x, y);

	if (r->descending)
		order = -order;
	/* What is alike keeps its place from one snapshot to the next. */
	return order ? order : (x->seen.slot > y->seen.slot) - (x->seen.slot < y->seen.slot);
}

static int list(struct top_rows *r, const struct top_model *m)
{
	if (r->cap < m->box_count) {
		const struct top_box **row =
		    reallocarray(r->row, m->slot_count, sizeof(const struct top_box *));

		if (!row)
			return -ENOMEM;
		r->row = row;
		r->cap = m->slot_count;
	}
	for (size_t i = 0; i < m->box_count; i++) {
		if (*r->filter == '\0' || top_filter_matches(r->filter, m->boxes[i]))
			r->row[r->count++] = m->boxes[i];
	}
	if (r->count)
		qsort_r(r->row, r->count, sizeof(const struct top_box *), compare_rows, r);
	return 0;
}

/* ---- selection ---- */

static void keep_selected(struct top_rows *r)
{
	size_t row = r->chosen ? r->selected : 0;

	for (size_t i = 0; r->chosen && i < r->count; i++) {
		const struct reader_box *b = &r->row[i]->seen;

		if (b->slot == r->slot && b->sup.generation == r->generation)
			row = i;
	}
	if (r->chosen)
		top_rows_select(r, row);
	else
		r->selected = 0;
}

int top_rows_update(struct top_rows *r, const struct top_model *m)
{
	int rc;

	r->count = 0;
	rc = list(r, m);
	keep_selected(r);
	return rc;
}

const struct top_box *top_rows_selected(const struct top_rows *r)
{
	return r->selected < r->count ? r->row[r->selected] : NULL;
}

void top_rows_select(struct top_rows *r, size_t row)
{
	if (row >= r->count)
		row = r->count ? r->count - 1 : 0;
	r->selected = row;
	if (row >= r->count)
		return;
	r->chosen = true;
	r->slot = r->row[row]->seen.slot;
	r->generation = r->row[row]->seen.sup.generation;
}

void top_rows_move(struct top_rows *r, long by)
{
	size_t back = by < 0 ? (size_t)-by : 0;
	size_t row = r->selected > back ? r->selected - back : 0;

	if (by > 0)
		row = r->selected + (size_t)by;
	top_rows_select(r, row);
	if (r->selected == 0)
		r->chosen = false;
}

bool top_rows_find(struct top_rows *r, const char *text, bool here)
{
	for (size_t i = here ? 0 : 1; i < r->count + (here ? 0 : 1); i++) {
		size_t row = (r->selected + i) % r->count;

		if (top_filter_matches(text, r->row[row])) {
			top_rows_select(r, row);
			return true;
		}
	}
	return false;
}
