/*
 * template_build: templates that are made ahead of time: first their image is prepared, as for a
 * box, then a process makes them. Runs in sbxd.
 */
#ifndef SBXD_SUPERVISOR_TEMPLATE_BUILD_H
#define SBXD_SUPERVISOR_TEMPLATE_BUILD_H

#include <jansson.h>
#include <stdint.h>

#include "wire/api_error.h"
#include "wire/control.h"

struct pool_spec;
struct sbxd;

/* Who waits for one, by a number that is its own. */
struct template_hook {
	uint64_t ctx;
	/* How far it is; may be NULL. */
	void (*progress)(struct sbxd *s, uint64_t ctx, const struct ctl_progress *p);
	/* Called once, now or from the loop: error is API_OK, or why not, with a text. result: the
	 * answer to CTL_TEMPLATE_BUILD, only during the call. */
	void (*done)(struct sbxd *s, uint64_t ctx, enum api_error error, const char *text,
	    const json_t *result);
};

/* Has the template made that boxes of the spec begin with. */
void template_build(struct sbxd *s, const struct pool_spec *spec, const struct template_hook *hook);

/* Nobody with that number waits any more. It is made all the same: it was begun. */
void template_build_unhook(struct sbxd *s, uint64_t ctx);

/* Forgets all; nobody is told. */
void template_builds_free(struct sbxd *s);

#endif
