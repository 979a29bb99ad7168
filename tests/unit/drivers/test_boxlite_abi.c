/*
 * Tests of drivers/boxlite/program/abi.c and info.c, over libraries that are compiled here: what is
 * missing is named, what is optional may be missing, and lists are walked whatever their elements
 * end in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/boxlite/program/abi.h"

#define NEEDED                                                                                    \
	"boxlite_error_free", "boxlite_runtime_drain", "boxlite_options_new",                     \
	    "boxlite_options_set_name", "boxlite_options_set_cpus", "boxlite_options_set_memory", \
	    "boxlite_options_set_network_enabled", "boxlite_options_set_network_disabled",        \
	    "boxlite_options_set_detach", "boxlite_options_free", "boxlite_create_box",           \
	    "boxlite_start_box", "boxlite_remove", "boxlite_box_free", "boxlite_get_info",        \
	    "boxlite_free_box_info", "boxlite_copy_into", "boxlite_box_exec",                     \
	    "boxlite_execution_on_stdout", "boxlite_execution_on_exit",                           \
	    "boxlite_execution_stdin_write", "boxlite_execution_stdin_close",                     \
	    "boxlite_execution_free"
#define LOCAL "boxlite_runtime_new"
#define REMOTE                                                                                   \
	"boxlite_api_key_credential_new", "boxlite_credential_free", "boxlite_rest_options_new", \
	    "boxlite_rest_options_set_credential", "boxlite_rest_options_set_path_prefix",       \
	    "boxlite_rest_options_free", "boxlite_rest_runtime_new_with_options",                \
	    "boxlite_list_info", "boxlite_free_box_info_list"

static const char *const local_symbols[] = {NEEDED, LOCAL, NULL};
static const char *const remote_symbols[] = {NEEDED, REMOTE, NULL};

static char dir[] = "/tmp/sbxd-test-abi-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* A library of that version with those symbols but the one at `without`; its path is out. */
static void make_library(char out[64], const char *version, const char *const *symbols, int without)
{
	static int number; /* a path that was loaded once is not loaded again */
	char command[200];
	FILE *cc;

	(void)snprintf(out, 64, "%s/%d.so", dir, number++);
	(void)snprintf(command, sizeof(command), "${CC:-cc} -w -shared -fPIC -x c -o %s -", out);
	cc = popen(command, "we");
	assert_non_null(cc);
	if (version)
		(void)fprintf(
		    cc, "const char *boxlite_version(void) { return \"%s\"; }\n", version);
	for (int i = 0; symbols && symbols[i]; i++) {
		if (i != without)
			(void)fprintf(cc, "int %s(void) { return 0; }\n", symbols[i]);
	}
	(void)fprintf(cc, "int nothing;\n");
	assert_int_equal(pclose(cc), 0);
}

static void refused(const char *path, bool remote, int code, const char *says)
{
	struct blx_api api = {.library = &api};
	struct err err = {0};

	assert_int_equal(abi_load(path, remote, &api, &err), -code);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	assert_ptr_equal(api.library, &api); /* untouched */
}

