/*
 * slot: the state machine of a slot, and its two parts under their sequence counters. sbxd writes
 * `sup`, the slot's worker writes `work`, anybody reads. If the writer dies in the middle the
 * counter stays odd and readers get -EAGAIN until sbxd has rewritten the part.
 */
#include "shm/slot.h"

#include <errno.h>
#include <string.h>

#include "lib/fault.h"
#include "shm/scope_lock.h"
#include "shm/words.h"

/* Tries of one read. A writer needs well under a microsecond; one that was preempted or died is
 * not waited for. */
#define SLOT_READ_TRIES 2000

#define TO(state) (1U << (state))

static const uint16_t transitions[SLOT_STATES] = {
    [SLOT_FREE] = TO(SLOT_RESERVED),
    /* back to free: given up before a worker was made */
    [SLOT_RESERVED] = TO(SLOT_BOOTING) | TO(SLOT_FREE) | TO(SLOT_CLOSING) | TO(SLOT_QUARANTINED),
    /* to warm: nobody waits for it any more */
    [SLOT_BOOTING] =
	TO(SLOT_ACTIVE) | TO(SLOT_STOCK) | TO(SLOT_WARM) | TO(SLOT_CLOSING) | TO(SLOT_QUARANTINED),
    [SLOT_STOCK] = TO(SLOT_CHECKING) | TO(SLOT_ACTIVE) | TO(SLOT_CLOSING),
    [SLOT_ACTIVE] = TO(SLOT_WARM) | TO(SLOT_CLOSING),
    [SLOT_CHECKING] = TO(SLOT_ACTIVE) | TO(SLOT_WARM) | TO(SLOT_CLOSING),
    /* to active: the check was skipped */
    [SLOT_WARM] = TO(SLOT_CHECKING) | TO(SLOT_ACTIVE) | TO(SLOT_CLOSING),
    /* to reserved: its worker is gone, its machine is not: another worker takes it over */
    [SLOT_CLOSING] = TO(SLOT_FREE) | TO(SLOT_RESERVED) | TO(SLOT_QUARANTINED),
    [SLOT_QUARANTINED] = 0,
};

_Static_assert(SLOT_STATES <= 16, "a state is one bit of a row");

static const char *const state_names[] = {
    [SLOT_FREE] = "free",
    [SLOT_RESERVED] = "reserved",
    [SLOT_BOOTING] = "booting",
    [SLOT_STOCK] = "stock",
    [SLOT_ACTIVE] = "active",
    [SLOT_CHECKING] = "checking",
    [SLOT_WARM] = "warm",
    [SLOT_CLOSING] = "closing",
    [SLOT_QUARANTINED] = "quarantined",
};

_Static_assert(
    sizeof(state_names) / sizeof(state_names[0]) == SLOT_STATES, "every state has a name");

static const char *const source_names[] = {
    [SOURCE_ACTIVE] = "active",
    [SOURCE_WARM] = "warm",
    [SOURCE_PREWARMED] = "prewarmed",
    [SOURCE_COLD] = "cold",
};

_Static_assert(
    sizeof(source_names) / sizeof(source_names[0]) == SOURCES, "every source has a name");

/* Both parts begin with the generation, which part_publish() treats apart. */
_Static_assert(offsetof(struct slot_sup, generation) == 0, "word 0 is the generation");
_Static_assert(offsetof(struct slot_work, generation) == 0, "word 0 is the generation");
_Static_assert(sizeof(struct slot_work) <= sizeof(struct slot_sup), "one buffer is enough");

bool slot_transition_allowed(uint32_t from, uint32_t to)
{
	if (from >= SLOT_STATES || to >= SLOT_STATES)
		return false;
	return (transitions[from] & TO(to)) != 0;
}

const char *slot_state_name(uint32_t state)
{
	return state < SLOT_STATES ? state_names[state] : "?";
}

const char *slot_source_name(uint32_t source)
{
	return source < SOURCES ? source_names[source] : "?";
}

bool slot_state_counts(uint32_t state)
{
	return state >= SLOT_RESERVED && state <= SLOT_WARM;
}

bool slot_box_name_is_sound(const char *name)
{
	static const char allowed[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);

	return len > 0 && len <= SLOT_BOX_NAME_MAX && strspn(name, allowed) == len &&
	       !strchr("._-", name[0]);
}

static void part_publish(
    _Atomic uint32_t *seq, _Atomic uint64_t *shared, const void *part, size_t words)
{
	static const uint64_t no_generation;
	uint64_t generation;
	/* Also right when a dead writer left it odd. */
	uint32_t odd = atomic_load_explicit(seq, memory_order_relaxed) | 1U;

	memcpy(&generation, part, sizeof(generation));
	atomic_store_explicit(seq, odd, memory_order_relaxed);
	if (atomic_load_explicit(&shared[0], memory_order_relaxed) != generation)
		words_store(shared, &no_generation, 0, 1);
	words_store(shared, part, 1, words / 2);
	FAULT_POINT("slot-publish");
	words_store(shared, part, words / 2, words);
	words_store(shared, &generation, 0, 1);
	atomic_store_explicit(seq, odd + 1U, memory_order_release);
}

static int part_read(
    const _Atomic uint32_t *seq, const _Atomic uint64_t *shared, void *out, size_t words)
{
	uint64_t copy[WORDS_OF(struct slot_sup)];

	for (int i = 0; i < SLOT_READ_TRIES; i++) {
		uint32_t before = atomic_load_explicit(seq, memory_order_acquire);

		if (before & 1U)
			continue;
		words_load(copy, shared, words);
		if (atomic_load_explicit(seq, memory_order_relaxed) != before)
			continue;
		memcpy(out, copy, words * sizeof(copy[0]));
		return 0;
	}
	return -EAGAIN;
}

void slot_publish_sup(struct shm_slot *slot, const struct slot_sup *part)
{
	part_publish(&slot->sup_seq, (_Atomic uint64_t *)(void *)&slot->sup, part,
	    WORDS_OF(struct slot_sup));
}

void slot_publish_work(struct shm_page *page, const struct slot_work *part)
{
	part_publish(&page->work_seq, (_Atomic uint64_t *)(void *)&page->work, part,
	    WORDS_OF(struct slot_work));
}

int slot_read_sup(const struct shm_slot *slot, struct slot_sup *out)
{
	return part_read(&slot->sup_seq, (const _Atomic uint64_t *)(const void *)&slot->sup, out,
	    WORDS_OF(struct slot_sup));
}

int slot_read_work(const struct shm_page *page, struct slot_work *out)
{
	return part_read(&page->work_seq, (const _Atomic uint64_t *)(const void *)&page->work, out,
	    WORDS_OF(struct slot_work));
}

void slot_salvage_sup(const struct shm_slot *slot, struct slot_sup *out)
{
	uint64_t copy[WORDS_OF(struct slot_sup)];

	words_load(
	    copy, (const _Atomic uint64_t *)(const void *)&slot->sup, WORDS_OF(struct slot_sup));
	memcpy(out, copy, sizeof(*out));
}

void slot_mend_seq(_Atomic uint32_t *seq)
{
	uint32_t now = atomic_load_explicit(seq, memory_order_relaxed);

	if (now & 1U)
		atomic_store_explicit(seq, now + 1U, memory_order_release);
}

int slot_init(struct shm_slot *slot, uint32_t number)
{
	memset(slot, 0, sizeof(*slot));
	slot->slot = number;
	slot->page.slot = number;
	return scope_lock_init(&slot->page.scope_lock);
}
