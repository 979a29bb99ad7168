/*
 * cli_show: boxes, events and numbers as people read them. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_SHOW_H
#define SBXD_TOOLS_CLI_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "tools/cli_grid.h"

/* An event as a line: time, kind, box, from->to, reason; cut where the screen ends. */
void cli_put_event(FILE *f, const struct cli_screen *s, const json_t *event);

/* One line per box under a heading, to stdout. */
void cli_put_boxes(const json_t *boxes);

/* "TITLE  name n  name n", without what is zero; goes on below where the screen ends. */
void cli_put_numbers(const char *title, const json_t *object);

/* One line per histogram that is not empty, under a heading. */
void cli_put_latencies(const json_t *object);

#endif
