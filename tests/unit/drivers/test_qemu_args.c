/* QEMU's command line: a clone is the same machine as its template. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "drivers/qemu/machine.h"

struct line {
	char text[4096];
	char *argv[MACHINE_ARGS];
};

static struct qemu_plan plan;

static struct machine_spec clone_spec(void)
{
	(void)snprintf(plan.binary, sizeof(plan.binary), "/usr/bin/qemu-system-x86_64");
	(void)snprintf(plan.cpu, sizeof(plan.cpu), "max");
	plan.tsc_khz = 2500000;
	return (struct machine_spec){.plan = &plan, .memory_mib = 128, .cpus = 2};
}

static void make(struct line *l, const struct machine_spec *m)
{
	assert_int_equal(machine_args(m, l->text, sizeof(l->text), l->argv), 0);
	assert_string_equal(l->argv[0], plan.binary);
}

/* What follows the option for the n-th time, or NULL. */
static const char *value(const struct line *l, const char *option, int n)
{
	for (int i = 1; l->argv[i]; i++) {
		if (!strcmp(l->argv[i], option) && n-- == 0)
			return l->argv[i + 1];
	}
	return NULL;
}

static void test_a_clone_differs_in_nothing_that_counts(void **state)
{
	static const char *const same[] = {
	    "-M", "-accel", "-cpu", "-smp", "-m", "-bios", "-global", "-sandbox", "-serial"};
	struct machine_spec m = clone_spec();
	struct line clone;
	struct line template;

	(void)state;
	make(&clone, &m);
	m.boots = true;
	m.shared = true;
	make(&template, &m);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_string_equal(value(&clone, same[i], 0), value(&template, same[i], 0));
	for (int i = 0; value(&clone, "-device", i) || value(&template, "-device", i); i++)
		assert_string_equal(value(&clone, "-device", i), value(&template, "-device", i));
	assert_non_null(strstr(value(&clone, "-object", 0), "share=off"));
	assert_non_null(strstr(value(&template, "-object", 0), "share=on"));
	assert_string_equal(value(&clone, "-incoming", 0), "defer");
	assert_null(value(&clone, "-kernel", 0));
	assert_null(value(&template, "-incoming", 0));
	assert_string_equal(value(&template, "-kernel", 0), MACHINE_KERNEL);
}

static void test_what_is_emulated_is_told_its_clock(void **state)
{
	struct machine_spec m = clone_spec();
	struct line l;

	(void)state;
	m.boots = true;
	plan.flags = 0;
	make(&l, &m);
	assert_non_null(strstr(value(&l, "-append", 0), "tsc_early_khz=2500000 tsc=reliable"));
	assert_non_null(strstr(value(&l, "-accel", 0), "tcg"));
	plan.flags = QEMU_F_KVM;
	make(&l, &m);
	assert_null(strstr(value(&l, "-append", 0), "tsc"));
	assert_string_equal(value(&l, "-accel", 0), "kvm");
	plan.flags = 0;
}

static void test_a_line_that_does_not_fit_is_refused(void **state)
{
	struct machine_spec m = clone_spec();
	struct line l;

	(void)state;
	assert_int_equal(machine_args(&m, l.text, 200, l.argv), -E2BIG);
}

/* What a box may use, what it may write, and the kernel's own; in steps, so that few templates are
 * needed. */
static void test_sizes(void **state)
{
	struct driver_spec a = {.memory_mib = 100, .disk_mib = 20, .cpus_milli = 1};
	struct driver_spec b = {.memory_mib = 101, .disk_mib = 25, .cpus_milli = 1001};

	(void)state;
	assert_int_equal(machine_memory_mib(&a), 192);
	assert_int_equal(machine_memory_mib(&b), 192);
	assert_true(machine_memory_mib(&a) >= 100 + 20 + 64);
	assert_int_equal(machine_cpus(&a), 1);
	assert_int_equal(machine_cpus(&b), 2);
	a.cpus_milli = 0;
	assert_int_equal(machine_cpus(&a), 1);
	a.cpus_milli = 1000000;
	assert_int_equal(machine_cpus(&a), 32);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_clone_differs_in_nothing_that_counts),
	    cmocka_unit_test(test_what_is_emulated_is_told_its_clock),
	    cmocka_unit_test(test_a_line_that_does_not_fit_is_refused),
	    cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
