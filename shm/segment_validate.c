/*
 * segment_validate: does the segment keep every promise of the layout? For sbxctl, on a live
 * segment or one that a dead daemon left. Reads only; works on private copies
 * of the slots' parts, so that no content leads it out of bounds or into a loop.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/index.h"
#include "shm/repair.h"
#include "shm/ring.h"
#include "shm/scope_lock.h"
#include "shm/segment_impl.h"
#include "shm/slot.h"

#define VALIDATE_TRIES 4

/* What is known of one slot after its part was read. */
enum seen {
	SEEN_READ = 1U,	   /* the part was readable */
	SEEN_CHAINED = 2U, /* met in an index chain */
	SEEN_LISTED = 4U,  /* met in the warm list */
};

struct check {
	const struct segment *s;
	struct err *findings;
	size_t max;
	size_t count;
	struct slot_sup *parts;
	uint8_t *seen;
	uint32_t *order; /* scratch for sorting */
};

static void report(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void report(struct check *c, const char *fmt, ...)
{
	va_list ap;

	if (c->count < c->max) {
		c->findings[c->count].code = EINVAL;
		va_start(ap, fmt);
		(void)vsnprintf(c->findings[c->count].text, sizeof(c->findings[0].text), fmt, ap);
		va_end(ap);
	}
	c->count++;
}

static void check_header(struct check *c)
{
	const struct shm_header *h = c->s->header;
	struct segment_plan plan;
	struct err why = {0};
	uint32_t state = atomic_load(&h->supervisor_state);

	if (segment_check_header(h, c->s->size, &plan, &why) < 0)
		report(c, "header: %s", why.text);
	if (state > SUPERVISOR_GONE)
		report(c, "header: supervisor state %u", state);
	if (!scope_lock_is_intact(&h->supervisor_lock))
		report(c, "header: the supervisor lock is damaged");
	if (atomic_load(&h->next_generation) == 0)
		report(c, "header: next generation is 0");
}

static void check_slot(struct check *c, uint32_t i)
{
	const struct shm_slot *slot = &c->s->slots[i];
	struct slot_sup *part = &c->parts[i];
	struct slot_work work;

	if (slot->slot != i || slot->page.slot != i)
		report(c, "slot %u: numbered %u", i, slot->slot);
	if (!scope_lock_is_intact(&slot->page.scope_lock))
		report(c, "slot %u: the scope lock is damaged", i);
	if (slot_read_work(&slot->page, &work) < 0)
		report(c, "slot %u: the worker part was never finished", i);
	if (slot_read_sup(slot, part) < 0) {
		report(c, "slot %u: the supervisor part was never finished", i);
		slot_salvage_sup(slot, part);
		return;
	}
	c->seen[i] |= SEEN_READ;
	if (repair_check_sup(part, c->s->slot_count) < 0)
		report(c, "slot %u: impossible supervisor part (state %s)", i,
		    slot_state_name(part->state));
	if (part->generation >= atomic_load(&c->s->header->next_generation))
		report(c, "slot %u: generation %llu was never given", i,
		    (unsigned long long)part->generation);
}

static bool is_live(const struct check *c, uint32_t i)
{
	return (c->seen[i] & SEEN_READ) && c->parts[i].state < SLOT_STATES &&
	       c->parts[i].state != SLOT_FREE;
}

static bool has_scope(const struct slot_sup *part)
{
	return part->state < SLOT_STATES && slot_state_counts(part->state) && part->token[0] &&
	       !(part->flags & SLOT_FLAG_ANONYMOUS);
}

static int by_generation(const void *a, const void *b, void *ctx)
{
	const struct slot_sup *parts = ctx;
	uint64_t x = parts[*(const uint32_t *)a].generation;
	uint64_t y = parts[*(const uint32_t *)b].generation;

	return x < y ? -1 : x > y;
}

static int by_scope(const void *a, const void *b, void *ctx)
{
	const struct slot_sup *parts = ctx;
	const struct slot_sup *x = &parts[*(const uint32_t *)a];
	const struct slot_sup *y = &parts[*(const uint32_t *)b];

	if (x->owner_uid != y->owner_uid)
		return x->owner_uid < y->owner_uid ? -1 : 1;
	return memcmp(x->token, y->token, SHM_TOKEN_LEN);
}

/* No generation is given twice, and no scope has two boxes. */
static void check_unique(struct check *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->s->slot_count; i++) {
		if (is_live(c, i) && c->parts[i].state != SLOT_QUARANTINED)
			c->order[n++] = i;
	}
	qsort_r(c->order, n, sizeof(*c->order), by_generation, c->parts);
	for (uint32_t i = 1; i < n; i++) {
		if (by_generation(&c->order[i - 1], &c->order[i], c->parts) == 0)
			report(c, "slots %u and %u: the same generation", c->order[i - 1],
			    c->order[i]);
	}
	n = 0;
	for (uint32_t i = 0; i < c->s->slot_count; i++) {
		if (is_live(c, i) && has_scope(&c->parts[i]))
			c->order[n++] = i;
	}
	qsort_r(c->order, n, sizeof(*c->order), by_scope, c->parts);
	for (uint32_t i = 1; i < n; i++) {
		if (by_scope(&c->order[i - 1], &c->order[i], c->parts) == 0)
			report(c, "slots %u and %u: the same scope", c->order[i - 1], c->order[i]);
	}
}

