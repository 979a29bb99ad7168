/*
 * cgroup: the cgroups of one box. Worker (make, attach, stats) and janitor (destroy). They stay
 * when the worker dies, and are how the janitor finds the box again.
 */
#include "drivers/namespace/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define CPU_PERIOD_US 100000ULL
#define CPU_QUOTA_MIN_US 1000ULL /* the kernel's own bound */
#define RETRY_NS (2 * NS_PER_MS) /* between looks at a cgroup that will be empty soon */
#define MIB (1024ULL * 1024ULL)

void cgroup_set_init(struct cgroup_set *set)
{
	*set = (struct cgroup_set){.cpu = -1, .memory = -1};
	for (int i = 0; i < NS_CGROUPS; i++)
		set->dirs[i] = -1;
}

void cgroup_set_close(struct cgroup_set *set)
{
	for (int i = 0; i < NS_CGROUPS; i++)
		fd_close(&set->dirs[i]);
	fd_close(&set->cpu);
	fd_close(&set->memory);
}

static int cgroup_put(int dir, const char *file, unsigned long long value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", value);
	return fd_write_file_at(dir, file, text);
}

/* The scratch is memory: a box whose disk is full shall get ENOSPC and not be killed. */
static unsigned long long cgroup_memory_limit(const struct driver_spec *spec)
{
	return ((unsigned long long)spec->memory_mib + spec->disk_mib) * MIB;
}

static unsigned long long cgroup_cpu_quota(const struct driver_spec *spec)
{
	unsigned long long quota = CPU_PERIOD_US * spec->cpus_milli / 1000ULL;

	return quota < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : quota;
}

static int cgroup_limit_v1(int dir, uint32_t controllers, const struct driver_spec *spec)
{
	int rc = 0;

	if ((controllers & NS_CG_MEMORY) && spec->memory_mib)
		rc = cgroup_put(dir, "memory.limit_in_bytes", cgroup_memory_limit(spec));
	if (rc == 0 && (controllers & NS_CG_SWAP) && spec->memory_mib)
		rc = cgroup_put(dir, "memory.memsw.limit_in_bytes", cgroup_memory_limit(spec));
	if (rc == 0 && (controllers & NS_CG_PIDS) && spec->pids_max)
		rc = cgroup_put(dir, "pids.max", spec->pids_max);
	if (rc == 0 && (controllers & NS_CG_CPU) && spec->cpus_milli)
		rc = cgroup_put(dir, "cpu.cfs_quota_us", cgroup_cpu_quota(spec));
	return rc;
}

static int cgroup_limit_v2(int dir, uint32_t controllers, const struct driver_spec *spec)
{
	char text[48];
	int rc = 0;

	if ((controllers & NS_CG_MEMORY) && spec->memory_mib)
		rc = cgroup_put(dir, "memory.max", cgroup_memory_limit(spec));
	if (rc == 0 && (controllers & NS_CG_SWAP))
		rc = cgroup_put(dir, "memory.swap.max", 0);
	if (rc == 0 && (controllers & NS_CG_PIDS) && spec->pids_max)
		rc = cgroup_put(dir, "pids.max", spec->pids_max);
	if (rc == 0 && (controllers & NS_CG_CPU) && spec->cpus_milli) {
		(void)snprintf(
		    text, sizeof(text), "%llu %llu", cgroup_cpu_quota(spec), CPU_PERIOD_US);
		rc = fd_write_file_at(dir, "cpu.max", text);
	}
	return rc;
}

int cgroup_make(const struct ns_prepared *prep, uint32_t i, const struct driver_spec *spec,
    struct cgroup_set *set, struct err *err)
{
	const struct ns_cgroup *cg = &prep->cgroups[i];
	char path[NS_PATH + 64];
	int rc;

