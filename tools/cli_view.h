/*
 * cli_view: what sbxctl and sbxtop tell of boxes and events. Objects have the names of the
 * service's answers, so that --json does not depend on where the data came from.
 */
#ifndef SBXD_TOOLS_CLI_VIEW_H
#define SBXD_TOOLS_CLI_VIEW_H

#include <jansson.h>
#include <stdint.h>

#include "shm/reader.h"

/* A box of the table as an object, the caller's. NULL without memory. now: CLOCK_MONOTONIC ns. */
json_t *cli_box_json(const struct reader_box *b, uint64_t now);

/* Text of the table, which may be cut in the middle of a character or be no text at all. */
json_t *cli_text_json(const char *text);

/* A record of the flight recorder as an object, the caller's. */
json_t *cli_event_json(const struct shm_event *ev);

/* Members of objects, with 0 and "-" for what is not there. */
long long cli_int_at(const json_t *o, const char *key);
const char *cli_text_at(const json_t *o, const char *key);

/*
 * jansson's iteration takes no const, though it writes nothing. For json_object_foreach() and
 * json_array_foreach() only.
 */
json_t *cli_walk(const json_t *o);

#endif
