/* clock: the two clocks that are used. Any process; holds no state. */
#include "lib/clock.h"

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

/* Writes n, which has at most `digits` digits, and returns what comes after. */
static char *put_digits(char *p, unsigned int n, int digits)
{
	for (int i = digits - 1; i >= 0; i--, n /= 10)
		p[i] = (char)('0' + n % 10);
	return p + digits;
}

void clock_format_rfc3339(uint64_t ms, char out[CLOCK_RFC3339_LEN])
{
	const uint64_t last = 253402300799999ULL; /* the end of the year 9999 */
	time_t secs = (time_t)((ms < last ? ms : last) / 1000);
	char *p = out;
	struct tm tm;

	(void)gmtime_r(&secs, &tm);
	p = put_digits(p, (unsigned int)tm.tm_year + 1900, 4);
	*p++ = '-';
	p = put_digits(p, (unsigned int)tm.tm_mon + 1, 2);
	*p++ = '-';
	p = put_digits(p, (unsigned int)tm.tm_mday, 2);
	*p++ = 'T';
	p = put_digits(p, (unsigned int)tm.tm_hour, 2);
	*p++ = ':';
	p = put_digits(p, (unsigned int)tm.tm_min, 2);
	*p++ = ':';
	p = put_digits(p, (unsigned int)tm.tm_sec, 2);
	*p++ = '.';
	p = put_digits(p, (unsigned int)((ms < last ? ms : last) % 1000), 3);
	*p++ = 'Z';
	*p = '\0';
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
