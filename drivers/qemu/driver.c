/*
 * driver: boxes that are virtual machines of QEMU. Worker: the box after its start. If the worker
 * dies the kernel kills QEMU (PR_SET_PDEATHSIG); the janitor removes what is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/image/root.h"
#include "drivers/qemu/box.h"
#include "drivers/qemu/qemu.h"
#include "drivers/qemu/room.h"
#include "drivers/qemu/templates.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define ORDER_NS (1 * NS_PER_S) /* for QEMU to stop or go on; takes a millisecond */
#define STAT_CPU 14		/* utime is the 14th field of /proc/PID/stat, stime the next */

static int qemu_watch_fd(const struct driver_box *box)
{
	return box->machine.pidfd;
}

static int open_proc(pid_t pid, const char *file)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* What stats() reads is open by now, where cgroups tell; else QEMU's own numbers must do. */
static int qemu_unprivileged(struct driver_box *box, struct err *err)
{
	(void)err;
	for (int i = 0; i < NS_CGROUPS; i++)
		fd_close(&box->cgroups.dirs[i]);
	if (box->cgroups.cpu < 0)
		box->cpu = open_proc(box->machine.pid, "stat");
	if (box->cgroups.memory < 0)
		box->memory = open_proc(box->machine.pid, "statm");
	return 0;
}

static int qemu_kill(struct driver_box *box, uint64_t deadline_ns)
{
	FAULT_POINT("driver.qemu.kill");
	return machine_kill(&box->machine, deadline_ns);
}

static int qemu_pause(struct driver_box *box)
{
	return qmp_order(&box->qmp, "{\"execute\":\"stop\"}", clock_now_ns() + ORDER_NS, NULL);
}

static int qemu_resume(struct driver_box *box)
{
	return qmp_order(&box->qmp, "{\"execute\":\"cont\"}", clock_now_ns() + ORDER_NS, NULL);
}

/* The n-th field, of those that spaces part; the name of the program, in brackets, may have some.
 */
static uint64_t read_field(int fd, int n)
{
	char text[512];
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	char *at = text;
	char *name;

	if (len <= 0)
		return 0;
	text[len] = '\0';
	name = strrchr(text, ')');
	if (name) {
		at = name;
		n--; /* it is the second */
	}
	while (at && --n > 0) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

static int qemu_stats(const struct driver_box *box, struct driver_stats *out)
{
	const uint64_t tick_ns = NS_PER_S / 100; /* USER_HZ is 100 in every ABI there is */
	struct driver_stats s = {0};

	cgroup_read_stats(&box->cgroups, &s);
	if (box->cpu >= 0)
		s.cpu_ns =
		    (read_field(box->cpu, STAT_CPU) + read_field(box->cpu, STAT_CPU + 1)) * tick_ns;
	if (box->memory >= 0)
		s.memory_bytes = read_field(box->memory, 2) * (uint64_t)getpagesize();
	*out = s;
	return 0;
}

static void qemu_free(struct driver_box *box)
{
	if (!box)
		return;
	machine_close(&box->machine);
	cgroup_set_close(&box->cgroups);
	fd_close(&box->cpu);
	fd_close(&box->memory);
	free(box);
}

const struct driver driver_qemu = {
    .name = "qemu",
    .takes = image_root_takes,
    .rooted = true,
    .probe = qemu_probe,
    .prepare = qemu_prepare,
    .list = qemu_list,
    .adopt = qemu_adopt,
    .cleanup = qemu_cleanup,
    .trim = room_trim,
    .templates = &qemu_templates,
    .finish = qemu_finish,
    .start = qemu_start,
    .watch_fd = qemu_watch_fd,
    .unprivileged = qemu_unprivileged,
    .kill = qemu_kill,
    .pause = qemu_pause,
    .resume = qemu_resume,
    .stats = qemu_stats,
    .free = qemu_free,
};
