/*
 * event: a record of the flight recorder as it is shown: the same names and values in the service's
 * stream, in sbxctl events and in sbxctl shm dump.
 */
#ifndef SBXD_SHM_EVENT_H
#define SBXD_SHM_EVENT_H

#include <stdint.h>

#include "lib/clock.h"
#include "shm/layout.h"

#define EVENT_FIELDS 13

struct event_field {
	const char *name;
	const char *text; /* NULL: it is the number */
	int64_t number;
};

/* What a record says, in the order in which it is read. What it does not say is not there. */
struct event_view {
	size_t count;
	struct event_field fields[EVENT_FIELDS];

	/* What the texts point into. */
	char time[CLOCK_RFC3339_LEN];
	char box_id[SHM_TOKEN_LEN + 1];
	char request_id[SHM_ID_LEN + 1];
	char reason[sizeof(((struct shm_event *)0)->reason) + 1];
};

/* Fills *out from *ev, which may hold anything: every text ends, though it may be no UTF-8. */
void event_describe(const struct shm_event *ev, struct event_view *out);

#endif
