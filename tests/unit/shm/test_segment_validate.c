/* Tests of shm/segment_validate.c: a sound segment has no finding, each single damage has one. */
#include "shm/index.h"
#include "shm/ring.h"
#include "shm/warm.h"
#include "tests/unit/shm/shm_testing.h"

#define SLOTS 8U
#define FINDINGS 64

/* Three warm boxes (0, 1, 2: oldest first), one active (3), the rest free. */
static void fill(struct table *t)
{
	uint32_t changed[WARM_CHANGED];

	atomic_store(&t->seg.header->next_generation, 100);
	for (uint32_t i = 0; i < 4; i++) {
		t->parts[i] = part_make(i < 3 ? SLOT_WARM : SLOT_ACTIVE, i);
		index_insert(&t->seg, t->parts, i);
	}
	warm_begin(&t->seg);
	for (uint32_t i = 0; i < 3; i++) {
		warm_append(&t->seg, t->parts, i, changed);
		for (int j = 0; j < WARM_CHANGED; j++) {
			if (changed[j] != SHM_NONE)
				slot_publish_sup(&t->seg.slots[changed[j]], &t->parts[changed[j]]);
		}
	}
	warm_end(&t->seg);
	atomic_store(&t->seg.header->state_count[SLOT_FREE], SLOTS - 4);
	atomic_store(&t->seg.header->state_count[SLOT_WARM], 3);
	atomic_store(&t->seg.header->state_count[SLOT_ACTIVE], 1);
	for (uint32_t i = 0; i < 5; i++) {
		struct shm_event ev = {.kind = EVENT_STATE, .to = i};

		(void)ring_append(&t->seg, &ev);
	}
}

static int setup(void **state)
{
	static struct table t;

	table_open(&t, SLOTS);
	fill(&t);
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	table_close(*state);
	return 0;
}

static void publish(struct table *t, uint32_t slot)
{
	slot_publish_sup(&t->seg.slots[slot], &t->parts[slot]);
}

static void damage_version(struct table *t)
{
	t->seg.header->version++;
}
static void damage_count(struct table *t)
{
	t->seg.header->slot_count = UINT32_MAX;
}
static void damage_offset(struct table *t)
{
	t->seg.header->slots_off += SHM_PAGE;
}
static void damage_supervisor_state(struct table *t)
{
	atomic_store(&t->seg.header->supervisor_state, 77);
}
static void damage_supervisor_lock(struct table *t)
{
	t->seg.header->supervisor_lock.__data.__kind ^= 1;
}
static void damage_number(struct table *t)
{
	t->seg.slots[5].slot = 6;
}
static void damage_scope_lock(struct table *t)
{
	memset(&t->seg.slots[5].page.scope_lock, 0, sizeof(pthread_mutex_t));
}
static void damage_sup_seq(struct table *t)
{
	atomic_fetch_add(&t->seg.slots[3].sup_seq, 1);
}
static void damage_work_seq(struct table *t)
{
	atomic_fetch_add(&t->seg.slots[3].page.work_seq, 1);
}
static void damage_part(struct table *t)
{
	t->parts[3].token[2] = 'Z';
	publish(t, 3);
}
static void damage_generation(struct table *t)
{
	t->parts[3].generation = 100;
	publish(t, 3);
}
static void damage_same_generation(struct table *t)
{
	t->parts[3].generation = t->parts[1].generation;
	publish(t, 3);
}
static void damage_same_scope(struct table *t)
{
	memcpy(t->parts[3].token, t->parts[1].token, SHM_TOKEN_LEN);
	publish(t, 3);
}
static void damage_state(struct table *t)
{
	t->parts[3].state = SLOT_CHECKING; /* sound, but the counts say something else */
	publish(t, 3);
}
static void damage_index_head(struct table *t)
{
	atomic_store(&t->seg.index[0], SLOTS);
}
static void damage_index_free(struct table *t)
{
	atomic_store(&t->seg.index[0], 6);
}
static void damage_index_lost(struct table *t)
{
	(void)index_remove(&t->seg, t->parts, 3);
}
static void damage_index_loop(struct table *t)
{
	t->parts[3].index_next = 3;
	publish(t, 3);
}
static void damage_list_seq(struct table *t)
{
	warm_begin(&t->seg);
}
static void damage_list_head(struct table *t)
{
	atomic_store(&t->seg.header->warm_head, 1);
}
static void damage_list_wild(struct table *t)
{
	atomic_store(&t->seg.header->warm_head, SLOTS);
}
static void damage_list_tail(struct table *t)
{
	atomic_store(&t->seg.header->warm_tail, 1);
}
static void damage_list_count(struct table *t)
{
	atomic_store(&t->seg.header->warm_count, 2);
}
static void damage_list_loop(struct table *t)
{
	t->parts[2].warm_next = 0;
	publish(t, 2);
}
static void damage_list_back_link(struct table *t)
{
	t->parts[2].warm_prev = 0;
	publish(t, 2);
}
static void damage_list_order(struct table *t)
{
	t->parts[2].parked_ns = 1;
	publish(t, 2);
}
static void damage_list_state(struct table *t)
{
	t->parts[1].state = SLOT_ACTIVE;
	publish(t, 1);
}
static void damage_state_count(struct table *t)
{
	atomic_store(&t->seg.header->state_count[SLOT_CLOSING], 1);
}
static void damage_ring_number(struct table *t)
{
	atomic_store(&t->seg.ring[2].seq, 0);
}
static void damage_ring_kind(struct table *t)
{
	t->seg.ring[2].kind = EVENT_KINDS;
}

