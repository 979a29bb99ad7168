/* Unit tests of lib/loop.c: watches and timers, and removing them from anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/loop.h"

#define SOURCES 5

/* One watched eventfd, allocated alone so that a sanitizer sees any use after it is freed. */
struct source {
	struct loop_watch watch;
	struct loop_timer timer;
	struct world *world;
	size_t number;
	int fd;
};

struct world {
	struct loop *loop;
	struct source *sources[SOURCES];
	int fired[SOURCES];
	int order[64];
	size_t count;
	uint64_t again_at;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->loop = loop_create();
	assert_non_null(w->loop);
	for (size_t i = 0; i < SOURCES; i++) {
		struct source *s = calloc(1, sizeof(*s));

		assert_non_null(s);
		s->watch.fd = -1;
		s->world = w;
		s->number = i;
		s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(s->fd >= 0);
		w->sources[i] = s;
	}
	*state = w;
	return 0;
}

static void source_free(struct world *w, size_t i)
{
	struct source *s = w->sources[i];

	if (!s)
		return;
	loop_del(w->loop, &s->watch);
	loop_timer_clear(w->loop, &s->timer);
	fd_close(&s->fd);
	free(s);
	w->sources[i] = NULL;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < SOURCES; i++)
		source_free(w, i);
	loop_destroy(w->loop);
	free(w);
	return 0;
}

static void signal_source(struct source *s)
{
	uint64_t one = 1;

	assert_int_equal(write(s->fd, &one, sizeof(one)), sizeof(one));
}

static struct source *note(struct world *w, struct source *s)
{
	w->fired[s->number]++;
	assert_true(w->count < 64);
	w->order[w->count++] = (int)s->number;
	return s;
}

static void on_event(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct source *s = LOOP_OWNER(watch, struct source, watch);
	uint64_t value;

	(void)l;
	assert_true(events & EPOLLIN);
	assert_int_equal(read(s->fd, &value, sizeof(value)), sizeof(value));
	(void)note(s->world, s);
}

/* Frees every source, its own included. */
static void on_event_free_all(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct source *s = LOOP_OWNER(watch, struct source, watch);
	struct world *w = note(s->world, s)->world;

	(void)l;
	(void)events;
	for (size_t i = 0; i < SOURCES; i++)
		source_free(w, i);
}

/* Stops watching itself and starts again: an event of the old watch must not be lost or doubled. */
static void on_event_rewatch(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct source *s = LOOP_OWNER(watch, struct source, watch);

	loop_del(l, watch);
	assert_int_equal(watch->fd, -1);
	assert_int_equal(loop_add(l, watch, s->fd, EPOLLIN, on_event), 0);
	on_event(l, watch, events);
}

static void on_event_quit(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	on_event(l, watch, events);
	loop_quit(l);
}

static void on_timer(struct loop *l, struct loop_timer *timer)
{
	struct source *s = LOOP_OWNER(timer, struct source, timer);

	assert_true(loop_now(l) >= timer->at);
	assert_int_equal(timer->pos, 0);
	(void)note(s->world, s);
}

static void on_timer_free_all(struct loop *l, struct loop_timer *timer)
{
	struct source *s = LOOP_OWNER(timer, struct source, timer);
	struct world *w = note(s->world, s)->world;

	(void)l;
	for (size_t i = 0; i < SOURCES; i++)
		source_free(w, i);
}

static void on_timer_again(struct loop *l, struct loop_timer *timer)
{
	struct source *s = LOOP_OWNER(timer, struct source, timer);

	if (note(s->world, s)->world->fired[s->number] < 3)
		assert_int_equal(loop_timer_set(l, timer, s->world->again_at, on_timer_again), 0);
}

static void add_all(struct world *w, loop_watch_fn *fn)
{
	for (size_t i = 0; i < SOURCES; i++)
		assert_int_equal(
		    loop_add(w->loop, &w->sources[i]->watch, w->sources[i]->fd, EPOLLIN, fn), 0);
}

static void test_events(void **state)
{
	struct world *w = *state;

	add_all(w, on_event);
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, 0);
	signal_source(w->sources[1]);
	signal_source(w->sources[3]);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->count, 2);
	assert_int_equal(w->fired[1], 1);
	assert_int_equal(w->fired[3], 1);
	assert_int_equal(
	    loop_add(w->loop, &w->sources[1]->watch, w->sources[1]->fd, EPOLLIN, on_event),
	    -EEXIST);
	assert_int_equal(loop_add(w->loop, &w->sources[1]->watch, -1, EPOLLIN, on_event), -EBADF);
}

static void test_mod(void **state)
{
	struct world *w = *state;
	struct source *s = w->sources[0];

	assert_int_equal(loop_add(w->loop, &s->watch, s->fd, 0, on_event), 0);
	signal_source(s);
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, 0);
	assert_int_equal(loop_mod(w->loop, &s->watch, EPOLLIN), 0);
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, 1);
	loop_del(w->loop, &s->watch);
	loop_del(w->loop, &s->watch); /* harmless */
	signal_source(s);
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, 1);
}

