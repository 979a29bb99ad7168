/* Tests of tools/top_replay.c: going back to any recorded moment shows what was so then. */
#include "tools/top_replay.h"

#include "tests/unit/tools/top_testing.h"

#define SLOTS 6U
#define STEPS 600U /* fewer than the ring holds */

/* What is remembered of a moment, to be found again. */
struct moment {
	uint64_t time_ns;
	uint64_t wall_ms;
	uint32_t count[SLOT_STATES];
	uint64_t leases_given;
	struct {
		uint64_t generation;
		uint32_t state;
		uint32_t leases;
		uint64_t state_ns;
		char token[SHM_TOKEN_LEN];
	} slot[SLOTS];
};

struct fixture {
	struct stage s;
	struct moment moments[STEPS + 1]; /* after so many events */
	struct moment now;
	uint64_t seed;
	uint64_t next_generation;
	struct top_replay replay;
};

static void record(struct fixture *f, const struct shm_event *what, uint32_t slot)
{
	struct shm_event ev = *what;

	f->now.time_ns += NS_PER_MS;
	f->now.wall_ms += 1;
	ev.time_ns = f->now.time_ns;
	ev.wall_ms = f->now.wall_ms;
	ev.slot = slot;
	ev.generation = f->now.slot[slot].generation;
	memcpy(ev.token, f->now.slot[slot].token, sizeof(ev.token));
	(void)ring_append(&f->s.t.seg, &ev);
}

static void move(struct fixture *f, uint32_t slot, uint32_t to)
{
	uint32_t from = f->now.slot[slot].state;
	struct shm_event ev = {.kind = EVENT_STATE, .from = from, .to = to};

	if (from == SLOT_FREE) {
		f->now.slot[slot].generation = f->next_generation++;
		(void)snprintf(f->now.slot[slot].token, SHM_TOKEN_LEN, "box-%llu",
		    (unsigned long long)f->now.slot[slot].generation);
	}
	record(f, &ev, slot);
	f->now.slot[slot].state = to;
	f->now.slot[slot].state_ns = f->now.time_ns;
	if (to != SLOT_ACTIVE)
		f->now.slot[slot].leases = 0;
}

static void give_lease(struct fixture *f, uint32_t slot)
{
	record(f, &(struct shm_event){.kind = EVENT_LEASE, .reason = "active"}, slot);
	f->now.slot[slot].leases++;
	f->now.leases_given++;
}

static void take_lease(struct fixture *f, uint32_t slot)
{
	record(f, &(struct shm_event){.kind = EVENT_RELEASE}, slot);
	f->now.slot[slot].leases--;
}

/* One event, of those that may come now. A box without leases leaves the active state only then. */
static void step(struct fixture *f)
{
	uint32_t slot = (uint32_t)(random_next(&f->seed) % SLOTS);
	uint32_t state = f->now.slot[slot].state;
	uint32_t to = (uint32_t)(random_next(&f->seed) % SLOT_STATES);

	if (state == SLOT_ACTIVE && f->now.slot[slot].leases && random_next(&f->seed) % 2) {
		take_lease(f, slot);
		return;
	}
	if (state == SLOT_ACTIVE && random_next(&f->seed) % 2) {
		give_lease(f, slot);
		return;
	}
	if (state == SLOT_ACTIVE && f->now.slot[slot].leases)
		to = SLOT_ACTIVE; /* not allowed: another one is looked for */
	while (!slot_transition_allowed(state, to) || to == SLOT_QUARANTINED) {
		slot = (slot + 1) % SLOTS;
		state = f->now.slot[slot].state;
		to = (uint32_t)(random_next(&f->seed) % SLOT_STATES);
		if (state == SLOT_ACTIVE && f->now.slot[slot].leases)
			to = SLOT_ACTIVE;
	}
	move(f, slot, to);
}

static void count(struct moment *m)
{
	memset(m->count, 0, sizeof(m->count));
	for (uint32_t i = 0; i < SLOTS; i++)
		m->count[m->slot[i].state]++;
}

static void publish_end(struct fixture *f)
{
	struct shm_header *h = f->s.t.seg.header;

	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot_sup part = part_make(f->now.slot[i].state, i);

		part.generation = f->now.slot[i].generation;
		part.leases = f->now.slot[i].leases;
		part.state_ns = f->now.slot[i].state_ns;
		memcpy(part.token, f->now.slot[i].token, sizeof(part.token));
		slot_publish_sup(&f->s.t.seg.slots[i], &part);
	}
	for (int i = 0; i < SLOT_STATES; i++)
		atomic_store(&h->state_count[i], f->now.count[i]);
	atomic_store(&h->counters[COUNTER_ACQUIRE_ACTIVE], f->now.leases_given);
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	stage_open(&f.s, SLOTS);
	f.seed = 4711;
	f.next_generation = 1;
	f.now.time_ns = NOW;
	f.now.wall_ms = 1000;
	count(&f.now);
	f.moments[0] = f.now;
	for (uint32_t i = 1; i <= STEPS; i++) {
		step(&f);
		count(&f.now);
		f.moments[i] = f.now;
	}
	publish_end(&f);
	f.s.m->frozen = true;
	top_model_refresh(f.s.m, &f.s.r, f.now.time_ns);
	f.s.m->wall_ms = f.now.wall_ms;
	assert_int_equal(top_replay_begin(&f.replay, f.s.m), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	top_replay_end(&f->replay);
	stage_close(&f->s);
	return 0;
}

