/*
 * bench_table: a table of texts, and the forms in which it is printed.
 */
#ifndef SBXD_TOOLS_BENCH_TABLE_H
#define SBXD_TOOLS_BENCH_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum bench_form {
	BENCH_TEXT_FORM, /* columns one under the other */
	BENCH_MARKDOWN,
	BENCH_CSV, /* RFC 4180 */
};

/* Cells row by row; the first row is the head. */
struct bench_table {
	size_t columns;
	size_t left;  /* so many columns are of words, the others of numbers */
	char **cells; /* owned, each too */
	size_t count;
	size_t cap;
};

void bench_table_init(struct bench_table *t, size_t columns, size_t left);

/* The next cell; "" is none, for people "-". No memory ends the program. */
void bench_table_add(struct bench_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints what there is, in whole rows. */
void bench_table_print(const struct bench_table *t, enum bench_form form, FILE *f);
void bench_table_free(struct bench_table *t);

#endif
