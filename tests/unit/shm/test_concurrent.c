/*
 * The table driven from threads: one writer, as sbxd is, and readers that must never see half of a
 * change. Under SAN=thread also: no access that the memory model does not allow.
 *
 * Every value that is published is one number in every word, so that a mixture shows. Readers stop
 * when the writer has made all its changes.
 */
#include <errno.h>
#include <sched.h>

#include "shm/hist.h"
#include "shm/index.h"
#include "shm/reader.h"
#include "shm/ring.h"
#include "shm/warm.h"
#include "tests/unit/shm/shm_testing.h"

#define SLOTS 8U
#define READERS 2
#define CHANGES 20000U

struct run {
	struct table t;
	_Atomic bool done;
	_Atomic uint32_t reads;	   /* that succeeded, over all readers */
	_Atomic uint32_t mixtures; /* what must not be; asserted on the main thread only */
};

typedef void worker_fn(struct run *run);

struct reader_thread {
	pthread_t id;
	struct run *run;
	worker_fn *read;
};

static void *reader_main(void *arg)
{
	struct reader_thread *self = arg;

	while (!atomic_load(&self->run->done))
		self->read(self->run);
	return NULL;
}

/* Starts the readers, makes every change, and stops them once each kind of thing was read. */
static void run_all(struct run *run, worker_fn *read, void (*change)(struct run *, uint32_t))
{
	struct reader_thread readers[READERS];
	uint32_t n = 0;

	table_open(&run->t, SLOTS);
	atomic_store(&run->done, false);
	atomic_store(&run->reads, 0);
	atomic_store(&run->mixtures, 0);
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader_thread){.run = run, .read = read};
		assert_int_equal(pthread_create(&readers[i].id, NULL, reader_main, &readers[i]), 0);
	}
	while (n < CHANGES || atomic_load(&run->reads) < 1000) {
		change(run, n++);
		if (n % 512 == 0)
			(void)sched_yield();
	}
	atomic_store(&run->done, true);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(readers[i].id, NULL), 0);
	assert_int_equal(atomic_load(&run->mixtures), 0);
	table_close(&run->t);
}

static void tally(struct run *run, bool sound)
{
	atomic_fetch_add(&run->reads, 1);
	if (!sound)
		atomic_fetch_add(&run->mixtures, 1);
}

static bool is_uniform(const void *part, size_t size)
{
	const char *bytes = part;

	return memcmp(bytes, bytes + 8, size - 8) == 0;
}

static void uniform_fill(void *part, size_t size, uint64_t n)
{
	for (size_t i = 0; i < size; i += sizeof(n))
		memcpy((char *)part + i, &n, sizeof(n));
}

static void parts_read(struct run *run)
{
	struct slot_sup sup;
	struct slot_work work;

	if (slot_read_sup(&run->t.seg.slots[1], &sup) == 0)
		tally(run, is_uniform(&sup, sizeof(sup)));
	if (slot_read_work(&run->t.seg.slots[1].page, &work) == 0)
		tally(run, is_uniform(&work, sizeof(work)));
}

static void parts_change(struct run *run, uint32_t n)
{
	struct slot_sup sup;
	struct slot_work work;

	uniform_fill(&sup, sizeof(sup), n * 0x9e3779b97f4a7c15ULL);
	uniform_fill(&work, sizeof(work), n * 0x9e3779b97f4a7c15ULL);
	slot_publish_sup(&run->t.seg.slots[1], &sup);
	slot_publish_work(&run->t.seg.slots[1].page, &work);
}

static void test_parts_are_never_torn(void **state)
{
	struct run run;

	(void)state;
	run_all(&run, parts_read, parts_change);
}

static void follow_the_ring(struct run *run)
{
	uint64_t newest = ring_newest(&run->t.seg);
	struct shm_event ev;

	/* The newest, and the one that is about to be overwritten. */
	for (int i = 0; i < 2; i++) {
		uint64_t seq = i == 0 ? newest : newest - run->t.seg.ring_records + 1;

		if ((i == 1 && newest < run->t.seg.ring_records) || seq == 0)
			continue;
		if (ring_read(&run->t.seg, seq, &ev) == 0)
			tally(run, ev.seq == seq && ev.time_ns == seq * 3 &&
				       is_uniform(&ev.time_ns, sizeof(ev) - 8));
	}
}

static void ring_change(struct run *run, uint32_t n)
{
	struct shm_event ev;

	uniform_fill(&ev, sizeof(ev), (n + 1ULL) * 3);
	(void)ring_append(&run->t.seg, &ev);
}

static void test_events_are_never_torn(void **state)
{
	struct run run;

	(void)state;
	run_all(&run, follow_the_ring, ring_change);
}

/* At any moment the list holds consecutive slots in a circle: each change moves one end. */
static void warm_read(struct run *run)
{
	uint32_t list[SLOTS];
	int n = warm_list(&run->t.seg, list, SLOTS);
	bool sound = n >= 3 && n <= 4;

	if (n == -EAGAIN)
		return;
	for (int i = 1; sound && i < n; i++)
		sound = list[i] == (list[i - 1] + 1) % SLOTS;
	tally(run, sound || n == 0);
}

