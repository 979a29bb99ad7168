/*
 * images: one preparation for all who need an image, over the real link to a janitor that does as
 * the image's name says (janitor_testing.h).
 */
#include "tests/unit/supervisor/janitor_testing.h"

static const struct pool_rules rules = {.slots = 1, .replicas = 1, .max_boots = 1};

/* What a call of image_need() came to. */
struct answer {
	int calls;
	int prepared;
	struct ctl_done done;
	enum api_error error;
};

static void on_ready(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done, enum api_error error)
{
	struct answer *a = (struct answer *)(uintptr_t)ctx;

	(void)s;
	a->calls++;
	a->prepared = prepared;
	a->done = *done;
	a->error = error;
}

static void need(struct sbxd *s, const char *image, struct answer *a)
{
	*a = (struct answer){.prepared = -2};
	image_need(s, image, on_ready, (uint64_t)(uintptr_t)a);
}

static int setup(void **state)
{
	*state = stage_with_janitor(&rules);
	return 0;
}

static int teardown(void **state)
{
	stage_with_janitor_close(*state);
	return 0;
}

static void assert_prepared(const struct answer *a, const char *image)
{
	char text[64] = "";

	assert_int_equal(a->calls, 1);
	assert_int_equal(a->done.code, 0);
	assert_true(a->prepared >= 0);
	assert_int_equal(pread(a->prepared, text, sizeof(text) - 1, 0), strlen(image));
	assert_string_equal(text, image);
	assert_int_equal(fcntl(a->prepared, F_GETFD), FD_CLOEXEC);
}

static void test_prepared_once_for_all_who_wait(void **state)
{
	struct sbxd *s = *state;
	struct answer a[4];

	for (int i = 0; i < 3; i++)
		need(s, "good", &a[i]);
	assert_int_equal(a[0].calls + a[1].calls + a[2].calls, 0); /* later, from the loop */
	stage_until(s, a[2].calls);
	for (int i = 0; i < 3; i++) {
		assert_prepared(&a[i], "good");
		assert_int_equal(a[i].prepared, a[0].prepared);
		assert_string_equal(a[i].done.isolation, "namespace");
	}
	need(s, "good", &a[3]); /* it is there: at once */
	assert_prepared(&a[3], "good");
	assert_int_equal(a[3].prepared, a[0].prepared);
	assert_int_equal(orders_like(s->state_dir, "prepare good"), 1);
	assert_int_equal(s->image_count, 1);
}

static void test_each_image_has_its_own(void **state)
{
	struct sbxd *s = *state;
	struct answer a;
	struct answer b;

	need(s, "good", &a);
	need(s, "better", &b);
	stage_until(s, a.calls && b.calls);
	assert_prepared(&a, "good");
	assert_prepared(&b, "better");
	assert_int_not_equal(a.prepared, b.prepared);
	assert_int_equal(s->image_count, 2);
}

/* A janitor that says that it is at it has not answered, and is not asked again. */
static void test_a_slow_one_is_waited_for(void **state)
{
	struct sbxd *s = *state;
	struct answer a;

	need(s, "slow", &a);
	stage_until(s, a.calls);
	assert_prepared(&a, "slow");
	assert_int_equal(orders_like(s->state_dir, "prepare slow"), 1);
}

static void test_failure_reaches_all_and_is_not_kept(void **state)
{
	struct sbxd *s = *state;
	int open_before = fd_count_open();
	struct answer a[3];

	for (int i = 0; i < 3; i++)
		need(s, "bad-once", &a[i]);
	stage_until(s, a[2].calls);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a[i].calls, 1);
		assert_int_equal(a[i].prepared, -1);
		assert_int_equal(a[i].done.code, ENOENT);
		assert_int_equal(a[i].error, API_IMAGE_PULL_FAILED);
		assert_string_equal(a[i].done.text, "no image bad-once, try 1");
	}
	assert_int_equal(s->image_count, 0);
	assert_int_equal(fd_count_open(), open_before);

	need(s, "bad-once", &a[0]);
	assert_int_equal(a[0].calls, 0);
	stage_until(s, a[0].calls);
	assert_prepared(&a[0], "bad-once");
	assert_int_equal(orders_like(s->state_dir, "prepare bad-once"), 2);
}

/* The one who is told of the failure asks again, from within. */
static void again(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done, enum api_error error)
{
	struct answer *a = (struct answer *)(uintptr_t)ctx;

	a->calls++;
	a->prepared = prepared;
	a->done = *done;
	a->error = error;
	if (prepared < 0)
		image_need(s, "bad-once", again, ctx);
}

static void test_asked_for_again_from_within(void **state)
{
	struct sbxd *s = *state;
	struct answer a = {0};
	struct answer b;

	image_need(s, "bad-once", again, (uint64_t)(uintptr_t)&a);
	need(s, "bad-once", &b);
	stage_until(s, a.calls == 2);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.prepared, -1);
	a.calls = 1;
	assert_prepared(&a, "bad-once");
	assert_int_equal(orders_like(s->state_dir, "prepare bad-once"), 2);
}

