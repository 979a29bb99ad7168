/* names: what counters and histograms of the table are called, in JSON and in tables for people. */
#ifndef SBXD_SHM_NAMES_H
#define SBXD_SHM_NAMES_H

#include <stdint.h>

/* "acquire_warm" etc.; "?" when out of range. */
const char *shm_counter_name(uint32_t counter);

/* "warm" etc.; "?" when out of range. */
const char *shm_hist_name(uint32_t hist);

#endif
