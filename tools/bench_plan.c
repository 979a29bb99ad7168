/* bench_plan: the tables of scenarios and workloads. sbxbench; holds no state. */
#include "tools/bench_plan.h"

#include <stdio.h>
#include <string.h>

#define PRESSURE 2U    /* threads for each box that there may be */
#define FEW_THREADS 4U /* one more than `replicas` is by default */

static void name_same(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD])
{
	(void)p;
	(void)i;
	(void)snprintf(out, BENCH_THREAD, "warm-hit");
}

static void name_unique(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD])
{
	(void)p;
	(void)snprintf(out, BENCH_THREAD, "cold-%u", i);
}

static void name_rotating(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD])
{
	uint32_t threads = p->concurrency > FEW_THREADS ? p->concurrency : FEW_THREADS;

	(void)snprintf(out, BENCH_THREAD, "thread-%u", i % threads);
}

static void name_idle(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD])
{
	(void)p;
	(void)snprintf(out, BENCH_THREAD, "idle-%u", i / 2);
}

static void name_pressing(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD])
{
	uint32_t threads = p->replicas > 0 ? (uint32_t)p->replicas * PRESSURE : PRESSURE;

	(void)snprintf(out, BENCH_THREAD, "pressure-%u", i % threads);
}

static void name_warmup(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD])
{
	(void)p;
	(void)i;
	(void)snprintf(out, BENCH_THREAD, "warmup");
}

const struct bench_scenario bench_scenario_warmup = {
    "warmup", "a box of its own", name_warmup, false, false};

static const struct bench_scenario scenarios[] = {
    {"warm_same_thread", "the same box every time", name_same, false, false},
    {"cold_unique_thread", "a new box every time", name_unique, false, false},
    {"warm_miss_many_threads", "at least four threads in turn", name_rotating, false, false},
    {"idle_timeout", "two turns, between which the box has to time out", name_idle, true, false},
    {"replica_pressure", "twice as many threads as replicas, while a box is in use", name_pressing,
	false, true},
};

#define STATE_FILE "/tmp/sbxbench-state"

static const struct bench_workload workloads[] = {
    {"noop", "`true`", {{"true", "", false}, {"true", "", false}}},
    {"python_small", "a sum in Python",
	{{"python3 -c 'print(sum(range(100000)))'", "4999950000", false},
	    {"python3 -c 'print(sum(range(100000)))'", "4999950000", false}}},
    {"fs_1mb", "1 MiB written and read again in Python",
	{{"python3 -c 'p = \"/tmp/sbxbench-1mb\"; open(p, \"w\").write(\"x\" * 2**20); "
	  "print(len(open(p).read()))'",
	     "1048576", false},
	    {"python3 -c 'p = \"/tmp/sbxbench-1mb\"; open(p, \"w\").write(\"y\" * 2**20); "
	     "print(len(open(p).read()))'",
		"1048576", false}}},
    {"sleep_2s", "two seconds of sleep",
	{{"sleep 2; echo slept", "slept", false}, {"sleep 2; echo slept", "slept", false}}},
    {"state_reuse", "a file written in one turn and read in the next",
	{{"echo state-$PAIR >" STATE_FILE " && echo written", "written", false},
	    {"cat " STATE_FILE, "state-", true}}},
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))
#define WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

const struct bench_scenario *bench_scenario_at(unsigned int i)
{
	return i < SCENARIOS ? &scenarios[i] : NULL;
}

const struct bench_workload *bench_workload_at(unsigned int i)
{
	return i < WORKLOADS ? &workloads[i] : NULL;
}

const struct bench_scenario *bench_scenario_find(const char *name)
{
	const struct bench_scenario *s = NULL;

	for (unsigned int i = 0; (s = bench_scenario_at(i)) && strcmp(s->name, name) != 0; i++)
		;
	return s;
}

const struct bench_workload *bench_workload_find(const char *name)
{
	const struct bench_workload *w = NULL;

	for (unsigned int i = 0; (w = bench_workload_at(i)) && strcmp(w->name, name) != 0; i++)
		;
	return w;
}
