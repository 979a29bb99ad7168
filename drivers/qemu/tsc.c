/* tsc: how fast this host's time stamp counter is. Janitor; holds no state. */
#include "drivers/qemu/tsc.h"

#include <time.h>

#include "lib/clock.h"

#define TSC_MEASURE_NS (20 * NS_PER_MS)

#if defined(__x86_64__)

/* Both clocks at the same time, as nearly as can be. */
static void tsc_read(uint64_t *ns, uint64_t *ticks)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		struct timespec ts;
		uint64_t before = __builtin_ia32_rdtsc();
		uint64_t after;

		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		after = __builtin_ia32_rdtsc();
		if (after - before >= best)
			continue;
		best = after - before;
		*ticks = before + best / 2;
		*ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	}
}

uint32_t tsc_khz(void)
{
	const struct timespec pause = {.tv_nsec = (long)TSC_MEASURE_NS};
	uint64_t ns[2] = {0};
	uint64_t ticks[2] = {0};

	tsc_read(&ns[0], &ticks[0]);
	(void)nanosleep(&pause, NULL);
	tsc_read(&ns[1], &ticks[1]);
	return (uint32_t)((ticks[1] - ticks[0]) * NS_PER_MS / (ns[1] - ns[0]));
}

#else

uint32_t tsc_khz(void)
{
	return 0;
}

#endif
