/* names: what counters, histograms and boxes of the table are called, in JSON and in tables for
 * people. */
#ifndef SBXD_SHM_NAMES_H
#define SBXD_SHM_NAMES_H

#include <stdint.h>

/* What a box is at, in BoxLite's words. */
enum shm_box_status {
	BOX_CONFIGURED,
	BOX_RUNNING,
	BOX_STOPPING,
	BOX_STOPPED,
	BOX_PAUSED, /* none of ours ever is; nor unknown */
	BOX_FAILED,
	BOX_UNKNOWN,
	BOX_STATUSES,
};

/* "acquire_warm" etc.; "?" when out of range. */
const char *shm_counter_name(uint32_t counter);

/* "warm" etc.; "?" when out of range. */
const char *shm_hist_name(uint32_t hist);

/* That of a slot by its state and flags. */
enum shm_box_status shm_box_status(uint32_t state, uint32_t flags);

/* "configured" etc.; "?" when out of range. */
const char *shm_box_status_name(uint32_t status);

#endif
