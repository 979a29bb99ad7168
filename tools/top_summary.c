/* top_summary: the lines above the list. sbxtop; holds no state. */
#include "tools/top_summary.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "shm/slot.h"
#include "tools/cli.h"
#include "tools/top_text.h"

#define LEFT 49 /* columns of the table of acquires; the figures beside it follow */

static const enum top_style health_styles[] = {
    [HEALTH_UNKNOWN] = STYLE_WARN,
    [HEALTH_STARTING] = STYLE_WARN,
    [HEALTH_SERVING] = STYLE_GOOD,
    [HEALTH_SHUTTING_DOWN] = STYLE_WARN,
    [HEALTH_LEFT] = STYLE_WARN,
    [HEALTH_HUNG] = STYLE_BAD,
    [HEALTH_DEAD] = STYLE_BAD,
};

_Static_assert(
    sizeof(health_styles) / sizeof(health_styles[0]) == HEALTHS, "every health has a style");

/* ---- the supervisor ---- */

static void put_age(struct top_line *l, const char *label, uint64_t ns, const char *after)
{
	char text[TOP_NUMBER];

	cli_format_age((double)ns / (double)NS_PER_S, text, sizeof(text));
	top_line_put(l, STYLE_LABEL, "  %s ", label);
	top_line_put(l, STYLE_STRONG, "%s%s", text, after);
}

#define CLOCK_COLUMNS 8

static void put_clock(const struct top_model *m, int columns, struct top_line *l)
{
	time_t seconds = (time_t)(m->wall_ms / 1000);
	char text[16];
	struct tm tm;

	if (!m->loaded || columns <= CLOCK_COLUMNS || !localtime_r(&seconds, &tm))
		return;
	(void)strftime(text, sizeof(text), "%H:%M:%S", &tm); /* it fits */
	top_line_cut(l, columns - CLOCK_COLUMNS - 1);
	top_line_pad(l, STYLE_PLAIN, columns - CLOCK_COLUMNS);
	top_line_put(l, STYLE_PLAIN, "%s", text);
}

static void put_supervisor(
    const struct top_model *m, const struct top_notice *n, bool generation, struct top_line *l)
{
	bool stands = m->health >= HEALTH_LEFT;

	top_line_put(l, STYLE_LABEL, "sbxd ");
	top_line_put(l, STYLE_STRONG, "%s ", *m->instance ? m->instance : "-");
	top_line_put(l, health_styles[m->health], "%s", top_health_name(m->health));
	if (m->loaded) {
		top_line_put(l, STYLE_LABEL, "  pid ");
		top_line_put(l, STYLE_STRONG, "%d", m->sum.pid);
		if (generation) {
			top_line_put(l, STYLE_LABEL, "  generation ");
			top_line_put(
			    l, STYLE_STRONG, "%llu", (unsigned long long)m->sum.generation);
		}
		/* Of a moment in the past the clock tells which one it is. */
		if (stands && !m->frozen)
			put_age(l, "last heartbeat", m->sum.heartbeat_age_ns, " ago");
		else if (!m->frozen)
			put_age(l, "up", m->sum.uptime_ns, "");
	}
	if (n->mode && *n->mode)
		top_line_put(l, STYLE_WARN, "  %s", n->mode);
}

/* Where not all of it fits, the generation goes first, then the end of the notice; never the clock.
 */
static void put_first(
    const struct top_model *m, const struct top_notice *n, int columns, struct top_line *l)
{
	put_supervisor(m, n, true, l);
	if (l->columns + 1 + CLOCK_COLUMNS > columns) {
		top_line_clear(l);
		put_supervisor(m, n, false, l);
	}
	put_clock(m, columns, l);
}

/* ---- boxes ---- */

/* In the order of the bar; those that count against replicas first. */
static const uint8_t bar_states[] = {SLOT_ACTIVE, SLOT_CHECKING, SLOT_WARM, SLOT_STOCK,
    SLOT_BOOTING, SLOT_RESERVED, SLOT_CLOSING, SLOT_QUARANTINED};

#define BAR_STATES (sizeof(bar_states) / sizeof(bar_states[0]))

_Static_assert(BAR_STATES == SLOT_STATES - 1, "all but the free ones are in the bar");

