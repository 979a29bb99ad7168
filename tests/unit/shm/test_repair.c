/* Tests of shm/repair.c. */
#include "shm/repair.h"

#include <errno.h>

#include "tests/unit/shm/shm_testing.h"

#define SLOTS 16U

static void test_sound_parts_of_every_state(void **state)
{
	static const struct slot_sup fresh;

	(void)state;
	assert_int_equal(repair_check_sup(&fresh, SLOTS), 0);
	for (uint32_t i = 0; i < SLOT_STATES; i++) {
		struct slot_sup part = part_make(i, 3);

		assert_int_equal(repair_check_sup(&part, SLOTS), 0);
	}
}

static void test_states_without_scope_or_worker_need_none(void **state)
{
	static const uint32_t early[] = {SLOT_RESERVED, SLOT_BOOTING, SLOT_CLOSING};

	(void)state;
	for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
		struct slot_sup part = {.generation = 1, .state = early[i]};

		assert_int_equal(repair_check_sup(&part, SLOTS), 0);
	}
	struct slot_sup stock = part_make(SLOT_STOCK, 3);

	memset(stock.token, 0, sizeof(stock.token));
	memset(stock.identity, 0, sizeof(stock.identity));
	assert_int_equal(repair_check_sup(&stock, SLOTS), 0);

	struct slot_sup anonymous = part_make(SLOT_ACTIVE, 3);

	anonymous.flags = SLOT_FLAG_ANONYMOUS;
	memset(anonymous.identity, 0, sizeof(anonymous.identity));
	assert_int_equal(repair_check_sup(&anonymous, SLOTS), 0);
}

static struct slot_sup made_part(uint32_t state, uint32_t rest)
{
	struct slot_sup part = part_make(state, 3);

	part.flags = SLOT_FLAG_MADE | SLOT_FLAG_ANONYMOUS | SLOT_FLAG_NO_USER | rest;
	(void)snprintf(part.box_name, sizeof(part.box_name), "my-box.1");
	return part;
}

static void test_made_boxes(void **state)
{
	static const uint32_t states[] = {
	    SLOT_RESERVED, SLOT_BOOTING, SLOT_ACTIVE, SLOT_CLOSING, SLOT_QUARANTINED};
	static const uint32_t rests[] = {0, SLOT_FLAG_FRESH, SLOT_FLAG_STOPPING, SLOT_FLAG_STOPPED};

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		for (size_t k = 0; k < sizeof(rests) / sizeof(rests[0]); k++) {
			struct slot_sup part = made_part(states[i], rests[k]);

			assert_int_equal(repair_check_sup(&part, SLOTS), 0);
			part.box_name[0] = '\0';
			assert_int_equal(repair_check_sup(&part, SLOTS), 0);
		}
	}
}

/* Each changes one thing of a sound made part. */
static void spoil_made_pooled(struct slot_sup *p)
{
	p->state = SLOT_WARM;
}
static void spoil_made_checked(struct slot_sup *p)
{
	p->state = SLOT_CHECKING;
}
static void spoil_made_stock(struct slot_sup *p)
{
	p->state = SLOT_STOCK;
}
static void spoil_made_scoped(struct slot_sup *p)
{
	p->flags &= ~SLOT_FLAG_ANONYMOUS;
}
static void spoil_made_token(struct slot_sup *p)
{
	memset(p->token, 0, sizeof(p->token));
}
static void spoil_made_twice(struct slot_sup *p)
{
	p->flags |= SLOT_FLAG_FRESH | SLOT_FLAG_STOPPED;
}
static void spoil_made_not(struct slot_sup *p)
{
	p->flags &= ~SLOT_FLAG_MADE;
}
static void spoil_made_not_stopped(struct slot_sup *p)
{
	p->flags = SLOT_FLAG_STOPPED;
	p->box_name[0] = '\0';
}
static void spoil_made_name(struct slot_sup *p)
{
	p->box_name[2] = '/';
}
static void spoil_made_name_end(struct slot_sup *p)
{
	memset(p->box_name, 'n', sizeof(p->box_name));
}
static void spoil_made_name_long(struct slot_sup *p)
{
	memset(p->box_name, 'n', SLOT_BOX_NAME_MAX + 1);
}

static void (*const made_spoilers[])(struct slot_sup *) = {
    spoil_made_pooled,
    spoil_made_checked,
    spoil_made_stock,
    spoil_made_scoped,
    spoil_made_token,
    spoil_made_twice,
    spoil_made_not,
    spoil_made_not_stopped,
    spoil_made_name,
    spoil_made_name_end,
    spoil_made_name_long,
};

static void test_impossible_made_boxes_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(made_spoilers) / sizeof(made_spoilers[0]); i++) {
		struct slot_sup part = made_part(SLOT_ACTIVE, 0);

		made_spoilers[i](&part);
		if (repair_check_sup(&part, SLOTS) != -EINVAL)
			fail_msg("spoiler %zu is not noticed", i);
	}
}

