/* api_spec: what a box is to be like, as a request chooses it. */
#ifndef SBXD_SUPERVISOR_API_SPEC_H
#define SBXD_SUPERVISOR_API_SPEC_H

#include "lib/err.h"
#include "supervisor/pool.h"
#include "wire/api_error.h"

struct client;
struct sbxd;

/*
 * The configured spec, with another image if the request names one (NULL: it does not). 0, or
 * -errno with *e and *err: it is no name of an image, or none that this client may choose.
 */
int api_spec_choose(const struct sbxd *s, const struct client *c, const char *image,
    struct pool_spec *out, enum api_error *e, struct err *err);

/* Works out spec->digest over everything else in it. 0 or -EIO. */
int api_spec_digest(struct pool_spec *spec);

#endif
