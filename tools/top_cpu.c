/* top_cpu: how much of a cpu a box uses now. sbxtop; holds no state but its caller's. */
#include "tools/top_cpu.h"

#include <stdbool.h>
#include <string.h>

#include "lib/clock.h"

#define BEAT NS_PER_S		     /* how often a busy worker reports */
#define ASLEEP (2 * BEAT + BEAT / 2) /* it has missed two: there is nothing to report */
/* Cpu time is read once a beat, but the time of the report may be that of a command's end in
 * between: over so many beats it makes little difference. */
#define WINDOW (3 * BEAT)

static void keep_point(struct top_cpu *c, uint64_t at, uint64_t cpu)
{
	size_t gone = c->count == TOP_CPU_POINTS ? 1 : 0;

	/* The first of those that stay is the last one before the window. */
	while (gone + 1 < c->count && at - c->points[gone + 1].at_ns >= WINDOW)
		gone++;
	memmove(c->points, c->points + gone, (c->count - gone) * sizeof(c->points[0]));
	c->count -= gone;
	c->points[c->count].at_ns = at;
	c->points[c->count].cpu_ns = cpu;
	c->count++;
}

static double percent(uint64_t used, uint64_t span)
{
	return span ? 100.0 * (double)used / (double)span : 0;
}

static bool is_new(const struct top_cpu *c, uint64_t at, uint64_t cpu)
{
	uint64_t last = c->points[c->count - 1].at_ns;

	if (at <= last)
		return false;
	/* Longer than a beat: it was read again, and is the same. */
	return cpu != c->points[c->count - 1].cpu_ns || at - last > BEAT + BEAT / 10;
}

double top_cpu_update(struct top_cpu *c, const struct reader_box *b, uint64_t now)
{
	const struct slot_work *w = &b->work;
	uint64_t at = w->heartbeat_ns < now ? w->heartbeat_ns : now;

	if (w->generation == 0 || now - at > ASLEEP) {
		c->count = 0;
		return 0;
	}
	if (c->generation != b->sup.generation ||
	    (c->count && w->cpu_ns < c->points[c->count - 1].cpu_ns))
		c->count = 0;
	c->generation = b->sup.generation;
	if (c->count == 0 || is_new(c, at, w->cpu_ns))
		keep_point(c, at, w->cpu_ns);
	if (c->count == 1)
		return at > b->sup.created_ns ? percent(w->cpu_ns, at - b->sup.created_ns) : 0;
	return percent(c->points[c->count - 1].cpu_ns - c->points[0].cpu_ns,
	    c->points[c->count - 1].at_ns - c->points[0].at_ns);
}
