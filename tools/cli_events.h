/*
 * cli_events: sbxctl events, from the shared table or, where that is not ours to read, from the
 * service.
 */
#ifndef SBXD_TOOLS_CLI_EVENTS_H
#define SBXD_TOOLS_CLI_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/clock.h"
#include "tools/cli.h"
#include "tools/cli_grid.h"

/* Prints one record: a line, or with --json an object on a line. */
void cli_events_put(
    const struct cli *cli, FILE *f, const struct cli_screen *s, const json_t *event);

#define CLI_EVENTS_TICK (100 * NS_PER_MS) /* between looks for more */

/* Waits that long, ns. 0; -EPIPE: nobody reads our output any more; -ECANCELED: a signal came; or
 * -errno. */
int cli_events_pause(const struct cli *cli, uint64_t span);

/* The exit status for that, or for what cli_write() returned: being stopped, and having nobody who
 * reads, are no errors. */
int cli_events_end(int rc);

/* Asks the service instead of the table. Returns the exit status. */
int cli_events_ask(const struct cli *cli, bool follow);

#endif
