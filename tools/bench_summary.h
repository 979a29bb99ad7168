/*
 * bench_summary: rows of turns, in groups.
 */
#ifndef SBXD_TOOLS_BENCH_SUMMARY_H
#define SBXD_TOOLS_BENCH_SUMMARY_H

#include "lib/err.h"
#include "tools/bench.h"
#include "tools/bench_table.h"

#define BENCH_KEYS_MAX 16

enum bench_measure { BENCH_ACQUIRE, BENCH_RUN, BENCH_RELEASE, BENCH_TOTAL, BENCH_MEASURES };

/* "acquire", "run", "release", "total". */
const char *bench_measure_name(enum bench_measure m);

/* Rows that have the same values of the keys. */
struct bench_group {
	char *values[BENCH_KEYS_MAX]; /* owned */
	uint64_t ok;
	uint64_t errors;
	uint64_t warm;			      /* of those that are ok */
	struct samples times[BENCH_MEASURES]; /* of those that are ok */
};

struct bench_summary {
	char *keys[BENCH_KEYS_MAX]; /* owned */
	size_t key_count;
	struct bench_group *groups; /* owned */
	size_t count;
	uint64_t rows;
};

/* keys: names of fields, separated by commas. 0, or -EINVAL with *err. */
int bench_summary_init(struct bench_summary *s, const char *keys, struct err *err);
void bench_summary_free(struct bench_summary *s);

/* One row, a line of JSON; empty lines and those that begin with # are none. 0, or -EINVAL with
 * *err. */
int bench_summary_add(struct bench_summary *s, const char *line, size_t len, struct err *err);

/* Sorts the groups by their values, and fills the table. */
void bench_summary_table(struct bench_summary *s, struct bench_table *t);

#endif
