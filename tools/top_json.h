/*
 * top_json: a snapshot as JSON: what GET /v1/pool tells, under the same names, with the boxes as
 * sbxctl ps tells them.
 */
#ifndef SBXD_TOOLS_TOP_JSON_H
#define SBXD_TOOLS_TOP_JSON_H

#include <jansson.h>

#include "tools/top_rows.h"

/* The caller's. `trouble`: what is wrong with the table, "" nothing. `events`: at most so many of
 * the newest. NULL, or incomplete, without memory. */
json_t *top_json(
    const struct top_model *m, const struct top_rows *rows, const char *trouble, size_t events);

#endif