static void put_bar(const struct top_model *m, int columns, struct top_line *l)
{
	uint64_t all = top_model_boxes(m);
	uint64_t full = m->sum.replicas > all ? m->sum.replicas : all;
	uint64_t before = 0;
	int drawn = 0;

	top_line_put(l, STYLE_STRONG, "[");
	for (size_t i = 0; i < BAR_STATES && full; i++) {
		int end;

		before += m->sum.state_count[bar_states[i]];
		end = (int)((before * (uint64_t)columns + full - 1) / full);
		for (; drawn < end && drawn < columns; drawn++)
			top_line_put(l, top_style_of_state(bar_states[i]), "|");
	}
	top_line_pad(l, STYLE_PLAIN, l->columns + columns - drawn);
	top_line_put(l, STYLE_STRONG, "]");
}

static void put_boxes(const struct top_model *m, int columns, struct top_line *l)
{
	char text[64];
	int room;

	top_line_put(l, STYLE_LABEL, "Boxes     ");
	(void)snprintf(text, sizeof(text), " %u of %u replicas, %u slots", top_model_boxes(m),
	    m->sum.replicas, m->sum.slots);
	room = columns - l->columns - 2 - (int)strlen(text);
	if (room > 4)
		put_bar(m, room, l);
	top_line_put(l, STYLE_STRONG, "%s", text);
}

/* In place of the states: they are of no use then. */
static void put_trouble(const char *text, struct top_line *l)
{
	top_line_put(l, STYLE_PLAIN, "          ");
	top_line_put(l, STYLE_BAD, "%s", text);
}

/* The three that are always there are said even when there are none of them. */
static void put_states(const struct top_model *m, struct top_line *l)
{
	static const uint16_t always = 1U << SLOT_ACTIVE | 1U << SLOT_WARM | 1U << SLOT_BOOTING;

	top_line_put(l, STYLE_PLAIN, "         ");
	for (size_t i = 0; i < BAR_STATES; i++) {
		uint8_t state = bar_states[i];
		uint32_t n = m->sum.state_count[state];

		if (n == 0 && !(always & 1U << state))
			continue;
		top_line_put(l, n ? top_style_of_state(state) : STYLE_FAINT, " %u %s", n,
		    slot_state_name(state));
	}
	if (m->unreadable)
		top_line_put(l, STYLE_BAD, " %u unreadable", m->unreadable);
}

/* ---- acquires and the rest of it ---- */

struct work_row {
	const char *name;
	enum shm_counter counter;
	enum shm_hist_id hist;
};

static const struct work_row work_rows[] = {
    {"active", COUNTER_ACQUIRE_ACTIVE, HIST_ACQUIRE_ACTIVE},
    {"warm", COUNTER_ACQUIRE_WARM, HIST_ACQUIRE_WARM},
    {"prewarmed", COUNTER_ACQUIRE_PREWARMED, HIST_ACQUIRE_PREWARMED},
    {"cold", COUNTER_ACQUIRE_COLD, HIST_ACQUIRE_COLD},
    {"boots", COUNTER_BOOTS, HIST_BOOT},
    {"checks", COUNTER_CHECKS, HIST_CHECK},
    {"closes", COUNTER_CLOSES, HIST_CLOSE},
};

#define WORK_ROWS (sizeof(work_rows) / sizeof(work_rows[0]))

_Static_assert(TOP_SUMMARY_LONG == 4 + WORK_ROWS, "a line each below four others");

static void put_work_head(struct top_line *l)
{
	top_line_put(
	    l, STYLE_LABEL, "Acquires  %8s%10s%7s%7s%7s", "/s", "total", "p50", "p95", "p99");
}

static void put_work(const struct top_model *m, const struct work_row *row, struct top_line *l)
{
	const struct reader_latency *latency = &m->latency[row->hist];
	char text[TOP_NUMBER];

	top_line_put(l, STYLE_LABEL, " %-9s", row->name);
	top_format_rate(m->rate[row->counter], text);
	top_line_right(l, m->rate[row->counter] > 0 ? STYLE_STRONG : STYLE_PLAIN, text, 8);
	top_format_count(m->sum.counters[row->counter], 9, text);
	top_line_right(l, STYLE_PLAIN, text, 10);
	top_format_latency(latency->p50_ns, text);
	top_line_right(l, STYLE_PLAIN, text, 7);
	top_format_latency(latency->p95_ns, text);
	top_line_right(l, STYLE_PLAIN, text, 7);
	top_format_latency(latency->p99_ns, text);
	top_line_right(l, STYLE_PLAIN, text, 7);
}

