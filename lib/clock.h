/*
 * clock: the two clocks that are used, each for one thing.
 *
 * CLOCK_MONOTONIC, in nanoseconds, decides everything. The wall clock, in milliseconds since 1970,
 * is only ever shown. Code that decides something takes `now` as a parameter instead of asking
 * here.
 */
#ifndef SBXD_LIB_CLOCK_H
#define SBXD_LIB_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

#define CLOCK_NEVER UINT64_MAX /* a deadline that never comes */

uint64_t clock_now_ns(void);
uint64_t clock_wall_ms(void);

#define CLOCK_RFC3339_LEN 25 /* "2026-01-31T23:59:59.123Z" and its NUL */

/* Writes wall time `ms` as RFC 3339 in UTC with milliseconds. */
void clock_format_rfc3339(uint64_t ms, char out[CLOCK_RFC3339_LEN]);

/* Converts seconds as a person writes them (may be fractional, >= 0) to nanoseconds, saturating. */
uint64_t clock_seconds_to_ns(double seconds);

#endif
