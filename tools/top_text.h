/*
 * top_text: text as it stands in the columns of a terminal, and numbers as people read them.
 *
 * Names come from outside: what reaches a terminal has no control characters, nothing that turns
 * the direction of writing around, and the width that is counted here.
 */
#ifndef SBXD_TOOLS_TOP_TEXT_H
#define SBXD_TOOLS_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes for `columns` columns of any text: a character, and marks over it. */
#define TOP_TEXT_BYTES(columns) ((size_t)(columns)*20U + 1U)

/* A piece of text that is ready for the terminal. */
struct top_piece {
	size_t bytes;
	int columns;
};

/*
 * Copies into out, NUL-terminated, what of `text` fits into `columns` columns and size - 1 bytes;
 * when that is not all of it, the last column is a '~'. Depends on the locale (LC_CTYPE): where it
 * has no UTF-8, only ASCII is shown.
 */
struct top_piece top_text_fit(const char *text, int columns, char *out, size_t size);

/* Columns that all of text takes. */
int top_text_columns(const char *text);

/* How many bytes of text, which top_text_fit() made, are within so many columns. */
size_t top_text_within(const char *text, int columns);

/* True when `part` stands in text; ASCII letters are alike in both cases. "" stands everywhere. */
bool top_text_has(const char *text, const char *part);

#define TOP_NUMBER 24

/* "<1us", "23us", "1.23ms", "12.3s"; "-" for 0. A whole number of us below 1 ms, as the service
 * tells it.
 */
void top_format_latency(uint64_t ns, char out[TOP_NUMBER]);

/* Per second: "0.3", "1234". */
void top_format_rate(double value, char out[TOP_NUMBER]);

/* All digits where they fit into `columns` (at least 5), else "12.3M". */
void top_format_count(uint64_t value, int columns, char out[TOP_NUMBER]);

#endif
