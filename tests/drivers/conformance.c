/*
 * conformance: one suite over every target (target.c) that this host can run, through the contract
 * only.
 *
 *   conformance [TARGET [GROUP]]   GROUP: of the tests, as below
 *
 * SBX_GUEST is the sbx-guest to boot, build/sbx-guest when not set; SBX_FILES its helper,
 * build/sbx-files; FAKE_BOXLITE_LIBRARY the double of BoxLite's library, the standard one;
 * SBX_BOXLITE_URL a server for BoxLite's own library (CONTRIBUTING.md).
 *
 * It lives in a mount namespace of its own, so that nobody else's mounts are counted, and adopts
 * orphans, so that no process of a box gets lost.
 */
#include "tests/drivers/conformance.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/drivers/faults.h"
#include "tests/drivers/fixture.h"

static const struct {
	const char *name;
	int (*run)(void);
	unsigned int traits; /* the target's that it needs */
} groups[] = {
    {"lifecycle", conformance_lifecycle, 0},
    {"crash", conformance_crash, 0},
    {"takeover", conformance_takeover, 0},
    {"outlive", conformance_outlive, 0},
    {"isolation", conformance_isolation, TARGET_OWN_WORK},
    {"limits", conformance_limits, TARGET_OWN_WORK},
    {"image", conformance_image, 0},
};

/* group: NULL: all. */
static int run_target(const struct target *target, const char *group)
{
	struct fixture f;
	struct err err = {0};
	int failed = 0;

	if (fixture_open(&f, target, &err) < 0) {
		(void)printf("-- %s cannot run here: %s\n", target->name, err.text);
		fixture_close(&f);
		return 0;
	}
	(void)printf("-- %s, isolation %s%s%s\n", target->name, f.facts.isolation,
	    f.facts.warning[0] ? ", " : "", f.facts.warning);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if ((groups[i].traits & ~target->traits) == 0 &&
		    (!group || !strcmp(group, groups[i].name)))
			failed += groups[i].run();
	}
	fixture_close(&f);
	return failed;
}

static bool is_group(const char *name)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (!strcmp(name, groups[i].name))
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const struct target *target;
	int failed = 0;

	if (argc > 2 && !is_group(argv[2])) {
		(void)fprintf(stderr, "conformance: there is no group '%s'\n", argv[2]);
		return 1;
	}
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)) {
		perror("mount namespace");
		return 1;
	}
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || faults_set_up() < 0) {
		perror("set up");
		return 1;
	}
	(void)atexit(faults_tear_down); /* without it a few small files stay */
	for (unsigned int n = 0; (target = target_at(n)); n++) {
		if (target_is_there(target) && (argc < 2 || !strcmp(argv[1], target->name)))
			failed += run_target(target, argc > 2 ? argv[2] : NULL);
	}
	return failed != 0;
}
