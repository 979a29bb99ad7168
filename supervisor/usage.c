/* usage: what boxes have used. Runs in sbxd; its successor finds the same in the table, but for
 * boxes whose worker ended while there was no sbxd. */
#include "supervisor/usage.h"

#include <unistd.h>

#include "lib/clock.h"
#include "shm/slot.h"
#include "supervisor/sbxd.h"

#define USAGE_MAX (1ULL << 48)	   /* nothing a box can do comes to more: its worker lies */
#define USAGE_STALE (2 * NS_PER_S) /* a reading that is older: nothing happens in the box */

static bool read_work(const struct sbxd *s, uint32_t slot, uint64_t gen, struct slot_work *out)
{
	struct slot_work work;

	if (slot_read_work(&s->seg.slots[slot].page, &work) < 0 || work.generation != gen)
		return false;
	*out = work;
	return true;
}

bool usage_of_box(const struct sbxd *s, const struct pool_box *b, struct slot_work *out)
{
	return read_work(s, b->slot, b->generation, out);
}

static uint64_t sane(uint64_t n)
{
	return n < USAGE_MAX ? n : USAGE_MAX;
}

static void add_work(struct usage *u, const struct slot_work *work)
{
	u->commands += sane(work->exec_total);
	u->command_failures += sane(work->exec_failed);
	u->bytes_in += sane(work->bytes_in);
	u->bytes_out += sane(work->bytes_out);
}

static void add_counter(struct sbxd *s, enum shm_counter counter, uint64_t n)
{
	(void)atomic_fetch_add_explicit(&s->seg.header->counters[counter], n, memory_order_relaxed);
}

void usage_retire(struct sbxd *s, uint32_t slot, uint64_t gen)
{
	struct usage u = {0};
	struct slot_work work;

	if (!read_work(s, slot, gen, &work))
		return;
	add_work(&u, &work);
	add_counter(s, COUNTER_PAST_COMMANDS, u.commands);
	add_counter(s, COUNTER_PAST_COMMAND_FAILURES, u.command_failures);
	add_counter(s, COUNTER_PAST_BYTES_IN, u.bytes_in);
	add_counter(s, COUNTER_PAST_BYTES_OUT, u.bytes_out);
}

void usage_total(const struct sbxd *s, struct usage *out)
{
	struct slot_work work;

	*out = (struct usage){
	    .commands = publish_counter(s, COUNTER_PAST_COMMANDS),
	    .command_failures = publish_counter(s, COUNTER_PAST_COMMAND_FAILURES),
	    .bytes_in = publish_counter(s, COUNTER_PAST_BYTES_IN),
	    .bytes_out = publish_counter(s, COUNTER_PAST_BYTES_OUT),
	};
	for (uint32_t i = 0; i < s->seg.slot_count; i++) {
		if (s->workers[i] && usage_of_box(s, pool_box_at(s->pool, i), &work))
			add_work(out, &work);
	}
}

/* Cpus that the box may use. */
static double cpus_of(const struct pool_box *b)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (b->spec.cpus_milli)
		return b->spec.cpus_milli / 1000.0;
	return online > 0 ? (double)online : 1.0;
}

double usage_cpu_percent(
    struct cpu_sample *last, const struct pool_box *b, const struct slot_work *work, uint64_t now)
{
	uint64_t from = last->read_ns ? last->read_ns : b->created;
	double used;

	if (work->heartbeat_ns > now)
		return 0; /* no time that it can have read it at */
	if (work->heartbeat_ns > from && work->cpu_ns >= last->cpu_ns) {
		used = (double)(work->cpu_ns - last->cpu_ns) / (double)(work->heartbeat_ns - from) /
		       cpus_of(b);
		*last = (struct cpu_sample){
		    .read_ns = work->heartbeat_ns,
		    .cpu_ns = work->cpu_ns,
		    .percent = used < 1 ? 100 * used : 100,
		};
	} else if (now - work->heartbeat_ns > USAGE_STALE) {
		last->percent = 0;
	}
	return last->percent;
}
