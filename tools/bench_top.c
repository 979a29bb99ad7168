/* bench_top: what sbxtop needs for a snapshot of many boxes and for drawing it. */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "shm/slot.h"
#include "tools/bench.h"
#include "tools/top_app.h"
#include "tools/top_screen.h"

#define BOXES 10000
#define ROUNDS 60
#define BOUND_MS 50 /* what is asked */
#define FEW 100
#define ROWS 50
#define COLUMNS 190

struct stage {
	char name[64];
	struct segment seg;
	struct slot_sup *parts;
	struct top_app app;
	struct top_options options;
	struct top_settings set;
	FILE *terminal;
};

/* A box that is used: all that it shows changes. */
static void touch(struct stage *st, uint32_t slot, uint32_t round)
{
	struct slot_sup *sup = &st->parts[slot];
	struct slot_work work = {
	    .generation = sup->generation,
	    .heartbeat_ns = clock_now_ns(),
	    .exec_total = round,
	    .bytes_out = (uint64_t)round * slot,
	    .cpu_ns = (uint64_t)round * 1000000 * (slot % 1000),
	    .memory_bytes = (uint64_t)(slot + round) << 12,
	};

	sup->acquires++;
	sup->leased_ns = work.heartbeat_ns;
	slot_publish_sup(&st->seg.slots[slot], sup);
	slot_publish_work(&st->seg.slots[slot].page, &work);
}

static void fill(struct stage *st, uint32_t boxes)
{
	struct err err;

	(void)snprintf(st->name, sizeof(st->name), "/sbxd-%u-bench-top", (unsigned int)geteuid());
	(void)segment_unlink(st->name); /* of a run that was killed */
	if (segment_create(st->name, "bench-top", boxes, 4, &st->seg, &err) < 0)
		bench_give_up(err.text);
	st->parts = calloc(boxes, sizeof(*st->parts));
	if (!st->parts)
		bench_die("calloc");
	for (uint32_t i = 0; i < boxes; i++) {
		struct slot_sup *sup = &st->parts[i];

		*sup =
		    (struct slot_sup){.generation = i + 1, .state = SLOT_ACTIVE, .worker_pid = 1};
		(void)snprintf(sup->token, sizeof(sup->token), "%016x", i * 2654435761U);
		(void)snprintf(sup->user, sizeof(sup->user), "us\xc3\xa9r-%u", i % 97);
		(void)snprintf(sup->thread, sizeof(sup->thread), "thread-%u", i);
		touch(st, i, 0);
	}
}

static void open_stage(struct stage *st, uint32_t boxes)
{
	struct err err;

	(void)setlocale(LC_CTYPE, "C.UTF-8"); /* without it, names are shorter to write */
	fill(st, boxes);
	st->options = (struct top_options){.sort = -1, .instance = "bench-top"};
	top_settings_default(&st->set);
	st->app.options = &st->options;
	st->app.set = &st->set;
	st->app.act.fd = -1;
	if (top_session_open(&st->app.s, &st->options, &st->set, &err) < 0)
		bench_give_up(err.text);
	st->terminal = fopen("/dev/null", "we");
	if (!st->terminal)
		bench_die("/dev/null");
	if (top_screen_open("xterm-256color", st->terminal, stdin, true, &err) < 0)
		bench_give_up(err.text);
	top_screen_set_size(ROWS, COLUMNS);
}

static void close_stage(struct stage *st)
{
	top_screen_close();
	(void)fclose(st->terminal); /* nothing of it is kept */
	top_session_close(&st->app.s);
	segment_close(&st->seg);
	(void)segment_unlink(st->name); /* it is ours */
	free(st->parts);
}

/* Snapshot, order, and what a terminal is sent; `changed` boxes are used in between. */
static void measure(struct stage *st, uint32_t boxes, uint32_t changed, struct samples *s)
{
	struct err err;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint64_t begin;

		for (uint32_t i = 0; i < changed; i++)
			touch(st, (i + round * 7919U) % boxes, round);
		begin = clock_now_ns();
		if (top_session_refresh(&st->app.s, &err) < 0)
			bench_give_up(err.text);
		top_view_draw(&st->app);
		samples_add(s, clock_now_ns() - begin);
	}
}

static int report(const char *what, uint32_t boxes, struct samples *s)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "sbxtop, %u boxes: %s", boxes, what);
	return print_row(&(struct row){
	    .what = text,
	    .unit = "ms",
	    .baseline = "what is asked",
	    .value = bench_ms(samples_quantile(s, 0.5)),
	    .p95 = bench_ms(samples_quantile(s, 0.95)),
	    .base = BOUND_MS,
	    .bound = 1.0,
	});
}

int bench_top(uint32_t boxes)
{
	static struct stage st;
	uint32_t count = boxes ? boxes : BOXES;
	struct samples all = {0};
	struct samples few = {0};
	int missed;

	if (count > SHM_MAX_SLOTS)
		count = SHM_MAX_SLOTS;
	open_stage(&st, count);
	measure(&st, count, count, &all);
	measure(&st, count, FEW < count ? FEW : count, &few);
	close_stage(&st);
	missed = report("all of them used", count, &all) + report("100 of them used", count, &few);
	samples_free(&all);
	samples_free(&few);
	return missed;
}
