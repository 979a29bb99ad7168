/* api_acquire: the answers to POST /v1/acquire that come from the pool; refusals of all kinds. */
#ifndef SBXD_SUPERVISOR_API_ACQUIRE_H
#define SBXD_SUPERVISOR_API_ACQUIRE_H

#include "supervisor/pool.h"

struct client;
struct sbxd;

void api_acquire_granted(struct sbxd *s, struct client *c, const struct pool_action *a);
void api_refused(struct sbxd *s, struct client *c, const struct pool_action *a);

#endif