/* Each changes one thing of a sound warm part. */
static void spoil_state(struct slot_sup *p)
{
	p->state = SLOT_STATES;
}
static void spoil_source(struct slot_sup *p)
{
	p->source = SOURCES;
}
static void spoil_flags(struct slot_sup *p)
{
	p->flags = 1U << 31;
}
static void spoil_generation(struct slot_sup *p)
{
	p->generation = 0;
}
static void spoil_pid(struct slot_sup *p)
{
	p->worker_pid = 0;
}
static void spoil_pid_sign(struct slot_sup *p)
{
	p->worker_pid = -1;
}
static void spoil_start(struct slot_sup *p)
{
	p->worker_start = 0;
}
static void spoil_name(struct slot_sup *p)
{
	p->name[0] = '\0';
}
static void spoil_leases(struct slot_sup *p)
{
	p->leases = 1;
}
static void spoil_token_missing(struct slot_sup *p)
{
	memset(p->token, 0, sizeof(p->token));
}
static void spoil_token_short(struct slot_sup *p)
{
	p->token[15] = '\0';
}
static void spoil_token_digit(struct slot_sup *p)
{
	p->token[3] = 'A';
}
static void spoil_token_end(struct slot_sup *p)
{
	memset(p->token, 'a', sizeof(p->token));
}
static void spoil_identity(struct slot_sup *p)
{
	memset(p->identity, 0, sizeof(p->identity));
}
static void spoil_user_end(struct slot_sup *p)
{
	memset(p->user, 'u', sizeof(p->user));
}
static void spoil_error_end(struct slot_sup *p)
{
	memset(p->last_error, 'e', sizeof(p->last_error));
}
static void spoil_index_link(struct slot_sup *p)
{
	p->index_next = SLOTS;
}
static void spoil_prev_link(struct slot_sup *p)
{
	p->warm_prev = SHM_NONE - 1;
}
static void spoil_next_link(struct slot_sup *p)
{
	p->warm_next = SLOTS;
}

static void (*const spoilers[])(struct slot_sup *) = {
    spoil_state,
    spoil_source,
    spoil_flags,
    spoil_generation,
    spoil_pid,
    spoil_pid_sign,
    spoil_start,
    spoil_name,
    spoil_leases,
    spoil_token_missing,
    spoil_token_short,
    spoil_token_digit,
    spoil_token_end,
    spoil_identity,
    spoil_user_end,
    spoil_error_end,
    spoil_index_link,
    spoil_prev_link,
    spoil_next_link,
};

static void test_impossible_parts_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
		struct slot_sup part = part_make(SLOT_WARM, 3);

		spoilers[i](&part);
		if (repair_check_sup(&part, SLOTS) != -EINVAL)
			fail_msg("spoiler %zu was accepted", i);
	}
}

/* A page as a dead worker may leave it: its counter odd, things under way. */
static struct shm_slot *spoiled_slot(void)
{
	struct shm_slot *slot = slot_make();
	struct slot_work work = {.generation = 3, .exec_total = 12};

	slot_publish_work(&slot->page, &work);
	atomic_fetch_add(&slot->page.work_seq, 1);
	atomic_store(&slot->page.in_flight, 2);
	for (size_t i = 0; i < SHM_CONNS; i++)
		atomic_store(&slot->page.conns[i], CONN_WORD(i + 1, CONN_IDLE));
	return slot;
}

static void assert_repaired(const struct shm_page *page)
{
	static const struct slot_work no_work;
	struct slot_work work;

	assert_int_equal(slot_read_work(page, &work), 0);
	assert_memory_equal(&work, &no_work, sizeof(work));
	assert_int_equal(atomic_load(&page->in_flight), 0);
	for (size_t i = 0; i < SHM_CONNS; i++)
		assert_int_equal(atomic_load(&page->conns[i]), 0);
}

static void test_what_a_dead_worker_left_is_cleared(void **state)
{
	struct shm_slot *slot = spoiled_slot();
	uint32_t number = 0;

	(void)state;
	assert_int_equal(repair_page(&slot->page, &number), 0);
	assert_repaired(&slot->page);
	assert_int_equal(repair_page(&slot->page, &number), 0); /* twice is as once */
	assert_repaired(&slot->page);
	slot_unmap(slot);
}

static void test_a_page_that_claims_to_be_anothers_is_refused(void **state)
{
	struct shm_slot *slot = spoiled_slot();
	uint32_t number = 7;

	(void)state;
	assert_int_equal(repair_page(&slot->page, &number), -EINVAL);
	assert_int_equal(atomic_load(&slot->page.in_flight), 2);
	slot_unmap(slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sound_parts_of_every_state),
	    cmocka_unit_test(test_states_without_scope_or_worker_need_none),
	    cmocka_unit_test(test_impossible_parts_are_refused),
	    cmocka_unit_test(test_made_boxes),
	    cmocka_unit_test(test_impossible_made_boxes_are_refused),
	    cmocka_unit_test(test_what_a_dead_worker_left_is_cleared),
	    cmocka_unit_test(test_a_page_that_claims_to_be_anothers_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
