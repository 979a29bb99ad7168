/* Kernels and modules as distributions lay them out: plain, packed, with or without an index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/kernel.h"
#include "drivers/qemu/program.h"
#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define VERSION "6.1.0-1-cloud-amd64"

struct host {
	char dir[64];
	struct driver_site site;
	struct kernel_files files;
	struct qemu_plan *plan;
	struct err err;
	char options[512];
	struct driver_options o;
};

/* A shell is the shortest way to make a tree. */
static void sh(struct host *h, const char *line)
{
	const char *const argv[] = {"/bin/sh", "-ec", line, NULL};
	char here[96];

	(void)snprintf(here, sizeof(here), "%s", h->dir);
	assert_int_equal(chdir(here), 0);
	if (program_run(argv, -1, -1, clock_now_ns() + 20 * NS_PER_S, &h->err) < 0)
		fail_msg("%s: %s", line, h->err.text);
	assert_int_equal(chdir("/"), 0);
}

static int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	h->plan = calloc(1, sizeof(*h->plan));
	assert_non_null(h->plan);
	(void)snprintf(h->dir, sizeof(h->dir), "/tmp/sbxd-kernel-XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	h->site.state_dir = h->dir;
	sh(h,
	    "mkdir -p boot lib/modules/" VERSION "/kernel/drivers; echo k >boot/vmlinuz-" VERSION);
	h->o.len = (size_t)snprintf(h->options, sizeof(h->options),
		       "qemu.kernel=%s/boot/vmlinuz-" VERSION, h->dir) +
		   1;
	h->o.data = h->options;
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct host *h = *state;

	assert_int_equal(record_remove_tree(AT_FDCWD, h->dir), 0);
	free(h->plan);
	free(h);
	return 0;
}

#define MODULES "cd lib/modules/" VERSION "; "
/* A module says what it depends on among other texts, each ended by a NUL. */
#define MODULE(name, depends)                                          \
	"printf 'ELF\\0license=GPL\\0depends=" depends "\\0name=" name \
	"\\0' >kernel/drivers/" name ".ko; echo kernel/drivers/" name ".ko >>modules.order; "
#define ALL                                         \
	MODULE("virtio_blk", "virtio,virtio_ring")  \
	MODULE("virtio_ring", "")                   \
	MODULE("virtio", "virtio_ring")             \
	MODULE("virtio_mmio", "virtio,virtio_ring") \
	MODULE("virtio_console", "virtio")          \
	MODULE("overlay", "") MODULE("erofs", "libcrc32c") MODULE("libcrc32c", "")

static int find(struct host *h)
{
	return kernel_find(&h->o, &h->files, &h->err);
}

static int pack(struct host *h)
{
	return kernel_pack_modules(
	    &h->site, &h->files, h->plan, clock_now_ns() + 20 * NS_PER_S, &h->err);
}

/* The order in the archive: it stands at its end, as a text. */
static void assert_order(struct host *h, const char *want)
{
	char bytes[16384];
	FD_SCOPED int fd = open(h->plan->modules, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, sizeof(bytes));

	assert_true(n > 0 && (size_t)n < sizeof(bytes));
	assert_non_null(memmem(bytes, (size_t)n, want, strlen(want)));
	assert_memory_equal(bytes, "070701", 6);
}

static void test_modules_are_found_beside_their_kernel(void **state)
{
	struct host *h = *state;

	assert_int_equal(find(h), 0);
	assert_string_equal(h->files.version, VERSION);
	assert_non_null(strstr(h->files.modules, "/lib/modules/" VERSION));
	sh(h, "mkdir usr; mv lib usr/");
	assert_int_equal(find(h), 0);
	assert_non_null(strstr(h->files.modules, "/usr/lib/modules/" VERSION));
	sh(h, "rm -r usr");
	assert_int_equal(find(h), -ENOENT);
	assert_non_null(strstr(h->err.text, "no modules of kernel " VERSION));
}

static void test_what_depends_comes_after_what_it_depends_on(void **state)
{
	struct host *h = *state;

	sh(h, MODULES ALL);
	assert_int_equal(find(h), 0);
	if (pack(h) < 0)
		fail_msg("%s", h->err.text);
	assert_order(h, "virtio_ring\nvirtio\nvirtio_mmio\nvirtio_console\nvirtio_blk\noverlay\n"
			"libcrc32c\nerofs\n");
}

/* Debian 13 packs each of them. */
static void test_packed_modules(void **state)
{
	struct host *h = *state;

	if (access("/usr/bin/xz", X_OK) < 0)
		skip();
	sh(h, MODULES ALL "xz kernel/drivers/*.ko");
	assert_int_equal(find(h), 0);
	if (pack(h) < 0)
		fail_msg("%s", h->err.text);
	assert_order(h, "virtio_ring\nvirtio\nvirtio_mmio\nvirtio_console\nvirtio_blk\noverlay\n"
			"libcrc32c\nerofs\n");
}

