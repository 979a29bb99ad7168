/* faults: arming the fault points of drivers. In the test process; its files are its own. */
#include "tests/drivers/faults.h"

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
#include <unistd.h>

#include "drivers/driver.h"
#include "lib/buf.h"

#define FAULTS_TEXT 65536

const char *const faults_deadly[] = {
    "cloned", "born", "mapped", "cgroup", "released", "started", "kill", NULL};
const char *const faults_failing[] = {"mapped", "cgroup", "started", NULL};
const char *const faults_cleaning[] = {
    "list", "adopt", "cleanup.killed", "cleanup", "cleanup.removed", NULL};
const char *const faults_finishing[] = {"finish", NULL};

static const char *const *const killing[] = {faults_deadly, faults_cleaning, faults_finishing};

static const struct {
	const char *driver;
	const char *const steps[8];
} preparing[] = {
    {"namespace", {"probe.tried", "prepare.swept", "prepare.layer", "prepare.noted",
		      "prepare.layered", "prepare.cgroups"}},
    {"qemu", {"prepare.modules", "prepare.image", "prepare.cgroups"}},
};

const char *const *faults_preparing(const char *driver)
{
	static const char *const none[] = {NULL};

	for (size_t i = 0; i < sizeof(preparing) / sizeof(preparing[0]); i++) {
		if (!strcmp(preparing[i].driver, driver))
			return preparing[i].steps;
	}
	return none;
}

static char faults_dir[] = "/tmp/sbxd-faults-XXXXXX";

typedef int point_fn(void *ctx, const char *driver, const char *step, const char *action);

static int for_steps(point_fn *fn, void *ctx, const char *const *steps, const char *action)
{
	const struct driver *d;
	int rc = 0;

	for (unsigned int n = 0; rc == 0 && (d = driver_at(n)); n++) {
		for (size_t i = 0; rc == 0 && steps[i]; i++)
			rc = fn(ctx, d->name, steps[i], action);
	}
	return rc;
}

static int for_all(point_fn *fn, void *ctx)
{
	int rc = for_steps(fn, ctx, faults_failing, "fail");

	for (size_t i = 0; rc == 0 && i < sizeof(killing) / sizeof(killing[0]); i++)
		rc = for_steps(fn, ctx, killing[i], "kill");
	for (size_t i = 0; rc == 0 && i < sizeof(preparing) / sizeof(preparing[0]); i++) {
		for (size_t j = 0; rc == 0 && preparing[i].steps[j]; j++)
			rc = fn(ctx, preparing[i].driver, preparing[i].steps[j], "kill");
	}
	return rc;
}

static void point_path(char out[128], const char *driver, const char *step, const char *action)
{
	(void)snprintf(out, 128, "%s/%s.%s.%s", faults_dir, driver, step, action);
}

static int point_put(const char *path, const char *byte)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : pwrite(fd, byte, 1, 0) == 1 ? 0 : -EIO;

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static int point_name(void *ctx, const char *driver, const char *step, const char *action)
{
	char path[128];
	int rc;

	point_path(path, driver, step, action);
	rc = point_put(path, "0");
	return rc < 0 ? rc : buf_printf(ctx, "driver.%s.%s=%s@%s,", driver, step, action, path);
}

int faults_set_up(void)
{
	struct buf b;
	int rc = 0;

	if (!mkdtemp(faults_dir))
		return -errno;
	buf_init(&b, FAULTS_TEXT);
	rc = for_all(point_name, &b);
	if (rc == 0)
		rc = buf_terminate(&b);
	if (rc == 0 && setenv("SBX_FAULT", (const char *)buf_head(&b), 1) < 0)
		rc = -errno;
	buf_free(&b);
	return rc;
}

static int point_remove(void *ctx, const char *driver, const char *step, const char *action)
{
	char path[128];

	(void)ctx;
	point_path(path, driver, step, action);
	(void)unlink(path);
	return 0;
}

void faults_tear_down(void)
{
	(void)for_all(point_remove, NULL);
	(void)rmdir(faults_dir);
}

static void arm(const char *driver, const char *step, const char *action)
{
	char path[128];

	point_path(path, driver, step, action);
	assert_int_equal(point_put(path, "1"), 0);
}

void faults_arm_kill(const char *driver, const char *step)
{
	arm(driver, step, "kill");
}

void faults_arm_fail(const char *driver, const char *step)
{
	arm(driver, step, "fail");
}