static void test_free_in_event(void **state)
{
	struct world *w = *state;

	add_all(w, on_event_free_all);
	for (size_t i = 0; i < SOURCES; i++) {
		signal_source(w->sources[i]);
		assert_int_equal(loop_timer_set(w->loop, &w->sources[i]->timer, 0, on_timer), 0);
	}
	/* All are ready in one round; the first to run frees them all, timers too. */
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->count, 1);
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, 1);
}

static void test_rewatch_in_event(void **state)
{
	struct world *w = *state;

	add_all(w, on_event_rewatch);
	for (size_t i = 0; i < SOURCES; i++)
		signal_source(w->sources[i]);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, SOURCES);
	signal_source(w->sources[2]);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->fired[2], 2);
}

static void test_run_and_quit(void **state)
{
	struct world *w = *state;

	add_all(w, on_event_quit);
	signal_source(w->sources[4]);
	assert_int_equal(loop_run(w->loop), 0);
	assert_int_equal(w->fired[4], 1);
	signal_source(w->sources[0]);
	assert_int_equal(loop_run(w->loop), 0);
	assert_int_equal(w->fired[0], 1);
}

static void test_timer_order(void **state)
{
	static const uint64_t at[SOURCES] = {30, 10, 50, 20, 40};
	static const int expected[SOURCES] = {1, 3, 0, 4, 2};
	struct world *w = *state;

	for (size_t i = 0; i < SOURCES; i++)
		assert_int_equal(
		    loop_timer_set(w->loop, &w->sources[i]->timer, at[i], on_timer), 0);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->count, SOURCES);
	assert_memory_equal(w->order, expected, sizeof(expected));
	assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->count, SOURCES); /* each once */
}

static void test_timer_moved_and_cleared(void **state)
{
	static const int expected[] = {3, 0, 1};
	struct world *w = *state;

	for (size_t i = 0; i < SOURCES; i++)
		assert_int_equal(
		    loop_timer_set(w->loop, &w->sources[i]->timer, 10 * (i + 1), on_timer), 0);
	loop_timer_clear(w->loop, &w->sources[2]->timer);
	loop_timer_clear(w->loop, &w->sources[2]->timer); /* harmless */
	assert_int_equal(loop_timer_set(w->loop, &w->sources[3]->timer, 1, on_timer), 0);
	assert_int_equal(
	    loop_timer_set(w->loop, &w->sources[4]->timer, CLOCK_NEVER - 1, on_timer), 0);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->count, 3);
	assert_memory_equal(w->order, expected, sizeof(expected));
}

static void test_timer_wakes_the_loop(void **state)
{
	struct world *w = *state;
	uint64_t at = clock_now_ns() + 3 * NS_PER_MS;

	assert_int_equal(loop_timer_set(w->loop, &w->sources[0]->timer, at, on_timer), 0);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->count, 1);
	assert_true(clock_now_ns() >= at);
}

static void test_timer_again(void **state)
{
	struct world *w = *state;

	w->again_at = 5;
	assert_int_equal(loop_timer_set(w->loop, &w->sources[0]->timer, 1, on_timer_again), 0);
	while (w->fired[0] < 3)
		assert_int_equal(loop_step(w->loop, 0), 0);
	assert_int_equal(w->sources[0]->timer.pos, 0);
}

static void test_free_in_timer(void **state)
{
	struct world *w = *state;

	add_all(w, on_event);
	for (size_t i = 0; i < SOURCES; i++)
		assert_int_equal(
		    loop_timer_set(w->loop, &w->sources[i]->timer, i, on_timer_free_all), 0);
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_int_equal(w->count, 1);
}

struct many {
	struct loop_timer timer;
	uint64_t *last;
	int *fired;
};

static void on_many(struct loop *l, struct loop_timer *timer)
{
	struct many *m = LOOP_OWNER(timer, struct many, timer);

	(void)l;
	assert_true(timer->at >= *m->last);
	*m->last = timer->at;
	(*m->fired)++;
}

/* The heap against a simple model: many timers, set, moved and cleared in a fixed disorder. */
static void test_many_timers(void **state)
{
	struct world *w = *state;
	struct many *all = calloc(1000, sizeof(*all));
	uint64_t last = 0;
	uint32_t seed = 1;
	int fired = 0;
	int set = 0;

	for (int step = 0; step < 20000; step++) {
		struct many *m;

		seed = seed * 1664525u + 1013904223u;
		m = &all[(seed >> 8) % 1000];
		m->last = &last;
		m->fired = &fired;
		if (seed >> 30 == 0)
			loop_timer_clear(w->loop, &m->timer);
		else
			assert_int_equal(
			    loop_timer_set(w->loop, &m->timer, seed % 500, on_many), 0);
	}
	for (int i = 0; i < 1000; i++)
		set += all[i].timer.pos != 0;
	assert_int_equal(loop_step(w->loop, CLOCK_NEVER), 0);
	assert_true(set > 500);
	assert_int_equal(fired, set);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_events, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_mod, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_free_in_event, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rewatch_in_event, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_run_and_quit, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_timer_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_timer_moved_and_cleared, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_timer_wakes_the_loop, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_timer_again, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_free_in_timer, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_many_timers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
