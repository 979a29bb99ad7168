/* bench_fleet: many boxes, and how many this machine bears. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define OTHER_FDS 256	 /* of sbxd, for all but its workers */
#define OTHER_PIDS 1000	 /* for what else goes on meanwhile */
#define BOX_PIDS 3	 /* its worker, its first process and what that starts commands with */
#define BOX_KIB 1536	 /* of memory for one box, the kernel's share included */
#define MEMORY_SHARE 0.8 /* of what is free */
#define MAX_BOXES 16384

/* The first number after `label` in a file of /proc; 0 without. */
uint64_t proc_number(const char *path, const char *label)
{
	char line[256];
	const char *at = NULL;
	uint64_t v = 0;
	FILE *f = fopen(path, "re");

	while (f && !at && fgets(line, sizeof(line), f)) {
		at = strstr(line, label);
		if (at)
			v = strtoull(at + strlen(label), NULL, 10);
	}
	if (f)
		(void)fclose(f); /* opened for reading */
	return v;
}

static uint64_t by_layout(void)
{
	return MAX_BOXES;
}

static uint64_t by_descriptors(void)
{
	struct rlimit lim = {0};

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_max < OTHER_FDS)
		return 0;
	return (lim.rlim_max - OTHER_FDS) / 2;
}

static uint64_t by_pids(void)
{
	uint64_t max = proc_number("/proc/sys/kernel/pid_max", "");
	uint64_t used = proc_number("/proc/loadavg", "/") + OTHER_PIDS;

	return max > used ? (max - used) / BOX_PIDS : 0;
}

static uint64_t by_memory(void)
{
	uint64_t kib = proc_number("/proc/meminfo", "MemAvailable:");

	return (uint64_t)((double)kib * MEMORY_SHARE) / BOX_KIB;
}

static const struct {
	uint64_t (*boxes)(void);
	const char *why;
} limits[] = {
    {by_layout, "the table has 16384 slots"},
    {by_descriptors, "RLIMIT_NOFILE, of which sbxd needs two for each worker"},
    {by_pids, "kernel.pid_max, of which each box needs three"},
    {by_memory, "memory, of which a box takes up to 1.5 MiB"},
};

uint32_t fleet_fit(uint32_t asked)
{
	uint64_t fit = asked;
	const char *why = NULL;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint64_t n = limits[i].boxes();

		if (n < fit) {
			fit = n;
			why = limits[i].why;
		}
	}
	if (why)
		bench_note("%u boxes instead of %u: %s", (uint32_t)fit, asked, why);
	return (uint32_t)fit;
}

void fleet_thread(uint32_t i, char out[FLEET_THREAD])
{
	(void)snprintf(out, FLEET_THREAD, "scope-%u", i);
}

void fleet_open(struct wire *w, uint32_t from, uint32_t to)
{
	uint32_t n = to - from;
	struct samples first = {0};
	struct samples last = {0};
	struct acquired a;
	char thread[FLEET_THREAD];
	uint64_t begin = clock_now_ns();

	for (uint32_t i = 0; i < n; i++) {
		fleet_thread(from + i, thread);
		call_acquire(w, thread, &a);
		call_release(w, a.id);
		if (i < n / 10)
			samples_add(&first, a.ns);
		else if (i >= n - n / 10)
			samples_add(&last, a.ns);
	}
	bench_note("%u boxes in %.1f s; p50 of a cold acquire %.1f ms in the first tenth of "
		   "them, %.1f ms in the last",
	    n, bench_ms(clock_now_ns() - begin) / 1e3, bench_ms(samples_quantile(&first, 0.5)),
	    bench_ms(samples_quantile(&last, 0.5)));
	samples_free(&first);
	samples_free(&last);
}
