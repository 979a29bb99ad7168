/*
 * child: the box's first process from its clone to the exec of sbx-guest. Raw system calls only:
 * the memory is the worker's. Dies with the worker.
 */
#include "drivers/namespace/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "drivers/namespace/raw.h"

#define KERNEL_SIGSET 8		/* bytes of a signal mask */
#define NEWCGROUP 0x02000000	/* CLONE_NEWCGROUP, without <sched.h> */
#define CLOSE_ON_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC, missing in older headers */
#define NO_CORE 1 /* a limit of 1 byte also keeps a core_pattern pipe from being run */

static const char *const step_names[] = {
    [STEP_NONE] = "begin",
    [STEP_DEATHSIG] = "bind its life to the worker's",
    [STEP_LIMITS] = "set its resource limits",
    [STEP_LOOPBACK] = "bring up its loopback interface",
    [STEP_HOSTNAME] = "set its host name",
    [STEP_PRIVATE] = "make its mounts private",
    [STEP_WAIT] = "wait for its id maps and cgroup",
    [STEP_IDS] = "become root of its user namespace",
    [STEP_SCRATCH] = "mount its scratch tmpfs",
    [STEP_LAYERS] = "attach the layers of its root",
    [STEP_OVERLAY] = "mount its root overlay",
    [STEP_USR] = "mount its /usr overlay",
    [STEP_BINDS] = "bind the host's program directories",
    [STEP_DEVICES] = "bind its devices",
    [STEP_PTS] = "mount its devpts",
    [STEP_PROC] = "mount its procfs",
    [STEP_MASKS] = "mask parts of its procfs",
    [STEP_PIVOT] = "enter its root",
    [STEP_CGROUP] = "unshare its cgroup namespace",
    [STEP_DESCRIPTORS] = "set up its descriptors",
    [STEP_CAPABILITIES] = "drop capabilities",
    [STEP_SECCOMP] = "load its seccomp filter",
    [STEP_EXEC] = "execute sbx-guest",
};

_Static_assert(sizeof(step_names) / sizeof(step_names[0]) == STEPS, "every step has a name");

const char *child_step_name(uint32_t step)
{
	return step < STEPS ? step_names[step] : "run";
}

/* What a box's root may do: docker's default without MKNOD, NET_RAW and AUDIT_WRITE. */
#define CHILD_CAPS                                                                                \
	((1U << CAP_CHOWN) | (1U << CAP_DAC_OVERRIDE) | (1U << CAP_FSETID) | (1U << CAP_FOWNER) | \
	    (1U << CAP_SETGID) | (1U << CAP_SETUID) | (1U << CAP_SETFCAP) | (1U << CAP_SETPCAP) | \
	    (1U << CAP_NET_BIND_SERVICE) | (1U << CAP_SYS_CHROOT) | (1U << CAP_KILL))

SYS_BARE static long child_prctl(long option, long a, long b)
{
	return sys_call(SYS_prctl, option, a, b, 0, 0);
}

SYS_BARE static long child_die_with_worker(struct child *c)
{
	c->step = STEP_DEATHSIG;
	return child_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
}

/* Waits for start()'s next go. Its death is the end of the stream. */
SYS_BARE static long child_wait_go(struct child *c)
{
	char go;
	long rc;

	c->step = STEP_WAIT;
	rc = sys_call(SYS_read, c->sync, RAW_PTR(&go), 1, 0, 0);
	if (rc == 1)
		return 0;
	return rc < 0 ? rc : -EPIPE;
}

/* exec keeps what is ignored, and the worker ignores SIGPIPE. */
SYS_BARE static void child_reset_signals(void)
{
	struct {
		unsigned long handler, flags, restorer, mask;
	} fallback = {0, 0, 0, 0};

	for (int sig = 1; sig <= 64; sig++)
		(void)sys_call(SYS_rt_sigaction, sig, RAW_PTR(&fallback), 0, KERNEL_SIGSET, 0);
}

SYS_BARE static long child_bring_up_loopback(struct child *c)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	long sock;
	long rc;

	c->step = STEP_LOOPBACK;
	sock = sys_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0);
	if (sock < 0)
		return sock;
	rc = sys_call(SYS_ioctl, sock, SIOCSIFFLAGS, RAW_PTR(&lo), 0, 0);
	(void)sys_call(SYS_close, sock, 0, 0, 0, 0);
	return rc;
}

SYS_BARE static long child_limit(int resource, rlim_t value)
{
	struct rlimit limit = {value, value};

	return sys_call(SYS_prlimit64, 0, resource, RAW_PTR(&limit), 0, 0);
}

/*
 * The kernel counts processes for each uid of each user namespace. So this bounds a whole box that
 * has one uid, as an ordinary user's has, even where no cgroup does.
 */
SYS_BARE static long child_set_limits(struct child *c)
{
	long rc = child_limit(RLIMIT_CORE, NO_CORE);

	if (rc == 0 && c->pids_max)
		rc = child_limit(RLIMIT_NPROC, c->pids_max);
	return rc;
}