static void publish_changed(struct run *run, const uint32_t changed[WARM_CHANGED])
{
	for (int i = 0; i < WARM_CHANGED; i++) {
		if (changed[i] != SHM_NONE)
			slot_publish_sup(&run->t.seg.slots[changed[i]], &run->t.parts[changed[i]]);
	}
}

static void warm_change(struct run *run, uint32_t n)
{
	struct segment *s = &run->t.seg;
	uint32_t changed[WARM_CHANGED];
	uint32_t first = n == 0 ? 4 : 1;

	warm_begin(s);
	for (uint32_t i = 0; i < first; i++) {
		uint32_t slot = n == 0 ? i : (n + 3) % SLOTS;

		run->t.parts[slot] = part_make(SLOT_WARM, n);
		warm_append(s, run->t.parts, slot, changed);
		publish_changed(run, changed);
	}
	if (n > 0) {
		run->t.parts[(n - 1) % SLOTS].state = SLOT_ACTIVE;
		warm_remove(s, run->t.parts, (n - 1) % SLOTS, changed);
		publish_changed(run, changed);
	}
	warm_end(s);
}

static void test_the_warm_list_is_always_a_list(void **state)
{
	struct run run;

	(void)state;
	run_all(&run, warm_read, warm_change);
}

/* Slot 0 keeps its place at the end of a chain that others enter and leave. */
#define KEPT 0U

static uint32_t chain_number(const struct segment *s, uint32_t nth)
{
	struct slot_sup part = part_make(SLOT_ACTIVE, KEPT);
	uint32_t bucket = index_bucket(s, part.owner_uid, part.token);
	uint32_t n = KEPT;

	while (nth > 0) {
		part = part_make(SLOT_ACTIVE, ++n);
		nth -= index_bucket(s, part.owner_uid, part.token) == bucket;
	}
	return n;
}

static void index_read(struct run *run)
{
	struct slot_sup part = part_make(SLOT_ACTIVE, KEPT);
	uint32_t found = index_find(&run->t.seg, part.owner_uid, part.token);

	/* Before the first change it is not there yet; a writer without a cpu keeps it waiting. */
	if (atomic_load(&run->t.seg.header->waiters) > 0 && found != INDEX_UNSURE)
		tally(run, found == KEPT);
}

static void index_change(struct run *run, uint32_t n)
{
	struct segment *s = &run->t.seg;
	uint32_t slot = 1 + n % 3;
	uint32_t changed;

	if (n == 0) {
		for (uint32_t i = 0; i < 4; i++) {
			run->t.parts[i] = part_make(SLOT_ACTIVE, chain_number(s, i));
			index_insert(s, run->t.parts, i);
		}
		atomic_store(&s->header->waiters, 1); /* tells the readers that it stands */
		return;
	}
	changed = index_remove(s, run->t.parts, slot);
	if (changed != SHM_NONE)
		slot_publish_sup(&s->slots[changed], &run->t.parts[changed]);
	run->t.parts[slot].state = SLOT_CLOSING;
	slot_publish_sup(&s->slots[slot], &run->t.parts[slot]);
	run->t.parts[slot].state = SLOT_ACTIVE;
	index_insert(s, run->t.parts, slot);
}

static void test_the_index_never_loses_who_stays(void **state)
{
	struct run run;

	(void)state;
	run_all(&run, index_read, index_change);
}

/* Tools meanwhile read all the rest. */
static void tool_read(struct run *run)
{
	struct reader r = {.seg = run->t.seg};
	struct reader_summary sum;
	struct reader_box box;

	r.seg.writable = false;
	reader_summarize(&r, &sum);
	tally(run, sum.alive && sum.slots == SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (reader_box(&r, i, &box) == 0)
			tally(run, box.sup.generation == box.sup.worker_start &&
				       (box.work.generation == 0 ||
					   box.work.generation == box.sup.generation));
	}
	(void)hist_quantile(&run->t.seg.header->hists[HIST_BOOT], 0.99);
}

static void tool_change(struct run *run, uint32_t n)
{
	struct shm_slot *slot = &run->t.seg.slots[n % SLOTS];
	struct slot_sup sup = part_make(SLOT_ACTIVE, n);
	struct slot_work work = {.generation = sup.generation};

	sup.worker_start = sup.generation;
	slot_publish_sup(slot, &sup);
	slot_publish_work(&slot->page, &work);
	atomic_store(&slot->page.in_flight, n);
	atomic_store(&slot->page.conns[n % SHM_CONNS], CONN_WORD(n, CONN_IDLE));
	hist_add(&run->t.seg.header->hists[HIST_BOOT], n);
	atomic_fetch_add(&run->t.seg.header->counters[COUNTER_BOOTS], 1);
}

static void test_tools_read_whole_boxes(void **state)
{
	struct run run;

	(void)state;
	run_all(&run, tool_read, tool_change);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parts_are_never_torn),
	    cmocka_unit_test(test_events_are_never_torn),
	    cmocka_unit_test(test_the_warm_list_is_always_a_list),
	    cmocka_unit_test(test_the_index_never_loses_who_stays),
	    cmocka_unit_test(test_tools_read_whole_boxes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
