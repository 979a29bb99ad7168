/* doctor_kernel: switches and limits of the kernel that sbxd depends on. Reads only; tries things
 * in ways that leave nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/doctor.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define FEW_NAMESPACES 256
#define FEW_PIDS 32768
#define FEW_FILES 4096

/* The number in a file of /proc. False: there is none. */
static bool read_number(const char *path, unsigned long long *out)
{
	char text[64];
	char *end;

	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	*out = strtoull(text, &end, 10);
	return end != text;
}

void doctor_namespace_counts(struct doctor *d)
{
	static const char *const kinds[] = {"user", "pid", "mnt", "ipc", "uts", "net", "cgroup"};
	bool few = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned long long n;
		char path[96];
		char fix[96];

		(void)snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
		if (!read_number(path, &n) || n >= FEW_NAMESPACES)
			continue;
		few = true;
		(void)snprintf(
		    fix, sizeof(fix), "sysctl -w user.max_%s_namespaces=15000", kinds[i]);
		doctor_say(d, n == 0 ? DOCTOR_WRONG : DOCTOR_NOTE, fix,
		    "%llu %s namespaces are allowed; each box needs one", n, kinds[i]);
	}
	if (!few)
		doctor_say(d, DOCTOR_FINE, NULL, "enough of each kind are allowed");
}

void doctor_landlock(struct doctor *d)
{
	long abi =
	    syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi > 0)
		doctor_say(d, DOCTOR_FINE, NULL, "version %ld", abi);
	else
		doctor_say(d, DOCTOR_NOTE,
		    errno == EOPNOTSUPP ? "boot with lsm=landlock,... on the kernel's command line"
					: "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK",
		    "there is none (%s): workers are confined without it", strerror(errno));
}

/* What boxes get of sbx-files is a copy in memory that is executed. */
void doctor_memfd(struct doctor *d)
{
	FD_SCOPED int fd = (int)syscall(SYS_memfd_create, "doctor", MFD_CLOEXEC | MFD_EXEC);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 all of them are executable */
		fd = (int)syscall(SYS_memfd_create, "doctor", MFD_CLOEXEC);
	if (fd >= 0)
		doctor_say(d, DOCTOR_FINE, NULL, "programs in memory may be executed");
	else if (errno == EACCES)
		doctor_say(d, DOCTOR_WRONG, "sysctl -w vm.memfd_noexec=1",
		    "vm.memfd_noexec forbids programs in memory");
	else
		doctor_say(d, DOCTOR_WRONG, "use Linux 3.17 or later, and let memfd_create() pass",
		    "no memory with a name: %s", strerror(errno));
}

void doctor_pids(struct doctor *d)
{
	unsigned long long most;
	unsigned long long threads;

	if (!read_number("/proc/sys/kernel/pid_max", &most))
		doctor_say(d, DOCTOR_NOTE, "mount -t proc proc /proc", "pid_max cannot be read");
	else if (most < FEW_PIDS)
		doctor_say(d, DOCTOR_NOTE, "sysctl -w kernel.pid_max=4194304",
		    "kernel.pid_max is %llu for all boxes together", most);
	else if (read_number("/proc/sys/kernel/threads-max", &threads) && threads < FEW_PIDS / 4)
		doctor_say(d, DOCTOR_NOTE, "sysctl -w kernel.threads-max=65536",
		    "kernel.threads-max is %llu for all boxes together", threads);
	else
		doctor_say(d, DOCTOR_FINE, NULL, "%llu", most);
}

void doctor_files(struct doctor *d)
{
	struct rlimit limit;
	unsigned long long all;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return; /* it cannot fail */
	if (limit.rlim_max < FEW_FILES)
		doctor_say(d, DOCTOR_NOTE,
		    "ulimit -Hn 65536 where sbxd is started, or LimitNOFILE=65536 in its unit",
		    "RLIMIT_NOFILE is %llu: each box and each client takes some",
		    (unsigned long long)limit.rlim_max);
	else if (read_number("/proc/sys/fs/file-max", &all) && all < limit.rlim_max)
		doctor_say(d, DOCTOR_NOTE, "sysctl -w fs.file-max=1000000",
		    "fs.file-max is %llu for the whole host", all);
	else
		doctor_say(
		    d, DOCTOR_FINE, NULL, "%llu at most", (unsigned long long)limit.rlim_max);
}
