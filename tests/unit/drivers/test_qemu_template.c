/* The note of a template: what does not look as it says is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/template_make.h"
#include "lib/fd.h"

struct parts {
	int memory;
	int state;
	uint8_t digest[DIGEST_LEN];
	struct qemu_plan *plan;
	struct template_note note;
};

static int setup(void **state)
{
	struct parts *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->plan = calloc(1, sizeof(*p->plan));
	assert_non_null(p->plan);
	p->plan->tsc_khz = 2500000;
	p->digest[3] = 7;
	p->memory = memfd_create("memory", MFD_CLOEXEC);
	p->state = memfd_create("state", MFD_CLOEXEC);
	assert_int_equal(ftruncate(p->memory, 1 << 20), 0);
	assert_int_equal(write(p->state, "devices", 7), 7);
	assert_int_equal(template_note_fill(&p->note, p->plan, p->digest, p->memory, p->state), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct parts *p = *state;

	fd_close(&p->memory);
	fd_close(&p->state);
	free(p->plan);
	free(p);
	return 0;
}

static int check(struct parts *p)
{
	return template_note_check(&p->note, p->plan, p->digest, p->memory, p->state);
}

static void test_what_is_whole_is_taken(void **state)
{
	assert_int_equal(check(*state), 0);
}

static void test_memory_that_was_cut(void **state)
{
	struct parts *p = *state;

	assert_int_equal(ftruncate(p->memory, (1 << 20) - 4096), 0);
	assert_int_equal(check(p), -EBADMSG);
}

static void test_memory_that_was_written_to(void **state)
{
	const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	struct parts *p = *state;

	assert_int_equal(pwrite(p->memory, "x", 1, 4711), 1);
	assert_int_equal(futimens(p->memory, now), 0); /* it may be the same tick */
	assert_int_equal(check(p), -EBADMSG);
}

static void test_another_state(void **state)
{
	struct parts *p = *state;

	assert_int_equal(pwrite(p->state, "D", 1, 0), 1);
	assert_int_equal(check(p), -EBADMSG);
	assert_int_equal(pwrite(p->state, "d", 1, 0), 1);
	assert_int_equal(check(p), 0);
	assert_int_equal(ftruncate(p->state, 0), 0);
	assert_int_equal(check(p), -EBADMSG);
}

static void test_another_key(void **state)
{
	struct parts *p = *state;

	p->digest[0]++;
	assert_int_equal(check(p), -EBADMSG);
}

static void test_every_bit_of_the_note_counts(void **state)
{
	struct parts *p = *state;

	for (size_t i = 0; i < sizeof(p->note); i++) {
		((uint8_t *)&p->note)[i] ^= 1;
		assert_int_equal(check(p), -EBADMSG);
		((uint8_t *)&p->note)[i] ^= 1;
	}
	assert_int_equal(check(p), 0);
}

/* Measuring is not exact; another machine's clock is another thing. */
static void test_another_clock(void **state)
{
	struct parts *p = *state;

	p->plan->tsc_khz += 1000;
	assert_int_equal(check(p), 0);
	p->plan->tsc_khz += 100000;
	assert_int_equal(check(p), -ESTALE);
	p->plan->tsc_khz = 2400000;
	assert_int_equal(check(p), -ESTALE);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TEST(test_what_is_whole_is_taken),
	    TEST(test_memory_that_was_cut),
	    TEST(test_memory_that_was_written_to),
	    TEST(test_another_state),
	    TEST(test_another_key),
	    TEST(test_every_bit_of_the_note_counts),
	    TEST(test_another_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