static void (*const damages[])(struct table *) = {
    damage_version,
    damage_count,
    damage_offset,
    damage_supervisor_state,
    damage_supervisor_lock,
    damage_number,
    damage_scope_lock,
    damage_sup_seq,
    damage_work_seq,
    damage_part,
    damage_generation,
    damage_same_generation,
    damage_same_scope,
    damage_state,
    damage_index_head,
    damage_index_free,
    damage_index_lost,
    damage_index_loop,
    damage_list_seq,
    damage_list_head,
    damage_list_wild,
    damage_list_tail,
    damage_list_count,
    damage_list_loop,
    damage_list_back_link,
    damage_list_order,
    damage_list_state,
    damage_state_count,
    damage_ring_number,
    damage_ring_kind,
};

static void test_a_sound_segment_has_no_finding(void **state)
{
	struct table *t = *state;
	struct err findings[FINDINGS] = {0};

	if (segment_validate(&t->seg, findings, FINDINGS) != 0)
		fail_msg("%s", findings[0].text);
}

static void test_every_damage_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct table t;
		struct err findings[FINDINGS] = {0};
		size_t n;
		int kind;

		table_open(&t, SLOTS);
		fill(&t);
		kind = t.seg.header->supervisor_lock.__data.__kind;
		damages[i](&t);
		n = segment_validate(&t.seg, findings, FINDINGS);
		t.seg.header->supervisor_lock.__data.__kind = kind; /* or it cannot be closed */
		table_close(&t);
		if (n == 0)
			fail_msg("damage %zu was not found", i);
		assert_int_not_equal(findings[0].code, 0);
		assert_int_not_equal(findings[0].text[0], '\0');
	}
}

static void test_more_findings_than_room_are_counted(void **state)
{
	struct table *t = *state;
	struct err findings[3] = {0};

	for (uint32_t i = 0; i < SLOTS; i++)
		t->seg.slots[i].slot = 99;
	assert_int_equal(segment_validate(&t->seg, findings, 2), SLOTS);
	assert_int_not_equal(findings[1].code, 0);
	assert_int_equal(findings[2].code, 0);
	assert_int_equal(segment_validate(&t->seg, NULL, 0), SLOTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_a_sound_segment_has_no_finding, setup, teardown),
	    cmocka_unit_test(test_every_damage_is_found),
	    cmocka_unit_test_setup_teardown(
		test_more_findings_than_room_are_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
