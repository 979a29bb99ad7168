/* api_make: the answers to POST /v1/boxes that come from the pool. */
#ifndef SBXD_SUPERVISOR_API_MAKE_H
#define SBXD_SUPERVISOR_API_MAKE_H

#include "supervisor/pool.h"

struct making;
struct sbxd;

void api_made(struct sbxd *s, struct making *m, const struct pool_box *b);
void api_not_made(struct sbxd *s, struct making *m, const struct pool_action *a);

#endif