static void check_chain(struct check *c, uint32_t bucket)
{
	uint32_t at = atomic_load_explicit(&c->s->index[bucket], memory_order_acquire);

	while (at != SHM_NONE) {
		if (at >= c->s->slot_count) {
			report(c, "index bucket %u: leads to slot %u", bucket, at);
			return;
		}
		if (c->seen[at] & SEEN_CHAINED) {
			report(c, "index bucket %u: slot %u is met twice", bucket, at);
			return;
		}
		c->seen[at] |= SEEN_CHAINED;
		if (!is_live(c, at))
			report(c, "index bucket %u: slot %u is free or unreadable", bucket, at);
		else if (index_bucket(c->s, c->parts[at].owner_uid, c->parts[at].token) != bucket)
			report(c, "index bucket %u: slot %u belongs elsewhere", bucket, at);
		at = c->parts[at].index_next;
	}
}

static void check_index(struct check *c)
{
	for (uint32_t i = 0; i < c->s->index_buckets; i++)
		check_chain(c, i);
	for (uint32_t i = 0; i < c->s->slot_count; i++) {
		uint32_t state = c->parts[i].state;

		if ((state == SLOT_ACTIVE || state == SLOT_CHECKING || state == SLOT_WARM) &&
		    has_scope(&c->parts[i]) && !(c->seen[i] & SEEN_CHAINED))
			report(c, "slot %u: %s, but not in the index", i, slot_state_name(state));
	}
}

/* One member of the warm list, reached from prev. */
static void check_warm_slot(struct check *c, uint32_t at, uint32_t prev)
{
	const struct slot_sup *part = &c->parts[at];

	if (part->state != SLOT_WARM)
		report(c, "warm list: slot %u is %s", at, slot_state_name(part->state));
	if (part->warm_prev != prev)
		report(c, "warm list: slot %u does not link back", at);
	if (prev != SHM_NONE && part->parked_ns < c->parts[prev].parked_ns)
		report(c, "warm list: slot %u was parked before slot %u", at, prev);
}

static void check_warm(struct check *c)
{
	const struct shm_header *h = c->s->header;
	uint32_t at = atomic_load_explicit(&h->warm_head, memory_order_acquire);
	uint32_t prev = SHM_NONE;
	uint32_t count = 0;

	if (atomic_load(&h->list_seq) & 1U)
		report(c, "warm list: a change was never finished");
	for (; at != SHM_NONE; count++) {
		if (at >= c->s->slot_count || (c->seen[at] & SEEN_LISTED)) {
			report(c, "warm list: %s slot %u",
			    at >= c->s->slot_count ? "leads to" : "meets again", at);
			return;
		}
		c->seen[at] |= SEEN_LISTED;
		check_warm_slot(c, at, prev);
		prev = at;
		at = c->parts[at].warm_next;
	}
	if (atomic_load(&h->warm_tail) != prev)
		report(c, "warm list: the tail is not its last slot");
	if (atomic_load(&h->warm_count) != count)
		report(c, "warm list: counts %u, holds %u", atomic_load(&h->warm_count), count);
	for (uint32_t i = 0; i < c->s->slot_count; i++) {
		if (c->parts[i].state == SLOT_WARM && !(c->seen[i] & SEEN_LISTED))
			report(c, "slot %u: warm, but not in the warm list", i);
	}
}

static void check_counts(struct check *c)
{
	uint32_t states[SLOT_STATES] = {0};

	for (uint32_t i = 0; i < c->s->slot_count; i++) {
		if (c->parts[i].state < SLOT_STATES)
			states[c->parts[i].state]++;
	}
	for (uint32_t i = 0; i < SLOT_STATES; i++) {
		uint32_t said = atomic_load(&c->s->header->state_count[i]);

		if (said != states[i])
			report(c, "header: %u slots %s, found %u", said, slot_state_name(i),
			    states[i]);
	}
}

static void check_ring(struct check *c)
{
	uint64_t newest = ring_newest(c->s);
	uint64_t oldest = newest > c->s->ring_records ? newest - c->s->ring_records + 1 : 1;
	struct shm_event ev;

	for (uint64_t seq = oldest; seq <= newest && seq != 0; seq++) {
		int rc = ring_read(c->s, seq, &ev);

		/* The oldest may have been in the making when its writer died. */
		if (rc < 0 && seq != oldest)
			report(c, "ring: record %llu is not there", (unsigned long long)seq);
		else if (rc == 0 &&
			 (ev.kind >= EVENT_KINDS || ev.from >= SLOT_STATES || ev.to >= SLOT_STATES))
			report(c, "ring: record %llu is impossible", (unsigned long long)seq);
	}
}

static void check_all(struct check *c)
{
	check_header(c);
	for (uint32_t i = 0; i < c->s->slot_count; i++)
		check_slot(c, i);
	check_unique(c);
	check_index(c);
	check_warm(c);
	check_counts(c);
	check_ring(c);
}

/* Only what somebody may be changing just now is worth a second look. */
static bool may_change(const struct segment *s)
{
	return !s->writable && segment_supervisor_alive(atomic_load(&s->header->supervisor_pid),
				   atomic_load(&s->header->supervisor_start));
}

size_t segment_validate(const struct segment *s, struct err *findings, size_t max)
{
	struct check c = {.s = s, .findings = findings, .max = max};

	c.parts = calloc(s->slot_count, sizeof(*c.parts));
	c.seen = calloc(s->slot_count, sizeof(*c.seen));
	c.order = calloc(s->slot_count, sizeof(*c.order));
	if (!c.parts || !c.seen || !c.order) {
		report(&c, "no memory to validate with");
	} else {
		for (int i = 0; i < VALIDATE_TRIES; i++) {
			c.count = 0;
			memset(c.seen, 0, s->slot_count);
			check_all(&c);
			if (c.count == 0 || !may_change(s))
				break;
		}
	}
	free(c.order);
	free(c.seen);
	free(c.parts);
	return c.count;
}
