/* The trial of KVM: what is noted of it, and for how long. QEMU is a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "drivers/qemu/trial.h"
#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define PATIENCE_NS (60 * NS_PER_S)
#define HURRY_NS (50 * NS_PER_MS)

struct place {
	char dir[64];
	struct driver_site site;
	struct qemu_plan plan;
	struct found found;
	struct trial trial;
	struct err err;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/sbxd-trial-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->site.state_dir = p->dir;
	(void)snprintf(p->plan.binary, sizeof(p->plan.binary), "%s/qemu.sh", p->dir);
	(void)snprintf(p->plan.kernel, sizeof(p->plan.kernel), "/kernel");
	(void)snprintf(p->plan.cpu, sizeof(p->plan.cpu), "host");
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	assert_int_equal(record_remove_tree(AT_FDCWD, p->dir), 0);
	free(p);
	return 0;
}

static void put_file(const char *path, const char *text)
{
	FD_SCOPED int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What QEMU does from now on, and that it notes each of its runs. */
static void qemu_does(struct place *p, const char *line)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "#!/bin/sh\necho >>%s/runs\n%s\n", p->dir, line);
	put_file(p->plan.binary, text);
}

static int runs(const struct place *p)
{
	char path[96];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/runs", p->dir);
	return stat(path, &st) == 0 ? (int)st.st_size : 0;
}

static int try_in(struct place *p, uint64_t patience_ns, uint64_t left_ns, bool again)
{
	const struct trial_how how = {
	    .patience_ns = patience_ns,
	    .deadline_ns = clock_now_ns() + left_ns,
	    .again = again,
	};

	return trial_kvm(&p->site, &p->plan, &p->found, &how, &p->trial, &p->err);
}

static void assert_says(struct place *p, bool boots, const char *why, int times)
{
	int before = runs(p);

	if (try_in(p, PATIENCE_NS, 2 * PATIENCE_NS, false) < 0)
		fail_msg("%s", p->err.text);
	assert_int_equal(p->trial.boots, boots);
	if (why[0] ? !strstr(p->trial.why, why) : p->trial.why[0] != '\0')
		fail_msg("why: %s", p->trial.why);
	assert_int_equal(runs(p) - before, times);
}

/* Writes the note, and nothing else is in the store. */
static void note_is(struct place *p, const char *text)
{
	char dir[96];
	char path[400] = "";
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%s/qemu", p->dir);
	d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		assert_true(path[0] == '\0' && !strncmp(e->d_name, "trial-", 6));
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
	}
	(void)closedir(d);
	assert_true(path[0] != '\0');
	put_file(path, text);
}

static void note_since(struct place *p, long long ago_s)
{
	struct timespec now;
	char text[96];

	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &now), 0);
	(void)snprintf(text, sizeof(text), "no %lld it was so", (long long)now.tv_sec - ago_s);
	note_is(p, text);
}

static void test_that_it_boots_holds(void **state)
{
	struct place *p = *state;

	qemu_does(p, "exit 0");
	assert_says(p, true, "", 1);
	qemu_does(p, "exit 1");
	assert_says(p, true, "", 0);
	p->found.binary[0]++; /* another QEMU is another question */
	assert_says(p, false, "no kernel boots with /dev/kvm", 1);
}

static void test_a_refusal_says_why_and_holds_for_a_while(void **state)
{
	struct place *p = *state;

	qemu_does(p, "echo 'it is like that' >&2; exit 1");
	assert_says(p, false, "it is like that", 1);
	qemu_does(p, "exit 0");
	assert_says(p, false, "it is like that", 0);
	note_since(p, TRIAL_AGAIN_S - 60);
	assert_says(p, false, "it was so", 0);
	note_since(p, TRIAL_AGAIN_S);
	assert_says(p, true, "", 1);
}

/* One that somebody waits for is no answer to who wants it. */
static void test_who_wants_it_has_it_tried_again(void **state)
{
	struct place *p = *state;

	qemu_does(p, "exit 1");
	assert_says(p, false, "no kernel boots", 1);
	qemu_does(p, "exit 0");
	assert_int_equal(try_in(p, PATIENCE_NS, 2 * PATIENCE_NS, true), 0);
	assert_true(p->trial.boots);
	assert_says(p, true, "", 0);
}

static void test_a_note_of_another_kind_is_none(void **state)
{
	static const char *const notes[] = {"", "yes, perhaps", "no", "no way", "no 99999999999 x"};
	struct place *p = *state;

	qemu_does(p, "exit 1");
	assert_says(p, false, "no kernel boots", 1);
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		note_is(p, notes[i]);
		assert_says(p, false, "no kernel boots", 1);
	}
}

static void assert_looks(struct place *p, bool boots, const char *why)
{
	const struct trial_how how = {.again = true, .look = true};
	int before = runs(p);

	assert_int_equal(trial_kvm(&p->site, &p->plan, &p->found, &how, &p->trial, &p->err), 0);
	assert_int_equal(p->trial.boots, boots);
	if (why[0] ? !strstr(p->trial.why, why) : p->trial.why[0] != '\0')
		fail_msg("why: %s", p->trial.why);
	assert_int_equal(runs(p), before);
}

static void test_who_only_looks_tries_nothing(void **state)
{
	struct place *p = *state;

	qemu_does(p, "exit 1");
	assert_looks(p, false, "nobody has tried");
	assert_says(p, false, "no kernel boots", 1);
	note_since(p, 2 * TRIAL_AGAIN_S);
	assert_looks(p, false, "it was so");
	qemu_does(p, "exit 0");
	assert_looks(p, false, "it was so");
	assert_says(p, true, "", 1);
	assert_looks(p, true, "");
}

static void test_one_that_hangs_is_noted(void **state)
{
	struct place *p = *state;

	qemu_does(p, "exec sleep 1000");
	assert_int_equal(try_in(p, HURRY_NS, PATIENCE_NS, false), 0);
	assert_false(p->trial.boots);
	assert_non_null(strstr(p->trial.why, "no kernel has booted with /dev/kvm in"));
	assert_says(p, false, "no kernel has booted", 0);
}

/* There was not the time that a trial may take: that says nothing of KVM. */
static void test_one_that_is_cut_short_is_not_noted(void **state)
{
	struct place *p = *state;

	qemu_does(p, "exec sleep 1000");
	assert_int_equal(try_in(p, PATIENCE_NS, HURRY_NS, false), 0);
	assert_false(p->trial.boots);
	assert_non_null(strstr(p->trial.why, "other work"));
	qemu_does(p, "exit 0");
	assert_says(p, true, "", 1);
}

static void test_one_that_is_killed_is_not_noted(void **state)
{
	struct place *p = *state;

	qemu_does(p, "kill -KILL $$");
	assert_says(p, false, "killed", 1);
	qemu_does(p, "exit 0");
	assert_says(p, true, "", 1);
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_PLACE(test_that_it_boots_holds),
	    WITH_PLACE(test_a_refusal_says_why_and_holds_for_a_while),
	    WITH_PLACE(test_who_wants_it_has_it_tried_again),
	    WITH_PLACE(test_a_note_of_another_kind_is_none),
	    WITH_PLACE(test_who_only_looks_tries_nothing),
	    WITH_PLACE(test_one_that_hangs_is_noted),
	    WITH_PLACE(test_one_that_is_cut_short_is_not_noted),
	    WITH_PLACE(test_one_that_is_killed_is_not_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