/* What needs no id map: done while the worker writes it. */
SYS_BARE static long child_begin(struct child *c)
{
	size_t len = 0;
	long rc = child_die_with_worker(c);

	if (rc < 0)
		return rc;
	(void)sys_call(SYS_close, c->sync_peer, 0, 0, 0, 0); /* so that its end is seen */
	child_reset_signals();
	c->step = STEP_LIMITS;
	rc = child_set_limits(c);
	if (rc == 0)
		rc = child_bring_up_loopback(c);
	if (rc < 0)
		return rc;
	c->step = STEP_HOSTNAME;
	while (c->hostname[len])
		len++;
	rc = sys_call(SYS_sethostname, RAW_PTR(c->hostname), (long)len, 0, 0, 0);
	if (rc < 0)
		return rc;
	c->step = STEP_PRIVATE;
	return sys_call(SYS_mount, RAW_PTR(NULL), RAW_PTR("/"), RAW_PTR(NULL), MS_REC | MS_PRIVATE,
	    RAW_PTR(NULL));
}

SYS_BARE static long child_become_root(struct child *c)
{
	long rc;

	c->step = STEP_IDS;
	rc = sys_call(SYS_setresgid, 0, 0, 0, 0, 0);
	/* With one mapped id the kernel does not let groups go. */
	if (rc == 0 && (c->flags & CHILD_PRIVILEGED))
		rc = sys_call(SYS_setgroups, 0, RAW_PTR(NULL), 0, 0, 0);
	if (rc == 0)
		rc = sys_call(SYS_setresuid, 0, 0, 0, 0, 0);
	/* New ids have cleared it. */
	return rc < 0 ? rc : child_die_with_worker(c);
}

/* What sbx-guest expects: its stream at 0 and 1, /dev/null at 2, its helper at 3; the rest closes
 * at exec. */
SYS_BARE static long child_arrange_fds(struct child *c)
{
	long null;
	long rc;

	c->step = STEP_DESCRIPTORS;
	null = sys_call(SYS_openat, AT_FDCWD, RAW_PTR("/dev/null"), O_RDWR | O_CLOEXEC, 0, 0);
	rc = null;
	if (rc >= 0)
		rc = sys_call(SYS_dup3, null, 2, 0, 0, 0);
	for (int fd = 0; rc >= 0 && fd < 2; fd++)
		rc = sys_call(SYS_dup3, c->stream, fd, 0, 0, 0);
	if (rc >= 0 && c->helper >= 0)
		rc = sys_call(SYS_dup3, c->helper, 3, 0, 0, 0);
	if (rc >= 0)
		rc = sys_call(SYS_close_range, c->helper >= 0 ? 4 : 3, ~0U, CLOSE_ON_EXEC, 0, 0);
	return rc < 0 ? rc : 0;
}

SYS_BARE static long child_drop_caps(struct child *c)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2] = {
	    {CHILD_CAPS, CHILD_CAPS, 0},
	    {0, 0, 0},
	};
	long rc;

	c->step = STEP_CAPABILITIES;
	for (int cap = 0; cap < 64; cap++) {
		if (cap < 32 && (CHILD_CAPS & (1U << cap)))
			continue;
		rc = child_prctl(PR_CAPBSET_DROP, cap, 0);
		if (rc == -EINVAL)
			break; /* past the kernel's last */
		if (rc < 0)
			return rc;
	}
	rc = child_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
	if (rc == 0)
		rc = sys_call(SYS_capset, RAW_PTR(&head), RAW_PTR(caps), 0, 0, 0);
	if (rc == 0)
		rc = child_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	return rc;
}

SYS_BARE static long child_load_filter(struct child *c)
{
	struct sock_fprog prog = {
	    .len = (unsigned short)c->prep->filter_len,
	    .filter = (struct sock_filter *)(uintptr_t)c->prep->filter,
	};

	c->step = STEP_SECCOMP;
	return sys_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, RAW_PTR(&prog), 0, 0);
}

SYS_BARE static long child_exec(struct child *c)
{
	char *const argv[] = {(char *)(uintptr_t) "sbx-guest", NULL};
	char *const envp[] = {NULL};
	unsigned char none[KERNEL_SIGSET] = {0};

	c->step = STEP_EXEC;
	if (c->flags & CHILD_TRIAL)
		return 0;
	(void)sys_call(SYS_rt_sigprocmask, SIG_SETMASK, RAW_PTR(none), 0, KERNEL_SIGSET, 0);
	return sys_call(
	    SYS_execveat, c->guest, RAW_PTR(""), RAW_PTR(argv), RAW_PTR(envp), AT_EMPTY_PATH);
}

SYS_BARE static long child_run(struct child *c)
{
	long rc = child_begin(c);

	if (rc == 0)
		rc = child_wait_go(c);
	if (rc == 0)
		rc = child_become_root(c);
	(void)sys_call(SYS_umask, 0, 0, 0, 0, 0);
	if (rc == 0)
		rc = child_build_root(c);
	(void)sys_call(SYS_umask, 022, 0, 0, 0, 0);
	if (rc == 0)
		rc = child_arrange_fds(c);
	if (rc == 0)
		rc = child_wait_go(c);
	if (rc < 0)
		return rc;
	c->step = STEP_CGROUP;
	rc = sys_call(SYS_unshare, NEWCGROUP, 0, 0, 0, 0);
	if (rc == 0)
		rc = child_drop_caps(c);
	if (rc == 0)
		rc = child_load_filter(c);
	if (rc == 0)
		rc = child_exec(c);
	return rc;
}

SYS_BARE long child_main(void *arg)
{
	struct child *c = arg;
	long rc = child_run(c);

	c->error = (int32_t)-rc;
	return rc < 0;
}
