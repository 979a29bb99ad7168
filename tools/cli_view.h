/*
 * cli_view: what several commands of sbxctl show. Objects have the names of the service's answers,
 * so that --json does not depend on where the data came from.
 */
#ifndef SBXD_TOOLS_CLI_VIEW_H
#define SBXD_TOOLS_CLI_VIEW_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "shm/reader.h"

/* A box of the table as an object, the caller's. NULL without memory. now: CLOCK_MONOTONIC ns. */
json_t *cli_box_json(const struct reader_box *b, uint64_t now);

/* Text of the table, which may be cut in the middle of a character or be no text at all. */
json_t *cli_text_json(const char *text);

/* A record of the flight recorder as an object, the caller's. */
json_t *cli_event_json(const struct shm_event *ev);

/* Such an object as a line: time, kind, box, from->to, reason. */
void cli_put_event(FILE *f, const json_t *event);

/* One line per box under a heading. */
void cli_put_boxes(const json_t *boxes);

/* "TITLE  name n  name n", without what is zero. */
void cli_put_numbers(const char *title, const json_t *object);

/* One line per histogram that is not empty, under a heading. */
void cli_put_latencies(const json_t *object);

/* Members of objects, with 0 and "-" for what is not there. */
long long cli_int_at(const json_t *o, const char *key);
const char *cli_text_at(const json_t *o, const char *key);

/*
 * jansson's iteration takes no const, though it writes nothing. For json_object_foreach() and
 * json_array_foreach() only.
 */
json_t *cli_walk(const json_t *o);

#endif
