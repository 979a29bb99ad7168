/* bench_limits: sbxbench limits: what the kernel alone costs, here and now. No service on this host
 * is faster than that. Holds no state. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench.h"
#include "tools/bench_command.h"
#include "tools/bench_table.h"

#define STREAM_BYTES (64U << 20)
#define MOST (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int ping_pong(struct samples *s, size_t n, size_t bytes)
{
	base_ping_pong(s, n, bytes);
	return 0;
}

static int spawn(struct samples *s, size_t n, size_t ignored)
{
	static const char *const argv[] = {"/bin/true", NULL};

	(void)ignored;
	base_spawn(s, n, argv);
	return 0;
}

/* An ordinary user gets the others only together with a user namespace. */
static int namespaces(struct samples *s, size_t n, size_t flags)
{
	return base_namespaces(s, n, (int)flags | (flags && geteuid() != 0 ? CLONE_NEWUSER : 0));
}

static int stream(struct samples *s, size_t n, size_t chunk)
{
	base_stream(s, n, STREAM_BYTES, chunk);
	return 0;
}

/* One thing, and how often it is done in a round. */
static const struct limit {
	const char *what;
	int (*measure)(struct samples *s, size_t n, size_t arg);
	size_t arg;
	size_t n;
	bool is_stream;
} limits[] = {
    {"unix socket ping-pong, 64 B", ping_pong, 64, 500, false},
    {"unix socket ping-pong, 512 B", ping_pong, 512, 500, false},
    {"vfork, exec and wait, /bin/true", spawn, 0, 25, false},
    {"process that ends at once", namespaces, 0, 25, false},
    {"the same in pid, mnt, ipc, uts, cgroup namespaces", namespaces, MOST, 10, false},
    {"the same, and net", namespaces, MOST | CLONE_NEWNET, 10, false},
    {"unix stream, 64 KiB writes", stream, 64U << 10, 1, true},
    {"unix stream, 256 KiB writes", stream, 256U << 10, 1, true},
    {"unix stream, 1 MiB writes", stream, 1U << 20, 1, true},
};

#define LIMITS (sizeof(limits) / sizeof(limits[0]))

/* A quantile of time as it is shown: a stream's as its speed, so that the best comes first too. */
static double shown(const struct limit *l, struct samples *s, double q)
{
	uint64_t ns = samples_quantile(s, q);

	return l->is_stream ? STREAM_BYTES / 1048576.0 / ((double)ns / 1e9) : bench_us(ns);
}

static void add_row(struct bench_table *t, const struct limit *l, struct samples *s)
{
	static const double quantiles[] = {0, 0.5, 0.95, 1};

	bench_table_add(t, "%s", l->what);
	bench_table_add(t, "%s", l->is_stream ? "MiB/s" : "us");
	for (int i = 0; i < 4; i++) {
		if (s->count)
			bench_table_add(t, "%.1f", shown(l, s, quantiles[i]));
		else
			bench_table_add(t, "%s", "");
	}
}

int bench_limits_main(const struct bench_command *self, int argc, char **argv)
{
	uint32_t rounds = 20;
	const struct bench_option options[] = {
	    {"rounds", BENCH_COUNT, &rounds, "N", "each thing in turn, so often (20)", 1, 100000,
		NULL},
	};
	static const char *const head[] = {"what", "unit", "best", "p50", "p95", "worst"};
	struct samples s[LIMITS] = {0};
	struct bench_table t;
	int status;
	int at = bench_parse(self, options, 1, argc, argv, &status);

	if (at < 0)
		return status;
	if (at < argc)
		return bench_usage(self, "unexpected argument '%s'", argv[at]);
	for (uint32_t r = 0; r < rounds; r++) {
		for (size_t i = 0; i < LIMITS; i++)
			(void)limits[i].measure(
			    &s[i], limits[i].n, limits[i].arg); /* no row then */
	}
	bench_table_init(&t, 6, 2);
	for (size_t i = 0; i < 6; i++)
		bench_table_add(&t, "%s", head[i]);
	for (size_t i = 0; i < LIMITS; i++)
		add_row(&t, &limits[i], &s[i]);
	bench_table_print(&t, BENCH_MARKDOWN, stdout);
	bench_table_free(&t);
	for (size_t i = 0; i < LIMITS; i++)
		samples_free(&s[i]);
	return BENCH_OK;
}
