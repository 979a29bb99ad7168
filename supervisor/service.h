/* service: sbxd from its settings to its exit status. */
#ifndef SBXD_SUPERVISOR_SERVICE_H
#define SBXD_SUPERVISOR_SERVICE_H

#include "lib/paths.h"
#include "supervisor/config.h"
#include "supervisor/options.h"

/*
 * Takes the instance, serves until it is told to stop, cleans up. Takes over *config; `sources` is
 * where a reload reads from again. `listening` is the Unix socket that a service manager has opened
 * for us (activation.h), taken over, or -1. Returns the exit status.
 */
int service_run(const struct options *o, const struct paths *paths,
    const struct config_sources *sources, struct config *config, int listening);

#endif
