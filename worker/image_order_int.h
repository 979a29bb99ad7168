/* image_order_int: what the orders about images have in common. */
#ifndef SBXD_WORKER_IMAGE_ORDER_INT_H
#define SBXD_WORKER_IMAGE_ORDER_INT_H

#include "drivers/driver.h"
#include "wire/control.h"
#include "wire/json.h"

struct image_job {
	const struct driver_site *site;
	const struct ctl_image *order;
	int guest;  /* what boxes are given, for templates; -1 none */
	int helper; /* likewise */
	struct json_out *result;
};

/* Tells sbxd how far it is; done and total in bytes, 0 of 0: not known. */
void image_order_tell(const char *stage, uint64_t done, uint64_t total);

/* image_order_remove.c: CTL_IMAGE_REMOVE, _PRUNE and _SWEEP. 0 or -errno with *err. */
int image_order_remove(const struct image_job *job, struct err *err);
int image_order_prune(const struct image_job *job, struct err *err);
int image_order_sweep(const struct image_job *job, struct err *err);

/* template_order.c: CTL_TEMPLATE_*. 0 or -errno with *err. */
int template_order_list(const struct image_job *job, struct err *err);
int template_order_build(const struct image_job *job, struct err *err);
int template_order_remove(const struct image_job *job, struct err *err);

#endif
