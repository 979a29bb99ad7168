/*
 * image_order: `sbx-worker image`: one order of sbxd's about the image store, carried out by a
 * process of its own. So a pull of minutes delays nothing, and ends at once when it is not wanted.
 */
#ifndef SBXD_WORKER_IMAGE_ORDER_H
#define SBXD_WORKER_IMAGE_ORDER_H

/* Serves the one order on CTL_FD_CONTROL. Exit status of the process. */
int image_order_main(void);

#endif
