/* Tests of tools/top_table.c: finding the table, losing it, and finding the next one. */
#include "tools/top_table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "lib/fd.h"
#include "tests/unit/tools/top_testing.h"

#define SLOTS 4U

struct fixture {
	char instance[32];
	struct table t;
	struct top_table top;
	struct top_model *m;
	int fds;
};

static int setup(void **state)
{
	static struct fixture f;

	f.fds = fd_count_open();
	(void)snprintf(f.instance, sizeof(f.instance), "unit-%d", (int)getpid());
	top_table_init(&f.top, f.instance);
	f.m = top_model_create();
	assert_non_null(f.m);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	top_table_close(&f->top);
	top_model_free(f->m);
	assert_int_equal(fd_count_open(), f->fds);
	return 0;
}

static void put_box(struct fixture *f, uint32_t slot)
{
	f->t.parts[slot] = part_make(SLOT_ACTIVE, slot);
	slot_publish_sup(&f->t.seg.slots[slot], &f->t.parts[slot]);
}

static void test_there_is_none(void **state)
{
	struct fixture *f = *state;
	struct err err = {0};

	assert_false(top_table_replaced(&f->top));
	assert_int_equal(top_table_attach(&f->top, f->m, &err), -ENOENT);
	assert_non_null(strstr(err.text, f->instance));
	assert_non_null(strstr(f->top.trouble, "waiting"));
	assert_int_equal(top_table_look(&f->top, f->m, NOW), -ENOTCONN);
	assert_false(top_table_stirs(&f->top, f->m, NOW));
	assert_false(f->m->loaded);
}

static void test_it_comes_and_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct err err;

	table_open(&f->t, SLOTS);
	put_box(f, 1);
	assert_true(top_table_replaced(&f->top));
	assert_true(top_table_stirs(&f->top, f->m, NOW));
	assert_int_equal(top_table_attach(&f->top, f->m, &err), 0);
	assert_string_equal(f->top.trouble, "");
	assert_int_equal(top_table_look(&f->top, f->m, clock_now_ns()), 0);
	assert_int_equal(f->m->box_count, 1);
	assert_false(top_table_replaced(&f->top));
	assert_false(top_table_stirs(&f->top, f->m, clock_now_ns()));

	/* It goes: what it held is still shown. */
	table_close(&f->t);
	assert_true(top_table_replaced(&f->top));
	assert_int_equal(top_table_attach(&f->top, f->m, &err), 0);
	assert_non_null(strstr(f->top.trouble, "gone"));
	assert_false(top_table_replaced(&f->top)); /* that is known by now */
	assert_int_equal(top_table_look(&f->top, f->m, clock_now_ns()), 0);
	assert_int_equal(f->m->box_count, 1);
	assert_int_equal(f->m->health, HEALTH_LEFT);

	/* The next one, of another size. */
	table_open(&f->t, 2 * SLOTS);
	put_box(f, 2 * SLOTS - 1);
	put_box(f, 2);
	assert_true(top_table_stirs(&f->top, f->m, clock_now_ns()));
	assert_int_equal(top_table_attach(&f->top, f->m, &err), 0);
	assert_string_equal(f->top.trouble, "");
	assert_int_equal(top_table_look(&f->top, f->m, clock_now_ns()), 0);
	assert_int_equal(f->m->slot_count, 2 * SLOTS);
	assert_int_equal(f->m->box_count, 2);
	table_close(&f->t);
}

/* Maps the file as it was, without the checks: to be cut off under it. */
static void map_whole(struct fixture *f, int fd, const struct segment *was)
{
	char *base = mmap(NULL, was->size, PROT_READ, MAP_SHARED, fd, 0);

	assert_true(base != MAP_FAILED);
	f->top.reader.seg = *was;
	f->top.reader.seg.header = (void *)base;
	f->top.reader.seg.ring = (void *)(base + ((char *)was->ring - (char *)was->header));
	f->top.reader.seg.slots = (void *)(base + ((char *)was->slots - (char *)was->header));
	f->top.attached = true;
}