static void assert_moment(const struct fixture *f, uint32_t events)
{
	const struct top_model *m = f->s.m;
	const struct moment *then = &f->moments[events];
	size_t boxes = 0;

	if (events > 0) {
		assert_int_equal(m->now, then->time_ns);
		assert_int_equal(m->wall_ms, then->wall_ms);
	}
	assert_memory_equal(m->sum.state_count, then->count, sizeof(then->count));
	assert_int_equal(m->sum.counters[COUNTER_ACQUIRE_ACTIVE], then->leases_given);
	assert_int_equal(top_events_count(&m->events), events);
	for (uint32_t i = 0; i < SLOTS; i++) {
		const struct top_box *b = &m->slots[i];

		assert_int_equal(b->there, then->slot[i].state != SLOT_FREE);
		if (!b->there)
			continue;
		boxes++;
		assert_int_equal(b->seen.sup.state, then->slot[i].state);
		assert_int_equal(b->seen.sup.generation, then->slot[i].generation);
		assert_int_equal(b->seen.sup.state_ns, then->slot[i].state_ns);
		if (then->slot[i].state != SLOT_STOCK)
			assert_string_equal(b->seen.sup.token, then->slot[i].token);
	}
	assert_int_equal(m->box_count, boxes);
}

static void test_every_moment(void **state)
{
	struct fixture *f = *state;

	for (uint32_t back = 0; back <= STEPS; back++) {
		top_replay_seek(&f->replay, f->s.m, back);
		assert_moment(f, STEPS - back);
	}
	/* Past the oldest is the oldest; and the end is as it was. */
	top_replay_seek(&f->replay, f->s.m, 10 * STEPS);
	assert_moment(f, 0);
	top_replay_seek(&f->replay, f->s.m, 0);
	assert_moment(f, STEPS);
}

/* Leases of a box that is there at the end: undone one by one. */
static void test_leases(void **state)
{
	struct fixture *f = *state;

	for (uint32_t back = 0; back <= STEPS; back++) {
		top_replay_seek(&f->replay, f->s.m, back);
		for (uint32_t i = 0; i < SLOTS; i++) {
			const struct top_box *b = &f->s.m->slots[i];

			if (b->there && b->seen.sup.generation == f->now.slot[i].generation)
				assert_int_equal(
				    b->seen.sup.leases, f->moments[STEPS - back].slot[i].leases);
		}
	}
}

static void test_playing(void **state)
{
	struct fixture *f = *state;
	bool more = true;

	top_replay_seek(&f->replay, f->s.m, STEPS - 1);
	assert_moment(f, 1);
	for (uint32_t n = 1; n + 10 < STEPS; n += 10) {
		assert_true(top_replay_play(&f->replay, f->s.m, 10 * NS_PER_MS));
		assert_moment(f, n + 10);
	}
	/* Between two events time goes on. */
	top_replay_seek(&f->replay, f->s.m, STEPS - 5);
	assert_true(top_replay_play(&f->replay, f->s.m, NS_PER_MS / 2));
	assert_int_equal(f->s.m->now, f->moments[5].time_ns + NS_PER_MS / 2);
	assert_int_equal(top_events_count(&f->s.m->events), 5);
	for (int i = 0; more && i < 1000; i++)
		more = top_replay_play(&f->replay, f->s.m, NS_PER_MS);
	assert_false(more);
	assert_moment(f, STEPS);
}

/* Whoever recorded it lived then. */
static void test_supervisors(void **state)
{
	static struct stage s;
	struct top_replay r;
	struct shm_event ev = {.slot = SHM_NONE};

	(void)state;
	stage_open(&s, SLOTS);
	for (int i = 1; i <= 3; i++) {
		ev.kind = EVENT_SUPERVISOR_START;
		ev.pid = i * 10;
		ev.time_ns = NOW + (unsigned int)i * NS_PER_S;
		stage_event(&s, &ev);
		ev.kind = EVENT_ERROR;
		ev.time_ns += NS_PER_S / 2;
		stage_event(&s, &ev);
	}
	atomic_store(&s.t.seg.header->supervisor_gen, 3);
	s.m->frozen = true;
	top_model_refresh(s.m, &s.r, ev.time_ns);
	s.m->sum.alive = false;
	assert_int_equal(top_replay_begin(&r, s.m), 0);
	top_replay_seek(&r, s.m, 3); /* the second one's start is the newest */
	assert_int_equal(s.m->sum.pid, 20);
	assert_int_equal(s.m->sum.generation, 2);
	assert_int_equal(s.m->health, HEALTH_SERVING);
	assert_int_equal(s.m->sum.uptime_ns, 0);
	top_replay_seek(&r, s.m, 4);
	assert_int_equal(s.m->sum.pid, 10);
	assert_int_equal(s.m->sum.uptime_ns, NS_PER_S / 2);
	top_replay_seek(&r, s.m, 0);
	assert_int_equal(s.m->sum.generation, 3);
	top_replay_end(&r);
	stage_close(&s);
}

/* What a damaged table's recorder may hold. */
static void test_nonsense(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = 99;

	for (size_t i = 0; i < f->s.m->events.count; i++) {
		struct shm_event *ev = &f->s.m->events.kept[i];

		for (size_t b = offsetof(struct shm_event, time_ns); b < sizeof(*ev); b++) {
			if (random_next(&seed) % 8 == 0)
				((uint8_t *)ev)[b] = (uint8_t)random_next(&seed);
		}
	}
	for (uint32_t back = 0; back <= STEPS + 1; back++) {
		top_replay_seek(&f->replay, f->s.m, back);
		assert_true(f->s.m->box_count <= SLOTS);
	}
	for (int i = 0; i < 100; i++)
		(void)top_replay_play(&f->replay, f->s.m, NS_PER_S);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_every_moment),
	    WITH(test_leases),
	    WITH(test_playing),
	    WITH(test_nonsense),
	    cmocka_unit_test(test_supervisors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
