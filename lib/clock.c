/* clock: the two clocks that are used. Any process; holds no state. */
#include "lib/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_wall_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000ULL + (uint64_t)ts.tv_nsec / NS_PER_MS;
}

void clock_format_rfc3339(uint64_t ms, char out[CLOCK_RFC3339_LEN])
{
	time_t secs = (time_t)(ms / 1000);
	struct tm tm;
	char text[64];

	(void)gmtime_r(&secs, &tm);
	(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned int)(ms % 1000));
	(void)snprintf(out, CLOCK_RFC3339_LEN, "%.24s", text);
}

uint64_t clock_seconds_to_ns(double seconds)
{
	double ns = seconds * 1e9;

	if (!(ns > 0))
		return 0;
	if (ns >= 9.2e18)
		return CLOCK_NEVER;
	return (uint64_t)ns;
}