/* A page that is no more is a SIGBUS for whoever reads it: here it is a word on the screen. */
static void test_it_is_cut_off(void **state)
{
	struct fixture *f = *state;
	struct sigaction before;
	struct sigaction after;
	struct segment was;
	struct err err;
	int fd;

	table_open(&f->t, SLOTS);
	put_box(f, 1);
	was = f->t.seg;
	was.writable = false;
	was.fd = -1;
	segment_close(&f->t.seg); /* nobody else has it then */
	assert_int_equal(top_table_attach(&f->top, f->m, &err), 0);
	assert_int_equal(top_table_look(&f->top, f->m, NOW), 0);
	assert_int_equal(sigaction(SIGBUS, NULL, &before), 0);
	fd = shm_open(f->t.name, O_RDWR, 0);
	assert_true(fd >= 0);
	for (size_t size = was.size / 2 / SHM_PAGE * SHM_PAGE; size > 0;
	     size = size / 2 / SHM_PAGE * SHM_PAGE) {
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		assert_int_equal(top_table_look(&f->top, f->m, NOW), -EBUSY);
		assert_non_null(strstr(f->top.trouble, "cut off"));
		assert_false(f->top.attached);
		assert_int_equal(top_table_look(&f->top, f->m, NOW), -ENOTCONN);
		assert_int_equal(f->m->box_count, 1); /* as before */
		assert_string_equal(f->m->boxes[0]->seen.sup.user, "user");
		assert_true(top_table_attach(&f->top, f->m, &err) < 0);
		assert_non_null(strstr(f->top.trouble, "bytes"));
		map_whole(f, fd, &was);
	}
	assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
	assert_ptr_equal(after.sa_handler, before.sa_handler);
	table_close(&f->t);
	(void)close(fd);
}

static void create_and_wait(const char *name, int ready)
{
	struct segment seg;

	if (segment_create(name, "unit", SLOTS, 2, &seg, NULL) < 0 || write(ready, "", 1) != 1)
		_exit(1);
	atomic_store(&seg.header->supervisor_state, SUPERVISOR_SERVING);
	for (;;)
		(void)pause();
}

static void test_its_supervisor_dies(void **state)
{
	struct fixture *f = *state;
	char name[64];
	struct err err;
	struct pollfd p = {.events = POLLIN};
	int ready[2];
	char byte;
	pid_t pid;

	table_name(name);
	(void)segment_unlink(name);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		create_and_wait(name, ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	assert_int_equal(top_table_attach(&f->top, f->m, &err), 0);
	assert_int_equal(top_table_look(&f->top, f->m, clock_now_ns()), 0);
	assert_int_equal(f->m->sum.pid, pid);
	p.fd = f->top.pidfd;
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(poll(&p, 1, 60000), 1); /* it is told at once */
	assert_true(top_table_stirs(&f->top, f->m, clock_now_ns()));
	assert_int_equal(top_table_look(&f->top, f->m, clock_now_ns()), 0);
	assert_int_equal(f->m->health, HEALTH_DEAD);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(segment_unlink(name), 0);
}

static void test_what_is_no_table(void **state)
{
	struct fixture *f = *state;
	char name[64];
	struct err err;
	int fd;

	table_name(name);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_true(top_table_replaced(&f->top));
	assert_int_equal(top_table_attach(&f->top, f->m, &err), -EINVAL);
	assert_non_null(strstr(f->top.trouble, "truncated"));
	close(fd);
	assert_int_equal(segment_unlink(name), 0);
}

/* ---- files ---- */

static void test_a_copy(void **state)
{
	struct fixture *f = *state;
	struct shm_event ev = {.kind = EVENT_LEASE, .time_ns = NOW, .wall_ms = 5000};
	char path[] = "/tmp/sbxd-unit-top-XXXXXX";
	int fd = mkstemp(path);
	struct err err;

	assert_true(fd >= 0);
	assert_int_equal(top_table_load(&f->top, path, f->m, &err), -EINVAL);
	table_open(&f->t, SLOTS);
	put_box(f, 1);
	(void)ring_append(&f->t.seg, &ev);
	atomic_store(&f->t.seg.header->supervisor_state, SUPERVISOR_SERVING);
	atomic_store(&f->t.seg.header->started_ns, NOW - NS_PER_S);
	atomic_store(&f->t.seg.header->heartbeat_ns, NOW + NS_PER_S);
	assert_int_equal(write(fd, f->t.seg.header, f->t.seg.size), f->t.seg.size);
	assert_int_equal(top_table_load(&f->top, path, f->m, &err), 0);
	assert_true(f->m->frozen);
	assert_int_equal(f->m->box_count, 1);
	/* Its last moment, whatever the clock says here and whoever has its pid. */
	assert_int_equal(f->m->now, NOW + NS_PER_S);
	assert_int_equal(f->m->wall_ms, 6000);
	assert_int_equal(f->m->health, HEALTH_DEAD);
	assert_int_equal(f->m->sum.uptime_ns, 2 * NS_PER_S);
	assert_false(f->top.attached);
	/* The instance's own. */
	assert_int_equal(top_table_load(&f->top, NULL, f->m, &err), 0);
	table_close(&f->t);
	assert_int_equal(top_table_load(&f->top, NULL, f->m, &err), -ENOENT);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_there_is_none),
	    WITH(test_it_comes_and_is_replaced),
	    WITH(test_it_is_cut_off),
	    WITH(test_its_supervisor_dies),
	    WITH(test_what_is_no_table),
	    WITH(test_a_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