static void test_what_is_needed_alone_is_enough(void **state)
{
	struct blx_api api = {0};
	struct err err = {0};
	char path[64];

	(void)state;
	make_library(path, "0.10.3", local_symbols, -1);
	if (abi_load(path, false, &api, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(api.version_text, "0.10.3");
	assert_non_null(api.exec);
	assert_null(api.metrics);
	assert_null(api.images);
	assert_int_equal(unlink(path), 0);
	make_library(path, "0.9.0", remote_symbols, -1);
	if (abi_load(path, true, &api, &err) < 0)
		fail_msg("%s", err.text);
	assert_null(api.runtime_new);
	assert_int_equal(unlink(path), 0);
}

static void test_a_missing_symbol_is_named(void **state)
{
	char path[64];

	(void)state;
	for (int i = 0; local_symbols[i]; i += 4) { /* each takes a compiler's run */
		make_library(path, "0.10.0", local_symbols, i);
		refused(path, false, ENOEXEC, local_symbols[i]);
		refused(path, false, ENOEXEC, "0.10.0");
		assert_int_equal(unlink(path), 0);
	}
	make_library(path, "0.10.0", local_symbols, -1);
	refused(path, true, ENOEXEC, "boxlite_api_key_credential_new");
	assert_int_equal(unlink(path), 0);
	make_library(path, "0.10.0", remote_symbols, -1);
	refused(path, false, ENOEXEC, LOCAL);
	assert_int_equal(unlink(path), 0);
	make_library(path, NULL, local_symbols, -1);
	refused(path, false, ENOEXEC, "boxlite_version");
	assert_int_equal(unlink(path), 0);
}

static void test_versions(void **state)
{
	static const char *const good[] = {"0.9.0", "0.10.1", "0.11.99", "0.9.5-rc1"};
	static const char *const bad[] = {
	    "", "0.8.9", "0.12.0", "1.10.0", "0", "0.10", "x", "v0.10.0", "-0.10.0 "};
	char path[64];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(abi_version_fits(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(abi_version_fits(bad[i]));
	make_library(path, "0.12.0", local_symbols, -1);
	refused(path, false, EPROTONOSUPPORT, "0.12.0");
	refused(path, false, EPROTONOSUPPORT, "before 0.12.0");
	assert_int_equal(unlink(path), 0);
}

static void test_no_library(void **state)
{
	char path[64];
	FILE *f;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/none.so", dir);
	refused(path, false, ENOENT, path);
	refused(path, false, ENOENT, "boxlite.library");
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs("no library", f) >= 0);
	assert_int_equal(fclose(f), 0);
	refused(path, false, ENOEXEC, "cannot be loaded");
	assert_int_equal(unlink(path), 0);
}

/* ---- lists ---- */

/* A list of elements of `size` bytes, whose tails hold numbers and pointers to who knows what. */
static void walk(size_t size, int count)
{
	struct blx_info_list list = {.items = calloc((size_t)count, size), .count = count};
	const struct blx_info *at = NULL;
	char names[8][16];

	assert_non_null(list.items);
	for (int i = 0; i < count; i++) {
		char *bytes = (char *)list.items + (size_t)i * size;
		struct blx_info info = {
		    .id = names[i],
		    .name = i % 2 ? NULL : names[i],
		    .image = names[i],
		    .status = names[i],
		    .running = i % 2,
		    .pid = 1 << i,
		};

		(void)snprintf(names[i], sizeof(names[i]), "box%d", i);
		memcpy(bytes, &info, sizeof(info));
		for (size_t at_tail = sizeof(info); at_tail < size; at_tail += 8) {
			const uint64_t odd[] = {1, (uint64_t)(uintptr_t)names[i], 0xffffffffffff,
			    1764500000, (uint64_t)(uintptr_t)bytes};

			memcpy(bytes + at_tail, &odd[at_tail / 8 % 5], 8);
		}
	}
	for (int i = 0; i < count; i++) {
		at = info_next(&list, at);
		assert_non_null(at);
		assert_string_equal(at->id, names[i]);
		assert_int_equal(at->pid, 1 << i);
	}
	free(list.items);
}

static void test_lists_of_any_tail(void **state)
{
	const struct blx_info_list empty = {.items = NULL, .count = 0};

	(void)state;
	assert_null(info_next(&empty, NULL));
	for (size_t tail = 0; tail <= 128; tail += 8) {
		for (int count = 1; count <= 5; count++)
			walk(sizeof(struct blx_info) + tail, count);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_needed_alone_is_enough),
	    cmocka_unit_test(test_a_missing_symbol_is_named),
	    cmocka_unit_test(test_versions),
	    cmocka_unit_test(test_no_library),
	    cmocka_unit_test(test_lists_of_any_tail),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
