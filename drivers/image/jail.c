/*
 * jail: runs a program of the host on bytes that nobody vouches for. `sbx-worker image`, which is
 * single-threaded: so a plain fork. The jail's first process is the first of a pid namespace, and
 * the kernel kills it when we die: nothing of it is left.
 */
#include "drivers/image/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/image/jail_root.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define JAIL_FAILED 125
#define NO_CORE 1 /* a limit of 1 byte also keeps a core_pattern pipe from being run */
#define LAST_CAP_MAX 64

/*
 * What unpacking as root takes: files of any owner, with any mode. Device nodes are made (an image
 * that has some could not be unpacked otherwise), but no mount of the jail lets one be opened, and
 * they are removed before the image gets its name.
 */
#define FILE_CAPS                                                                                 \
	((1U << CAP_CHOWN) | (1U << CAP_DAC_OVERRIDE) | (1U << CAP_FOWNER) | (1U << CAP_FSETID) | \
	    (1U << CAP_MKNOD) | (1U << CAP_SETFCAP))

/* How a host's proxies and certificates are told to programs. */
static const char *const passed_on[] = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
    "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int jail_find(const char *name, char *out, size_t size)
{
	static const char *const dirs[] = {"/usr/bin", "/usr/local/bin"};

	for (size_t i = 0; i < COUNT(dirs); i++) {
		if (snprintf(out, size, "%s/%s", dirs[i], name) < (int)size &&
		    access(out, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static void fail(const char *what)
{
	(void)dprintf(STDERR_FILENO, "the jail cannot %s: %s\n", what, strerror(errno));
	_exit(JAIL_FAILED);
}

static void die_with_parent(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		fail("bind its life to its parent's");
}

static void set_caps(unsigned int keep)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2] = {{keep, keep, 0}, {0, 0, 0}};

	for (int cap = 0; cap < LAST_CAP_MAX; cap++) {
		if (cap < 32 && (keep & (1U << cap)))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EINVAL) /* past the kernel's last */
			fail("drop capabilities");
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, caps) < 0)
		fail("drop capabilities");
}

/* The kernel's own calls: those of the C library tell other threads, of which there are none. */
static void become(uid_t uid)
{
	if (uid == 0) {
		set_caps(FILE_CAPS);
	} else {
		if (syscall(SYS_setgroups, 0, NULL) < 0 ||
		    syscall(SYS_setresgid, uid, uid, uid) < 0)
			fail("let its groups go");
		for (int cap = 0; cap < LAST_CAP_MAX; cap++)
			(void)prctl(PR_CAPBSET_DROP, cap); /* what is left does it no good */
		if (syscall(SYS_setresuid, uid, uid, uid) < 0)
			fail("become another user");
	}
	die_with_parent(); /* another identity has cleared it */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("give up new privileges");
}

/* An ordinary user is root of a user namespace, which has this one user. */
static void map_self(uid_t uid, gid_t gid)
{
	char map[32];
	int rc = fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");

	(void)snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (rc == 0)
		rc = fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (rc == 0)
		rc = fd_write_file_at(AT_FDCWD, "/proc/self/gid_map", map);
	if (rc < 0) {
		errno = -rc;
		fail("write its id maps");
	}
}

static void arrange_fds(const struct jail_spec *spec)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(spec->out, STDOUT_FILENO) < 0)
		fail("arrange its descriptors");
	/* Nothing of ours shows it a way out of its root. */
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0)
		fail("close what is not its own");
}

static void run_program(const struct jail_spec *spec)
{
	char text[COUNT(passed_on)][512];
	const char *env[COUNT(passed_on) + 6] = {"PATH=/usr/bin:/bin", "HOME=/work", "TMPDIR=/work",
	    "XDG_RUNTIME_DIR=/work", "LANG=C.UTF-8"};
	size_t n = 5;

	for (size_t i = 0; i < COUNT(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (value && snprintf(text[i], sizeof(text[i]), "%s=%s", passed_on[i], value) <
				 (int)sizeof(text[i]))
			env[n++] = text[i];
	}
	env[n] = NULL;
	(void)execve(
	    spec->argv[0], (char *const *)(uintptr_t)spec->argv, (char *const *)(uintptr_t)env);
	fail("run its program");
}

static _Noreturn void child(const struct jail_spec *spec, uid_t uid, gid_t gid)
{
	const struct rlimit core = {NO_CORE, NO_CORE};
	const char *step;
	int rc;

	if (dup2(spec->err, STDERR_FILENO) < 0)
		_exit(JAIL_FAILED);
	die_with_parent();
	(void)setrlimit(RLIMIT_CORE, &core); /* lowering a limit is always allowed */
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	if (uid != 0)
		map_self(uid, gid);
	arrange_fds(spec);
	rc = jail_root_enter(spec, &step);
	if (rc < 0) {
		errno = -rc;
		fail(step);
	}
	/* From here on nothing is opened but what the jail shows. */
	become(uid == 0 ? spec->uid : 0);
	if (!spec->argv)
		_exit(spec->fn(spec->ctx));
	run_program(spec);
	_exit(JAIL_FAILED);
}

int jail_start(const struct jail_spec *spec, struct jail *out, struct err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int pidfd = -1;
	struct clone_args args = {
	    .flags = CLONE_PIDFD | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
		     (spec->network ? 0 : CLONE_NEWNET) | (uid != 0 ? CLONE_NEWUSER : 0),
	    .pidfd = (uint64_t)(uintptr_t)&pidfd,
	    .exit_signal = SIGCHLD,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		child(spec, uid, gid);
	if (pid < 0)
		return err_sys(
		    err, errno, "make a jail for %s", spec->argv ? spec->argv[0] : "files");
	*out = (struct jail){.pid = (pid_t)pid, .pidfd = pidfd};
	return 0;
}

int jail_end(struct jail *j)
{
	siginfo_t info = {0};
	int status;

	(void)proc_signal(j->pidfd, SIGKILL); /* with it goes its pid namespace */
	while (waitid(P_PIDFD, (id_t)j->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
					    : W_EXITCODE(0, info.si_status);
	fd_close(&j->pidfd);
	return status;
}
