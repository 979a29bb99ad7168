/* What a template says of itself comes back as it was written, or not at all; and what its key is
 * of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/qemu/template_about.h"
#include "lib/fd.h"

static struct template_about sample(void)
{
	static struct qemu_plan plan;
	struct template_parts parts = {.memory_mib = 192, .cpus = 2};
	struct template_about about;

	(void)snprintf(plan.image, sizeof(plan.image), "/srv/a \"b\"");
	(void)snprintf(plan.cpu, sizeof(plan.cpu), "max");
	(void)snprintf(plan.version, sizeof(plan.version), "7.2.0");
	plan.flags = QEMU_F_KVM;
	for (size_t i = 0; i < TEMPLATE_PARTS; i++)
		parts.of[i][i] = (uint8_t)(0xa0 + i);
	template_about_fill(&plan, &parts, &about);
	return about;
}

static void test_it_comes_back(void **state)
{
	FD_SCOPED int fd = memfd_create("about", MFD_CLOEXEC);
	struct template_about about = sample();
	struct template_about back;

	(void)state;
	assert_string_equal(about.accelerator, "kvm");
	assert_int_equal(template_about_write(fd, &about), 0);
	assert_int_equal(template_about_read(fd, &back), 0);
	assert_memory_equal(&back, &about, sizeof(about));
}

static void test_what_is_cut_or_changed_is_damaged(void **state)
{
	FD_SCOPED int fd = memfd_create("about", MFD_CLOEXEC);
	struct template_about about = sample();
	struct template_about back;
	off_t size;

	(void)state;
	assert_int_equal(template_about_write(fd, &about), 0);
	size = lseek(fd, 0, SEEK_END);
	for (off_t n = size - 1; n >= 0; n--) {
		assert_int_equal(ftruncate(fd, n), 0);
		assert_int_equal(template_about_read(fd, &back), -EBADMSG);
	}
	assert_int_equal(pwrite(fd, "{\"image\":3}", 11, 0), 11);
	assert_int_equal(template_about_read(fd, &back), -EBADMSG);
}

static void test_every_part_is_in_the_key(void **state)
{
	struct template_parts parts = sample().parts;
	uint8_t key[DIGEST_LEN];
	uint8_t other[DIGEST_LEN];

	(void)state;
	assert_int_equal(template_parts_digest(&parts, key), 0);
	for (size_t i = 0; i < TEMPLATE_PARTS; i++) {
		parts.of[i][31] ^= 1;
		assert_int_equal(template_parts_digest(&parts, other), 0);
		assert_memory_not_equal(key, other, DIGEST_LEN);
		parts.of[i][31] ^= 1;
	}
	parts.memory_mib++;
	assert_int_equal(template_parts_digest(&parts, other), 0);
	assert_memory_not_equal(key, other, DIGEST_LEN);
	parts.memory_mib--;
	parts.cpus++;
	assert_int_equal(template_parts_digest(&parts, other), 0);
	assert_memory_not_equal(key, other, DIGEST_LEN);
	parts.cpus--;
	assert_int_equal(template_parts_digest(&parts, other), 0);
	assert_memory_equal(key, other, DIGEST_LEN);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_it_comes_back),
	    cmocka_unit_test(test_what_is_cut_or_changed_is_damaged),
	    cmocka_unit_test(test_every_part_is_in_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