/* ---- figures beside it ---- */

static void put_count(const struct top_model *m, enum shm_counter c, const char *name,
    enum top_style style, struct top_line *l)
{
	uint64_t n = m->sum.counters[c];
	char text[TOP_NUMBER];

	top_format_count(n, 5, text);
	top_line_put(l, STYLE_LABEL, "%s", name);
	top_line_put(l, n ? style : STYLE_PLAIN, " %s", text);
}

static void put_hits(const struct top_model *m, struct top_line *l)
{
	double all = top_model_hits(m);
	double now = top_model_hits_now(m);

	top_line_put(l, STYLE_LABEL, "Hits ");
	if (all < 0)
		top_line_put(l, STYLE_PLAIN, "-");
	else
		top_line_put(l, STYLE_STRONG, "%.1f%%", all);
	if (now >= 0)
		top_line_put(l, STYLE_PLAIN, ", now %.1f%%", now);
}

static void put_boots(const struct top_model *m, struct top_line *l)
{
	top_line_put(l, STYLE_LABEL, "Booting ");
	top_line_put(l, STYLE_STRONG, "%u of %u", m->sum.state_count[SLOT_BOOTING], m->boots_max);
	put_count(m, COUNTER_BOOT_FAILURES, " failed", STYLE_BAD, l);
}

static void put_waiters(const struct top_model *m, struct top_line *l)
{
	top_line_put(l, STYLE_LABEL, "Waiters ");
	top_line_put(l, m->sum.waiters ? STYLE_WARN : STYLE_PLAIN, "%u", m->sum.waiters);
	put_count(m, COUNTER_ACQUIRE_FAILED, " failed", STYLE_WARN, l);
}

static void put_crashes(const struct top_model *m, struct top_line *l)
{
	put_count(m, COUNTER_WORKER_CRASHES, "Crashes", STYLE_BAD, l);
	put_count(m, COUNTER_LOCK_RECOVERIES, " recoveries", STYLE_WARN, l);
}

static void put_usage(const struct top_model *m, struct top_line *l)
{
	char text[TOP_NUMBER];

	cli_format_bytes(m->memory_bytes, text, sizeof(text));
	top_line_put(l, STYLE_LABEL, "Cpu ");
	top_line_put(l, STYLE_STRONG, "%.1f%%", m->cpu_percent);
	top_line_put(l, STYLE_LABEL, " memory ");
	top_line_put(l, STYLE_STRONG, "%s", text);
}

static void put_ends(const struct top_model *m, struct top_line *l)
{
	put_count(m, COUNTER_EVICTIONS, "Evicted", STYLE_PLAIN, l);
	put_count(m, COUNTER_IDLE_CLOSES, " idle", STYLE_PLAIN, l);
}

static void put_failures(const struct top_model *m, struct top_line *l)
{
	put_count(m, COUNTER_CHECK_FAILURES, "Checks failed", STYLE_WARN, l);
}

static void put_requests(const struct top_model *m, struct top_line *l)
{
	put_count(m, COUNTER_HANDOVERS, "Handed over", STYLE_PLAIN, l);
	put_count(m, COUNTER_REJECTED_REQUESTS, " bad", STYLE_WARN, l);
}

typedef void figure_fn(const struct top_model *m, struct top_line *l);

/* From the line of titles on. */
static figure_fn *const figures[1 + WORK_ROWS] = {
    put_hits, put_boots, put_waiters, put_crashes, put_usage, put_ends, put_failures, put_requests};

void top_summary_lines(const struct top_model *m, const struct top_notice *notice, size_t count,
    int columns, struct top_line *lines)
{
	for (size_t i = 0; i < count; i++)
		top_line_clear(&lines[i]);
	put_first(m, notice, columns, &lines[0]);
	put_boxes(m, columns, &lines[1]);
	if (notice->table && *notice->table)
		put_trouble(notice->table, &lines[2]);
	else
		put_states(m, &lines[2]);
	put_work_head(&lines[3]);
	for (size_t i = 3; i < count && i < 4 + WORK_ROWS; i++) {
		if (i > 3)
			put_work(m, &work_rows[i - 4], &lines[i]);
		top_line_pad(&lines[i], STYLE_PLAIN, LEFT + 2);
		figures[i - 3](m, &lines[i]);
	}
}