	(void)snprintf(path, sizeof(path), "%s/%s", cg->parent, spec->name);
	/* One that is there belongs to a box that was not cleaned up: never share it. */
	if (mkdir(path, 0755) < 0)
		return err_sys(err, errno, "make the cgroup %s", path);
	set->dirs[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (set->dirs[i] < 0) {
		rc = err_sys(err, errno, "open the cgroup %s", path);
		(void)rmdir(path); /* just made and empty */
		return rc;
	}
	rc = cg->controllers & NS_CG_V2 ? cgroup_limit_v2(set->dirs[i], cg->controllers, spec)
					: cgroup_limit_v1(set->dirs[i], cg->controllers, spec);
	if (rc < 0)
		return err_sys(err, -rc, "set the limits of the cgroup %s", path);
	return 0;
}

int cgroup_attach(const struct cgroup_set *set, uint32_t i, pid_t pid)
{
	return cgroup_put(set->dirs[i], "cgroup.procs", (unsigned long long)pid);
}

static void cgroup_open_stat(int *fd, int dir, const char *file)
{
	if (*fd < 0)
		*fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
}

void cgroup_open_stats(const struct ns_prepared *prep, struct cgroup_set *set)
{
	for (uint32_t i = 0; i < prep->cgroup_count; i++) {
		uint32_t controllers = prep->cgroups[i].controllers;

		if (controllers & NS_CG_V2) {
			cgroup_open_stat(&set->memory, set->dirs[i], "memory.current");
			cgroup_open_stat(&set->cpu, set->dirs[i], "cpu.stat");
			set->cpu_v2 = set->cpu >= 0;
			continue;
		}
		if (controllers & NS_CG_MEMORY)
			cgroup_open_stat(&set->memory, set->dirs[i], "memory.usage_in_bytes");
		if (controllers & NS_CG_CPUACCT)
			cgroup_open_stat(&set->cpu, set->dirs[i], "cpuacct.usage");
	}
}

/* The number after `key` in the file, or 0. */
static uint64_t cgroup_read_number(int fd, const char *key)
{
	char text[256];
	const char *at = text;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (*key)
		at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

void cgroup_read_stats(const struct cgroup_set *set, struct driver_stats *out)
{
	out->memory_bytes = cgroup_read_number(set->memory, "");
	out->cpu_ns = set->cpu_v2 ? cgroup_read_number(set->cpu, "usage_usec ") * NS_PER_US
				  : cgroup_read_number(set->cpu, "");
}

int cgroup_is_used(const char *parent, const char *name)
{
	char path[NS_PATH + 64 + sizeof("/cgroup.procs")];
	FD_SCOPED int fd = -1;
	char byte;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s/cgroup.procs", parent, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, &byte, 1); /* what has exited is not in it */
	if (n < 0)
		return errno == ENODEV ? -ENOENT : -errno; /* removed between open and read */
	return n > 0;
}

/* A pid read from cgroup.procs may be another process's by now: signal only one that is inside. */
static void cgroup_kill_member(pid_t pid, const char *name)
{
	FD_SCOPED int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	char path[32];
	char text[4096];

	if (pidfd < 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 && strstr(text, name))
		(void)proc_signal(pidfd, SIGKILL); /* gone already is as good */
}

static int cgroup_kill_procs(int dir, const char *name)
{
	char text[4096];
	char *next = text;
	ssize_t n = fd_read_file_at(dir, "cgroup.procs", text, sizeof(text));

	if (n < 0)
		return (int)n;
	for (long pid = strtol(next, &next, 10); pid > 0; pid = strtol(next, &next, 10)) {
		if (*next != '\n')
			break; /* cut by the buffer: the next round sees it */
		cgroup_kill_member((pid_t)pid, name);
	}
	return 0;
}

static void cgroup_pause(void)
{
	const struct timespec ts = {.tv_nsec = (long)RETRY_NS};

	(void)nanosleep(&ts, NULL); /* shorter is harmless */
}

int cgroup_destroy(const char *parent, const char *name, uint64_t deadline_ns)
{
	FD_SCOPED int top = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_SCOPED int dir = top < 0 ? -1 : openat(top, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	for (;;) {
		(void)fd_write_file_at(dir, "cgroup.kill", "1"); /* v2 from Linux 5.14 */
		rc = cgroup_kill_procs(dir, name);
		if (rc < 0 && rc != -ENOENT && rc != -ENODEV)
			return rc;
		if (unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		cgroup_pause();
	}
}
