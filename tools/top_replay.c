/* top_replay: walking back through what a dead sbxd has recorded. sbxtop; holds no state but its
 * caller's. */
#include "tools/top_replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

int top_replay_begin(struct top_replay *r, const struct top_model *m)
{
	struct top_box *slots = calloc(m->slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	memcpy(slots, m->slots, m->slot_count * sizeof(*slots));
	*r = (struct top_replay){.slots = slots,
	    .sum = m->sum,
	    .started_ns = m->started_ns,
	    .heartbeat_ns = m->heartbeat_ns,
	    .end_ns = m->now,
	    .end_wall_ms = m->wall_ms};
	return 0;
}

void top_replay_end(struct top_replay *r)
{
	free(r->slots);
	*r = (struct top_replay){0};
}

/* ---- undoing ---- */

static void name_box(struct slot_sup *sup, const struct shm_event *ev)
{
	memcpy(sup->token, ev->token, sizeof(sup->token));
	sup->token[sizeof(sup->token) - 1] = '\0';
}

/* A box that is gone at the end, or another box's slot then: what an event tells of it. */
static void make_bare(struct top_box *b, const struct shm_event *ev)
{
	struct slot_sup *sup = &b->seen.sup;

	*b = (struct top_box){.there = true};
	b->seen.slot = ev->slot;
	sup->generation = ev->generation;
	sup->owner_uid = ev->owner_uid;
	sup->worker_pid = ev->pid;
	name_box(sup, ev);
}

static void undo_state(struct top_box *b, const struct shm_event *ev)
{
	struct slot_sup *sup = &b->seen.sup;

	if (!b->there || sup->generation != ev->generation)
		make_bare(b, ev);
	sup->state = ev->from;
	sup->state_ns = 0; /* looked for when all is undone */
	/* Stock is nobody's, and so is what becomes stock. */
	if (ev->from == SLOT_STOCK || ev->token[0] == '\0') {
		memset(sup->token, 0, sizeof(sup->token));
		memset(sup->user, 0, sizeof(sup->user));
		memset(sup->thread, 0, sizeof(sup->thread));
	} else {
		name_box(sup, ev);
	}
	b->there = ev->from != SLOT_FREE;
}

static void undo_lease(struct top_box *b, const struct shm_event *ev)
{
	struct slot_sup *sup = &b->seen.sup;

	if (!b->there || sup->generation != ev->generation)
		return;
	if (ev->kind == EVENT_RELEASE)
		sup->leases++;
	else if (sup->leases > 0)
		sup->leases--;
}

static void undo(struct top_model *m, const struct shm_event *ev)
{
	int counter = top_event_counter(ev);

	if (counter >= 0 && m->sum.counters[counter] > 0)
		m->sum.counters[counter]--;
	if (ev->kind == EVENT_SUPERVISOR_START && m->sum.generation > 0)
		m->sum.generation--;
	if (ev->slot >= m->slot_count || ev->from >= SLOT_STATES)
		return;
	if (ev->kind == EVENT_STATE)
		undo_state(&m->slots[ev->slot], ev);
	else if (ev->kind == EVENT_LEASE || ev->kind == EVENT_RELEASE)
		undo_lease(&m->slots[ev->slot], ev);
}

/* ---- what is then so ---- */

/* Since when each box is in its state, as far as the events before tell. */
static void find_times(struct top_model *m)
{
	const struct shm_event *ev;

	for (size_t i = 0; (ev = top_events_back(&m->events, i)); i++) {
		struct top_box *b;

		if (ev->kind != EVENT_STATE || ev->slot >= m->slot_count)
			continue;
		b = &m->slots[ev->slot];
		if (!b->there || b->seen.sup.generation != ev->generation)
			continue;
		if (b->seen.sup.state_ns == 0)
			b->seen.sup.state_ns = ev->time_ns;
		if (b->seen.sup.created_ns == 0 || ev->from == SLOT_FREE)
			b->seen.sup.created_ns = ev->time_ns;
	}
}

static void count_states(struct top_model *m)
{
	memset(m->sum.state_count, 0, sizeof(m->sum.state_count));
	for (uint32_t i = 0; i < m->slot_count; i++) {
		const struct top_box *b = &m->slots[i];
		uint32_t state = b->there ? b->seen.sup.state : SLOT_FREE;

		if (state < SLOT_STATES)
			m->sum.state_count[state]++;
	}
	m->sum.warm = m->sum.state_count[SLOT_WARM];
}

/* Who recorded what is the newest now. It lived then. */
static void find_supervisor(struct top_model *m)
{
	const struct shm_event *ev;
	size_t i = 0;

	while ((ev = top_events_back(&m->events, i)) && ev->kind != EVENT_SUPERVISOR_START)
		i++;
	m->sum.pid = ev ? ev->pid : 0;
	m->sum.alive = true;
	m->sum.state = SUPERVISOR_SERVING;
	m->heartbeat_ns = UINT64_MAX; /* it beat all the time */
	if (ev)
		m->started_ns = ev->time_ns;
}

/* What is in no record. */
static void forget_reports(struct top_model *m)
{
	for (uint32_t i = 0; i < m->slot_count; i++) {
		struct reader_box *b = &m->slots[i].seen;

		b->work = (struct slot_work){0};
		b->in_flight = 0;
		b->conns = 0;
		b->lock_holder = 0;
		b->sup.waiters = 0;
	}
	m->sum.waiters = 0;
}

static void restore_end(const struct top_replay *r, struct top_model *m)
{
	memcpy(m->slots, r->slots, m->slot_count * sizeof(*m->slots));
	m->sum = r->sum;
	m->started_ns = r->started_ns;
	m->heartbeat_ns = r->heartbeat_ns;
	m->events.hidden = 0;
	m->wall_ms = r->end_wall_ms;
}

void top_replay_seek(const struct top_replay *r, struct top_model *m, size_t back)
{
	const struct shm_event *ev;
	uint64_t now = r->end_ns;

	if (back > m->events.count)
		back = m->events.count;
	restore_end(r, m);
	for (size_t i = 0; i < back; i++)
		undo(m, top_events_back(&m->events, i));
	if (back > 0) {
		/* Before the oldest it is that one's time. */
		m->events.hidden = back - (back == m->events.count);
		ev = top_events_back(&m->events, 0);
		now = ev->time_ns;
		m->wall_ms = ev->wall_ms;
		m->events.hidden = back;
		forget_reports(m);
		find_times(m);
		find_supervisor(m);
		count_states(m);
	}
	top_model_derive(m, now);
}

bool top_replay_play(const struct top_replay *r, struct top_model *m, uint64_t span)
{
	uint64_t until = m->now + span;
	uint64_t wall_ms = m->wall_ms + span / NS_PER_MS;
	size_t back = m->events.hidden;

	m->events.hidden = 0;
	while (back > 0 && top_events_back(&m->events, back - 1)->time_ns <= until)
		back--;
	top_replay_seek(r, m, back);
	if (back == 0 && until >= r->end_ns)
		return false;
	/* Between two events time goes on, too. */
	m->wall_ms = wall_ms;
	top_model_derive(m, until);
	return true;
}