static void test_what_is_built_in_is_no_module(void **state)
{
	struct host *h = *state;

	sh(h, MODULES ALL
	    "for m in virtio virtio_ring erofs; do echo kernel/drivers/$m.ko; rm "
	    "kernel/drivers/$m.ko; "
	    "done >modules.builtin; sed -i '/virtio.ko\\|ring\\|erofs/d' modules.order");
	assert_int_equal(find(h), 0);
	if (pack(h) < 0)
		fail_msg("%s", h->err.text);
	assert_order(h, "modules/order");
	assert_order(h, "virtio_mmio\nvirtio_console\nvirtio_blk\noverlay\n");
}

static void test_a_kernel_without_what_is_needed_is_refused(void **state)
{
	struct host *h = *state;

	sh(h, MODULES ALL "rm kernel/drivers/overlay.ko; sed -i /overlay/d modules.order");
	assert_int_equal(find(h), 0);
	assert_int_equal(pack(h), -ENOENT);
	assert_non_null(strstr(h->err.text, "has no module overlay"));
	/* In a circle there is no order. */
	sh(h, MODULES ALL
	    "printf '\\0depends=virtio\\0' >kernel/drivers/virtio_ring.ko; >modules.order; " ALL
	    "printf 'ELF\\0depends=virtio\\0' >kernel/drivers/virtio_ring.ko");
	assert_int_equal(find(h), 0);
	assert_int_equal(pack(h), -ELOOP);
}

/* A kernel that is packed in no way that we know is QEMU's to unpack. */
static void test_an_unknown_kernel_is_taken_as_it_is(void **state)
{
	struct host *h = *state;

	sh(h, "head -c 2000 /dev/zero >boot/vmlinuz-" VERSION);
	assert_int_equal(find(h), 0);
	assert_int_equal(
	    kernel_unpack(&h->site, &h->files, h->plan, clock_now_ns() + 20 * NS_PER_S, &h->err),
	    0);
	assert_string_equal(h->plan->kernel, h->files.image);
}

/* The head of a kernel of the x86 boot protocol, and an ELF image behind it, packed. */
#define KERNEL(pack, tail)                                                                  \
	"{ printf '\\177ELF'; head -c 100000 /dev/zero | tr '\\0' 'k'; } >elf; " pack       \
	" <elf >packed; " tail                                                              \
	"n=$(wc -c <packed); { head -c 497 /dev/zero; printf '\\1'; head -c 16 /dev/zero; " \
	"printf HdrS; head -c 66 /dev/zero; printf '\\0\\0\\0\\0'; "                        \
	"perl -e \"print pack q(V), $n\"; head -c 432 /dev/zero; cat packed; } "            \
	">boot/vmlinuz-" VERSION
#define SIZE "perl -e 'print pack q(V), -s q(elf)' >>packed; "

static void assert_unpacks(struct host *h)
{
	struct stat st;

	assert_int_equal(find(h), 0);
	assert_int_equal(
	    kernel_unpack(&h->site, &h->files, h->plan, clock_now_ns() + 20 * NS_PER_S, &h->err),
	    0);
	assert_string_not_equal(h->plan->kernel, h->files.image);
	assert_int_equal(stat(h->plan->kernel, &st), 0);
	assert_int_equal(st.st_size, 100004);
}

static void test_packed_kernels(void **state)
{
	struct host *h = *state;

	sh(h, KERNEL("gzip", ""));
	assert_unpacks(h);
	if (access("/usr/bin/xz", X_OK) == 0) {
		sh(h, KERNEL("xz --check=crc32", SIZE));
		assert_unpacks(h);
	}
	if (access("/usr/bin/zstd", X_OK) == 0) {
		sh(h, KERNEL("zstd", SIZE));
		assert_unpacks(h);
	}
	/* One sequence of literals is LZ4, too: 100004 = 15 + 392 * 255 + 29. */
	sh(h, KERNEL("perl -e 'undef $/; my $d = <STDIN>; my $b = chr(0xf0) . chr(255) x 392 . "
		     "chr(29) . $d; print pack(q(V V), 0x184c2102, length $b), $b'",
		  SIZE));
	assert_unpacks(h);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TEST(test_modules_are_found_beside_their_kernel),
	    TEST(test_what_depends_comes_after_what_it_depends_on),
	    TEST(test_packed_modules),
	    TEST(test_what_is_built_in_is_no_module),
	    TEST(test_a_kernel_without_what_is_needed_is_refused),
	    TEST(test_an_unknown_kernel_is_taken_as_it_is),
	    TEST(test_packed_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
