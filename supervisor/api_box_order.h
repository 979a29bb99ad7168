/* api_box_order: the answer to starts and stops that comes from the pool. */
#ifndef SBXD_SUPERVISOR_API_BOX_ORDER_H
#define SBXD_SUPERVISOR_API_BOX_ORDER_H

#include "supervisor/pool.h"

struct sbxd;

void api_obeyed(struct sbxd *s, const struct pool_action *a);

#endif
