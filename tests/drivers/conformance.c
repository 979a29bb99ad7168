/*
 * conformance: one suite over every target (target.c) that this host can run, through the contract
 * only.
 *
 *   conformance [TARGET]      SBX_GUEST is the sbx-guest to boot, build/sbx-guest when not set;
 *                             SBX_FILES its helper, build/sbx-files; FAKE_BOXLITE_LIBRARY the
 *                             double of BoxLite's library, the standard one; SBX_BOXLITE_URL a
 *                             server for BoxLite's own library (CONTRIBUTING.md)
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
	int (*run)(void);
	unsigned int traits; /* the target's that it needs */
} groups[] = {
    {conformance_lifecycle, 0},
    {conformance_crash, 0},
    {conformance_takeover, 0},
    {conformance_outlive, 0},
    {conformance_isolation, TARGET_OWN_WORK},
    {conformance_limits, TARGET_OWN_WORK},
    {conformance_image, 0},
};

static int run_target(const struct target *target)
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
		if ((groups[i].traits & ~target->traits) == 0)
			failed += groups[i].run();
	}
	fixture_close(&f);
	return failed;
}

int main(int argc, char **argv)
{
	const struct target *target;
	int failed = 0;

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
			failed += run_target(target);
	}
	return failed != 0;
}