static void test_a_janitor_that_dies_is_replaced(void **state)
{
	struct sbxd *s = *state;
	struct answer a;
	struct answer b;

	need(s, "dies-2", &a);
	need(s, "good", &b);
	stage_until(s, a.calls && b.calls);
	assert_prepared(&a, "dies-2");
	assert_prepared(&b, "good");
	assert_int_equal(orders_like(s->state_dir, "prepare dies-2"), 3);
	assert_int_equal(orders_like(s->state_dir, "prepare good"), 1);
}

static void test_it_is_not_tried_for_ever(void **state)
{
	struct sbxd *s = *state;
	struct answer a;
	struct answer b;

	need(s, "dies-100", &a);
	need(s, "good", &b);
	stage_until(s, a.calls && b.calls);
	assert_int_equal(a.prepared, -1);
	assert_int_equal(a.done.code, ETIMEDOUT);
	assert_true(a.done.text[0] != '\0');
	assert_int_equal(orders_like(s->state_dir, "prepare dies-100"), 3);
	assert_prepared(&b, "good"); /* who comes after it is served by the next janitor */
}

/* An upgrade took the program away for a while. */
static void test_a_janitor_that_cannot_be_started(void **state)
{
	struct sbxd *s = *state;
	struct answer a;
	struct answer b;

	(void)snprintf(s->worker_path, sizeof(s->worker_path), "/nowhere/sbx-worker");
	need(s, "dies-1", &a);
	need(s, "good", &b);
	stage_until(s, a.calls);
	assert_int_equal(a.prepared, -1);
	assert_int_equal(a.done.code, ETIMEDOUT);
	(void)snprintf(s->worker_path, sizeof(s->worker_path), "/proc/self/exe");
	stage_until(s, b.calls);
	assert_prepared(&b, "good");
	need(s, "better", &a);
	stage_until(s, a.calls);
	assert_prepared(&a, "better");
}

static void test_there_is_a_limit(void **state)
{
	struct sbxd *s = *state;
	struct answer a[65];
	char image[24];

	for (int i = 0; i < 64; i++) {
		(void)snprintf(image, sizeof(image), "image-%d", i);
		need(s, image, &a[i]);
	}
	need(s, "one-more", &a[64]);
	assert_int_equal(a[64].calls, 1);
	assert_int_equal(a[64].prepared, -1);
	assert_int_equal(a[64].done.code, EMFILE);
	assert_string_equal(a[64].done.text, "more than 64 images on their way");
	stage_until(s, a[63].calls);
	for (int i = 0; i < 64; i++) {
		(void)snprintf(image, sizeof(image), "image-%d", i);
		assert_prepared(&a[i], image);
	}
	/* The one that was needed longest ago makes room. */
	need(s, "image-0", &a[0]);
	assert_prepared(&a[0], "image-0");
	need(s, "one-more", &a[64]);
	stage_until(s, a[64].calls);
	assert_prepared(&a[64], "one-more");
	assert_int_equal(s->image_count, 64);
	assert_true(image_is_ready(s, "image-0"));
	assert_false(image_is_ready(s, "image-1"));
}

/* Who is told that one is ready needs another, for which only this one could make room. */
static void one_more(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done, enum api_error error)
{
	struct answer *a = (struct answer *)(uintptr_t)ctx;

	need(s, "one-more", &a[1]);
	on_ready(s, ctx, prepared, done, error);
}

static void test_who_is_told_does_not_end_it_for_the_others(void **state)
{
	struct sbxd *s = *state;
	struct answer first[2] = {0};
	struct answer second;
	struct answer a;
	char image[24];

	image_need(s, "image-0", one_more, (uint64_t)(uintptr_t)first);
	need(s, "image-0", &second);
	for (int i = 1; i < 64; i++) {
		(void)snprintf(image, sizeof(image), "image-%d", i);
		need(s, image, &a);
	}
	stage_until(s, first[0].calls);
	assert_prepared(&first[0], "image-0");
	assert_prepared(&second, "image-0");
	assert_int_equal(first[1].calls, 1);
	assert_int_equal(first[1].done.code, EMFILE);
	stage_until(s, a.calls);
}

static void test_the_end_calls_nobody(void **state)
{
	struct sbxd *s = *state;
	int open_before = fd_count_open();
	struct answer a;

	need(s, "good", &a);
	janitor_stop(s);
	images_free(s);
	assert_int_equal(a.calls, 0);
	assert_int_equal(s->image_count, 0);
	assert_int_equal(fd_count_open(), open_before - 2); /* the janitor's pidfd and socket */
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    staged(test_prepared_once_for_all_who_wait),
	    staged(test_each_image_has_its_own),
	    staged(test_a_slow_one_is_waited_for),
	    staged(test_failure_reaches_all_and_is_not_kept),
	    staged(test_asked_for_again_from_within),
	    staged(test_a_janitor_that_dies_is_replaced),
	    staged(test_it_is_not_tried_for_ever),
	    staged(test_a_janitor_that_cannot_be_started),
	    staged(test_there_is_a_limit),
	    staged(test_who_is_told_does_not_end_it_for_the_others),
	    staged(test_the_end_calls_nobody),
	};

	if (is_janitor(argc, argv))
		return janitor_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
