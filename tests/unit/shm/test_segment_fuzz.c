/*
 * Random damage: whatever bytes a segment holds, everything that reads one stays in bounds and
 * comes back. Run it under the address sanitizer.
 */
#include "shm/hist.h"
#include "shm/index.h"
#include "shm/reader.h"
#include "shm/repair.h"
#include "shm/ring.h"
#include "shm/warm.h"
#include "tests/unit/shm/shm_testing.h"

#define SLOTS 6U
#define ROUNDS 20000
#define FLIPS 8

struct flip {
	size_t at;
	unsigned char was;
};

static void fill(struct table *t)
{
	struct shm_event ev = {.kind = EVENT_LEASE};
	uint32_t changed[WARM_CHANGED];

	atomic_store(&t->seg.header->next_generation, 100);
	warm_begin(&t->seg);
	for (uint32_t i = 0; i < SLOTS - 1; i++) {
		t->parts[i] = part_make(i & 1U ? SLOT_WARM : SLOT_ACTIVE, i);
		index_insert(&t->seg, t->parts, i);
		if (i & 1U)
			warm_append(&t->seg, t->parts, i, changed);
		(void)ring_append(&t->seg, &ev);
		hist_add(&t->seg.header->hists[HIST_BOOT], i * 1000);
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		slot_publish_sup(&t->seg.slots[i], &t->parts[i]);
	warm_end(&t->seg);
}

/* Half of all damage hits what steers others: the header's front, the index, a slot's links. */
static size_t pick_place(const struct segment *s, uint64_t *seed)
{
	uint64_t r = random_next(seed);
	size_t slots = (size_t)((uintptr_t)s->slots - (uintptr_t)s->header);
	size_t ring = (size_t)((uintptr_t)s->ring - (uintptr_t)s->header);
	size_t slot = slots + (r >> 32) % SLOTS * SHM_PAGE;

	switch (r % 8) {
	case 0:
		return (r >> 8) % offsetof(struct shm_header, supervisor_lock);
	case 1:
		return offsetof(struct shm_header, list_seq) + (r >> 8) % 192;
	case 2:
		return (size_t)((uintptr_t)s->index - (uintptr_t)s->header) +
		       (r >> 8) % (s->index_buckets * sizeof(uint32_t));
	case 3:
		return slot + offsetof(struct shm_slot, sup.index_next) + (r >> 8) % 16;
	case 4:
		return slot + (r >> 8) % SHM_PAGE;
	case 5:
		return ring + (r >> 8) % (8 * sizeof(struct shm_event));
	case 6:
		return (r >> 8) % sizeof(struct shm_header);
	default:
		return (r >> 8) % s->size;
	}
}

/* A damaged byte is any byte, or one of those that make large, negative and zero numbers. */
static unsigned char pick_byte(uint64_t *seed)
{
	static const unsigned char edges[] = {0, 0xff, 0x7f, 0x80, 1};
	uint64_t r = random_next(seed);

	return r & 1U ? edges[(r >> 8) % sizeof(edges)] : (unsigned char)(r >> 16);
}

static void read_everything(const struct segment *s)
{
	struct reader r = {.seg = *s};
	struct reader_summary sum;
	struct reader_box box;
	struct err findings[3];
	struct shm_event ev;
	uint32_t list[SLOTS + 2];

	(void)segment_validate(s, findings, 3);
	assert_true(warm_list(s, list, SLOTS + 2) <= (int)SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot_sup part = part_make(SLOT_ACTIVE, i);
		uint32_t found = index_find(s, part.owner_uid, part.token);

		assert_true(found < SLOTS || found >= INDEX_UNSURE);
		if (reader_box(&r, i, &box) == 0)
			assert_true(strlen(box.sup.user) < sizeof(box.sup.user));
		slot_salvage_sup(&s->slots[i], &part);
		(void)repair_check_sup(&part, SLOTS);
	}
	for (uint64_t i = 0; i < 8; i++)
		(void)ring_read(s, ring_newest(s) - i, &ev);
	(void)hist_quantile(&s->header->hists[HIST_BOOT], 0.5);
	reader_summarize(&r, &sum);
}

static void test_random_damage_is_survived(void **state)
{
	struct table t;
	struct segment view;
	struct flip flips[FLIPS];
	char *bytes;
	uint64_t seed = 0x5eed;
	int kinds[4] = {0};
	int attached = 0;

	(void)state;
	table_open(&t, SLOTS);
	fill(&t);
	bytes = (char *)t.seg.header;
	assert_int_equal(segment_attach(t.name, false, &view, NULL), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct segment again;
		struct err why;
		size_t n = 1 + random_next(&seed) % FLIPS;

		for (size_t i = 0; i < n; i++) {
			flips[i].at = pick_place(&t.seg, &seed);
			flips[i].was = (unsigned char)bytes[flips[i].at];
			bytes[flips[i].at] = (char)pick_byte(&seed);
		}
		kinds[segment_probe(t.name, &why)]++;
		read_everything(&view);
		if (segment_attach(t.name, false, &again, &why) == 0) {
			attached++;
			segment_close(&again);
		}
		while (n-- > 0)
			bytes[flips[n].at] = (char)flips[n].was;
	}
	/* Both sides of every border were visited. */
	assert_int_equal(kinds[SEGMENT_ABSENT], 0);
	assert_true(kinds[SEGMENT_LIVE] > ROUNDS / 10);
	assert_true(kinds[SEGMENT_FOREIGN] > ROUNDS / 10);
	assert_true(kinds[SEGMENT_ORPHANED] > 0);
	assert_true(attached > ROUNDS / 10);
	/* And all damage was undone: nothing that read it wrote. */
	assert_int_equal(slot_read_sup(&t.seg.slots[0], &t.parts[0]), 0);
	segment_close(&view);
	table_close(&t);
}

/*
 * A successor is the only writer that meets such content. It rebuilds, and what it rebuilt holds:
 * no list leads out of bounds, and the lists can be worked with.
 */
static void test_rebuilding_from_random_damage(void **state)
{
	struct table t;
	uint32_t order[SLOTS];
	uint32_t changed[WARM_CHANGED];
	uint32_t list[SLOTS];
	uint64_t seed = 0xbad;

	(void)state;
	table_open(&t, SLOTS);
	fill(&t);
	for (int round = 0; round < ROUNDS / 4; round++) {
		for (int i = 0; i < FLIPS; i++) {
			size_t at = pick_place(&t.seg, &seed);

			/* Not the header's own front: attach has refused that already. */
			if (at >= offsetof(struct shm_header, list_seq))
				((char *)t.seg.header)[at] = (char)pick_byte(&seed);
		}
		segment_rebuild(&t.seg, t.parts, order);
		int n = warm_list(&t.seg, list, SLOTS);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_int_equal(t.parts[list[i]].state, SLOT_WARM);
			warm_begin(&t.seg);
			warm_remove(&t.seg, t.parts, list[i], changed);
			warm_end(&t.seg);
			(void)index_remove(&t.seg, t.parts, list[i]);
		}
		if (round % 8 == 7) /* or soon no slot is sound */
			fill(&t);
	}
	table_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random_damage_is_survived),
	    cmocka_unit_test(test_rebuilding_from_random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
