/*
 * filter: the system calls that a box may not make. Runs in the janitor; if it fails no box of
 * this driver can be started.
 *
 * Everything is allowed but what is listed: a box runs programs that nobody has seen before. What
 * is listed reaches kernel code for which a sandboxed program has no honest use, or would let it
 * make new namespaces and so regain capabilities. The program is short and a binary tree, because
 * it is loaded for each box.
 */
#include "drivers/namespace/filter.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"

/* Refused with EPERM. Names that the library or the machine does not know are left out. */
static const char *const denied[] = {
    /* mounts and roots */
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "open_tree",
    "open_tree_attr",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    /* other namespaces, other processes */
    "setns",
    "unshare",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    /* the kernel itself */
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "fanotify_init",
    "nfsservctl",
    "lookup_dcookie",
    "vm86",
    "vm86old",
    "modify_ldt",
    "iopl",
    "ioperm",
    "syslog",
    "acct",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    "reboot",
    "vhangup",
    "uselib",
    "ustat",
    "migrate_pages",
    "move_pages",
    /* keys are not per box */
    "add_key",
    "request_key",
    "keyctl",
    /* handles reach past mounts */
    "open_by_handle_at",
    /* the host's clock */
    "settimeofday",
    "stime",
    "clock_settime",
    "clock_settime64",
    "clock_adjtime",
    "clock_adjtime64",
    "adjtimex",
};

/* CLONE_NEWTIME is no flag of clone(): its bit belongs to the exit signal there. */
static const unsigned int clone_denied[] = {
    CLONE_NEWNS,
    CLONE_NEWCGROUP,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
};

/* They push input into a terminal that may not be the caller's own, or change its line discipline.
 */
static const unsigned int ioctl_denied[] = {TIOCSTI, TIOCLINUX, TIOCSETD};

/* Without the top bit: all bits set is the question which personality it is. */
static const unsigned int personality_denied[] = {
    MMAP_PAGE_ZERO, ADDR_COMPAT_LAYOUT, READ_IMPLIES_EXEC};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int filter_add_names(scmp_filter_ctx ctx)
{
	int rc = 0;
	int nr;

	for (size_t i = 0; rc == 0 && i < COUNT(denied); i++) {
		nr = seccomp_syscall_resolve_name(denied[i]);
		if (nr >= 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	return rc;
}

/* The kernel looks at 32 bits of these arguments: what is in the upper half must not hide them. */
static int filter_add_arguments(scmp_filter_ctx ctx)
{
	const uint32_t deny = SCMP_ACT_ERRNO(EPERM);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(clone_denied); i++)
		rc = seccomp_rule_add(ctx, deny, SCMP_SYS(clone), 1,
		    SCMP_A0(SCMP_CMP_MASKED_EQ, clone_denied[i], clone_denied[i]));
	for (size_t i = 0; rc == 0 && i < COUNT(ioctl_denied); i++)
		rc = seccomp_rule_add(ctx, deny, SCMP_SYS(ioctl), 1,
		    SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, ioctl_denied[i]));
	for (size_t i = 0; rc == 0 && i < COUNT(personality_denied); i++)
		rc = seccomp_rule_add(ctx, deny, SCMP_SYS(personality), 1,
		    SCMP_A0(SCMP_CMP_MASKED_EQ, personality_denied[i] | 0x80000000U,
			personality_denied[i]));
	/* Its flags are in memory, where a filter cannot see them; libraries then use clone(). */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return rc;
}

static int filter_add_rules(scmp_filter_ctx ctx)
{
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (rc == 0)
		rc = filter_add_names(ctx);
	if (rc == 0)
		rc = filter_add_arguments(ctx);
	/* A tree: measured to load in less time than the list, and to cost less at each call. */
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return rc;
}

static int filter_export(scmp_filter_ctx ctx, struct sock_filter *out, size_t max, uint32_t *len)
{
	FD_SCOPED int fd = memfd_create("sbxd-filter", MFD_CLOEXEC);
	size_t size = max * sizeof(*out);
	ssize_t n;
	int rc;

	if (fd < 0)
		return -errno;
	rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0)
		return rc;
	n = pread(fd, out, size, 0);
	if (n < 0)
		return -errno;
	if (n == 0 || (size_t)n == size || (size_t)n % sizeof(*out))
		return -E2BIG;
	*len = (uint32_t)((size_t)n / sizeof(*out));
	return 0;
}

int filter_build(struct sock_filter *out, size_t max, uint32_t *len, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc = ctx ? filter_add_rules(ctx) : -ENOMEM;

	if (rc == 0)
		rc = filter_export(ctx, out, max, len);
	if (ctx)
		seccomp_release(ctx);
	if (rc < 0)
		return err_sys(err, -rc, "build the seccomp filter");
	return 0;
}
