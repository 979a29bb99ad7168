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

#include "lib/buf.h"

#define FAULTS_TEXT 65536

static const char *const none[] = {NULL};

/* Of drivers whose box begins as a process of ours. */
static const char *const process_deadly[] = {
    "cloned", "born", "mapped", "cgroup", "released", "started", "kill", NULL};
static const char *const process_failing[] = {"mapped", "cgroup", "started", NULL};
static const char *const namespace_preparing[] = {"probe.tried", "prepare.swept", "prepare.layer",
    "prepare.noted", "prepare.layered", "prepare.cgroups", NULL};
static const char *const process_cleaning[] = {
    "list", "adopt", "cleanup.killed", "cleanup", "cleanup.removed", NULL};
static const char *const process_finishing[] = {"finish", NULL};

const struct fault_steps faults_namespace = {
    .driver = "namespace",
    .deadly = process_deadly,
    .failing = process_failing,
    .preparing = namespace_preparing,
    .cleaning = process_cleaning,
    .finishing = process_finishing,
    .program = none,
};

static const char *const boxlite_deadly[] = {"born", "ordered", "kill", NULL};
static const char *const boxlite_failing[] = {"started", NULL};
static const char *const boxlite_preparing[] = {"prepare.made", "prepare.pulled", NULL};
static const char *const boxlite_cleaning[] = {
    "list", "adopt", "cleanup", "cleanup.killed", "removed", "cleanup.removed", NULL};
static const char *const boxlite_program[] = {
    "start.created", "start.started", "start.copied", NULL};

const struct fault_steps faults_boxlite = {
    .driver = "boxlite",
    .deadly = boxlite_deadly,
    .failing = boxlite_failing,
    .preparing = boxlite_preparing,
    .cleaning = boxlite_cleaning,
    .finishing = none,
    .program = boxlite_program,
};

static const char *const qemu_preparing[] = {
    "prepare.modules", "prepare.image", "prepare.cgroups", NULL};

const struct fault_steps faults_qemu = {
    .driver = "qemu",
    .deadly = process_deadly,
    .failing = process_failing,
    .preparing = qemu_preparing,
    .cleaning = process_cleaning,
    .finishing = process_finishing,
    .program = none,
};

static const struct fault_steps *const all_steps[] = {
    &faults_namespace, &faults_boxlite, &faults_qemu};

static char faults_dir[] = "/tmp/sbxd-faults-XXXXXX";

/* Points of a driver are driver.NAME.STEP, those of its own program NAME.STEP. */
#define IN_DRIVER "driver."
#define IN_PROGRAM ""

typedef int point_fn(
    void *ctx, const char *where, const char *driver, const char *step, const char *action);

static int for_steps(point_fn *fn, void *ctx, const char *where, const char *driver,
    const char *const *steps, const char *action)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && steps[i]; i++)
		rc = fn(ctx, where, driver, steps[i], action);
	return rc;
}

static int for_driver(point_fn *fn, void *ctx, const struct fault_steps *s)
{
	const char *const *const killing[] = {s->deadly, s->preparing, s->cleaning, s->finishing};
	int rc = for_steps(fn, ctx, IN_DRIVER, s->driver, s->failing, "fail");

	for (size_t i = 0; rc == 0 && i < sizeof(killing) / sizeof(killing[0]); i++)
		rc = for_steps(fn, ctx, IN_DRIVER, s->driver, killing[i], "kill");
	return rc == 0 ? for_steps(fn, ctx, IN_PROGRAM, s->driver, s->program, "kill") : rc;
}

static int for_all(point_fn *fn, void *ctx)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(all_steps) / sizeof(all_steps[0]); i++)
		rc = for_driver(fn, ctx, all_steps[i]);
	return rc;
}

static void point_path(
    char out[128], const char *where, const char *driver, const char *step, const char *action)
{
	(void)snprintf(out, 128, "%s/%s%s.%s.%s", faults_dir, where, driver, step, action);
}

static int point_put(const char *path, const char *byte)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : pwrite(fd, byte, 1, 0) == 1 ? 0 : -EIO;

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static int point_name(
    void *ctx, const char *where, const char *driver, const char *step, const char *action)
{
	char path[128];
	int rc;

	point_path(path, where, driver, step, action);
	rc = point_put(path, "0");
	return rc < 0 ? rc : buf_printf(ctx, "%s%s.%s=%s@%s,", where, driver, step, action, path);
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

static int point_disarm(
    void *ctx, const char *where, const char *driver, const char *step, const char *action)
{
	char path[128];

	(void)ctx;
	point_path(path, where, driver, step, action);
	return point_put(path, "0");
}

void faults_disarm(void)
{
	assert_int_equal(for_all(point_disarm, NULL), 0);
}

static int point_remove(
    void *ctx, const char *where, const char *driver, const char *step, const char *action)
{
	char path[128];

	(void)ctx;
	point_path(path, where, driver, step, action);
	(void)unlink(path);
	return 0;
}

void faults_tear_down(void)
{
	(void)for_all(point_remove, NULL);
	(void)rmdir(faults_dir);
}

static void arm(const char *where, const char *driver, const char *step, const char *action)
{
	char path[128];

	point_path(path, where, driver, step, action);
	assert_int_equal(point_put(path, "1"), 0);
}

void faults_arm_kill(const char *driver, const char *step)
{
	arm(IN_DRIVER, driver, step, "kill");
}

void faults_arm_fail(const char *driver, const char *step)
{
	arm(IN_DRIVER, driver, step, "fail");
}

void faults_arm_program(const char *driver, const char *step)
{
	arm(IN_PROGRAM, driver, step, "kill");
}
