/*
 * hist: log-scale latency histograms. sbxd adds, anybody reads. If the writer dies between the
 * three stores of one value, count and sum are one value behind the buckets; quantiles use only
 * the buckets.
 */
#include "shm/hist.h"

#define HIST_SUB (1U << HIST_SUB_BITS) /* buckets per power of two */

_Static_assert(HIST_BUCKETS % HIST_SUB == 0, "the last power of two is complete");

uint32_t hist_bucket(uint64_t ns)
{
	uint32_t exponent;
	uint32_t bucket;

	if (ns < HIST_SUB)
		return (uint32_t)ns; /* too small to be split: one bucket a value */
	exponent = 63U - (uint32_t)__builtin_clzll(ns);
	bucket = (exponent - HIST_SUB_BITS + 1) * HIST_SUB +
		 (uint32_t)((ns >> (exponent - HIST_SUB_BITS)) & (HIST_SUB - 1));
	return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

uint64_t hist_bucket_floor(uint32_t bucket)
{
	if (bucket < HIST_SUB)
		return bucket;
	if (bucket > HIST_BUCKETS)
		bucket = HIST_BUCKETS;
	return (uint64_t)(HIST_SUB + bucket % HIST_SUB) << (bucket / HIST_SUB - 1);
}

void hist_add(struct shm_hist *h, uint64_t ns)
{
	atomic_fetch_add_explicit(&h->buckets[hist_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum_ns, ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->count, 1, memory_order_release);
}

uint64_t hist_quantile(const struct shm_hist *h, double q)
{
	uint64_t buckets[HIST_BUCKETS];
	double total = 0;
	double below = 0;
	uint32_t last = 0;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		buckets[i] = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
		total += (double)buckets[i];
		if (buckets[i])
			last = i;
	}
	if (!(total > 0))
		return 0;
	for (uint32_t i = 0; i < last; i++) {
		below += (double)buckets[i];
		if (buckets[i] && below >= q * total)
			return hist_bucket_floor(i + 1);
	}
	return hist_bucket_floor(last + 1);
}
