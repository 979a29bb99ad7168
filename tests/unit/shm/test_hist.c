/* Tests of shm/hist.c. */
#include "shm/hist.h"

#include "tests/unit/shm/shm_testing.h"

static void test_every_bucket_begins_at_its_floor(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		uint64_t floor = hist_bucket_floor(i);
		uint64_t end = hist_bucket_floor(i + 1);

		assert_true(end > floor);
		assert_int_equal(hist_bucket(floor), i);
		assert_int_equal(hist_bucket(end - 1), i);
		if (floor >= 4) /* at most a quarter wide */
			assert_true(4 * (end - floor) <= floor);
	}
}

static void test_any_value_is_in_its_bucket(void **state)
{
	uint64_t seed = 1;
	uint64_t last = hist_bucket_floor(HIST_BUCKETS - 1);

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t r = random_next(&seed);
		uint64_t v = r >> (r & 63U); /* every order of magnitude */
		uint32_t b = hist_bucket(v);

		assert_true(b < HIST_BUCKETS);
		assert_true(hist_bucket_floor(b) <= v);
		if (v < last)
			assert_true(v < hist_bucket_floor(b + 1));
		else
			assert_int_equal(b, HIST_BUCKETS - 1);
	}
	assert_int_equal(hist_bucket(0), 0);
	assert_int_equal(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
}

static void test_values_of_this_service_fit(void **state)
{
	(void)state;
	assert_true(hist_bucket(3600ULL * 1000000000ULL) < HIST_BUCKETS - 1); /* an hour */
}

static void test_count_and_sum(void **state)
{
	struct shm_hist h = {0};
	uint64_t in_buckets = 0;

	(void)state;
	for (uint64_t v = 0; v < 1000; v++)
		hist_add(&h, v * v);
	assert_int_equal(atomic_load(&h.count), 1000);
	assert_int_equal(atomic_load(&h.sum_ns), 332833500);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		in_buckets += atomic_load(&h.buckets[i]);
	assert_int_equal(in_buckets, 1000);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The answer is where the bucket of the exact quantile ends. */
static void test_quantiles_of_random_values(void **state)
{
	static const double shares[] = {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0};
	uint64_t values[500];
	uint64_t seed = 99;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct shm_hist h = {0};
		size_t n = 1 + random_next(&seed) % 500;

		for (size_t i = 0; i < n; i++) {
			values[i] = random_next(&seed) >> (24 + random_next(&seed) % 40);
			hist_add(&h, values[i]);
		}
		qsort(values, n, sizeof(values[0]), by_value);
		for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			double want = shares[i] * (double)n;
			size_t rank = 0;

			while (rank + 1 < n && (double)(rank + 1) < want)
				rank++;
			assert_int_equal(hist_quantile(&h, shares[i]),
			    hist_bucket_floor(hist_bucket(values[rank]) + 1));
		}
	}
}

static void test_empty_and_odd_shares(void **state)
{
	struct shm_hist h = {0};

	(void)state;
	assert_int_equal(hist_quantile(&h, 0.5), 0);
	hist_add(&h, 100);
	assert_true(hist_quantile(&h, -1) > 100);
	assert_true(hist_quantile(&h, 7) > 100);
	assert_int_equal(hist_quantile(&h, 0.5), hist_bucket_floor(hist_bucket(100) + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_bucket_begins_at_its_floor),
	    cmocka_unit_test(test_any_value_is_in_its_bucket),
	    cmocka_unit_test(test_values_of_this_service_fit),
	    cmocka_unit_test(test_count_and_sum),
	    cmocka_unit_test(test_quantiles_of_random_values),
	    cmocka_unit_test(test_empty_and_odd_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
