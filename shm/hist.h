/*
 * hist: log-scale latency histograms, four buckets per power of two (a bucket is at most 25 %
 * wide). One writer, any number of readers.
 */
#ifndef SBXD_SHM_HIST_H
#define SBXD_SHM_HIST_H

#include "shm/layout.h"

void hist_add(struct shm_hist *h, uint64_t ns);

/* Bucket of a value, and the smallest value of a bucket. Values past the last bucket fall into it.
 */
uint32_t hist_bucket(uint64_t ns);
uint64_t hist_bucket_floor(uint32_t bucket);

/* The value below which a share q (0..1) of all lies: where its bucket ends and the next begins, in
 * ns; 0 when empty. */
uint64_t hist_quantile(const struct shm_hist *h, double q);

#endif
