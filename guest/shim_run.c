/*
 * shim_run: the shim process and the child that becomes the command. sbx-guest.
 *
 * Everything here runs in the guest's memory but outside its thread: only sys.h calls and the
 * struct shim may be touched. If a shim dies here, its command goes on as a child of the guest.
 */
#include "guest/shim_run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "guest/shim.h"
#include "guest/sys.h"

static SYS_BARE int child_fail(struct shim *s, enum shim_step step, long rc)
{
	s->step = (int32_t)step;
	s->err = (int32_t)-rc;
	return 127;
}

static SYS_BARE long child_stdio(const struct shim_plan *p)
{
	for (int i = 0; i < 3; i++) {
		long fd = p->stdio[i];
		long rc;

		if (fd < 0)
			fd = SYS4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
		if (fd < 0)
			return fd;
		rc = SYS3(SYS_dup3, fd, i, 0);
		if (rc < 0)
			return rc;
	}
	/* Other commands' pipes would be closed by execve; this does it before anything can hang.
	 */
	(void)SYS3(SYS_close_range, p->program < 0 ? 3 : p->program + 1, ~0U, 0);
	return 0;
}

static SYS_BARE long child_user(const struct shim_plan *p)
{
	long rc = SYS2(SYS_setgroups, p->group_count, p->groups);

	/* An unprivileged user namespace forbids setgroups; there it could only have dropped. */
	if (rc < 0 && !(rc == -EPERM && p->group_count == 0))
		return rc;
	rc = SYS3(SYS_setresgid, p->gid, p->gid, p->gid);
	if (rc < 0)
		return rc;
	return SYS3(SYS_setresuid, p->uid, p->uid, p->uid);
}

static SYS_BARE long child_cwd(const struct shim_plan *p)
{
	long rc = -ENOENT;

	for (int i = 0; i < SHIM_CWDS && p->cwd[i] != NULL; i++) {
		rc = SYS1(SYS_chdir, p->cwd[i]);
		if (rc == 0)
			return 0;
	}
	return rc;
}

/* Puts the next element of *search and the file together; false when there is none. */
static SYS_BARE bool child_candidate(const struct shim_plan *p, const char **search)
{
	const char *from = *search;
	char *to = p->candidate;

	if (from == NULL)
		return false;
	for (; *from != '\0' && *from != ':'; from++)
		*to++ = *from;
	*search = *from == ':' ? from + 1 : NULL;
	if (to != p->candidate)
		*to++ = '/';
	for (from = p->file; *from != '\0'; from++)
		*to++ = *from;
	*to = '\0';
	return true;
}

static SYS_BARE long child_exec(const struct shim_plan *p)
{
	const char *search = p->search;
	long worst = -ENOENT;

	if (p->program >= 0) /* as the box may have no /proc */
		return SYS5(SYS_execveat, p->program, "", p->argv, p->envp, AT_EMPTY_PATH);
	if (search == NULL)
		return SYS3(SYS_execve, p->file, p->argv, p->envp);
	while (child_candidate(p, &search)) {
		long rc;

		/* Most elements miss, and a missed execve is dear. */
		if (SYS3(SYS_faccessat, AT_FDCWD, p->candidate, 0) != 0)
			continue;
		rc = SYS3(SYS_execve, p->candidate, p->argv, p->envp);
		if (rc == -EACCES)
			worst = rc;
		else if (rc != -ENOENT && rc != -ENOTDIR)
			return rc;
	}
	return worst;
}

/* Runs on child_stack while the shim sleeps in clone(CLONE_VFORK). Returns only on failure. */
static SYS_BARE int child_run(void *arg)
{
	struct shim *s = arg;
	const struct shim_plan *p = &s->plan;
	uint64_t none = 0;
	long rc;

	(void)SYS0(SYS_setsid); /* a fresh process leads no group: cannot fail */
	rc = child_stdio(p);
	if (rc < 0)
		return child_fail(s, SHIM_STEP_STDIO, rc);
	if (p->tty) {
		rc = SYS3(SYS_ioctl, 0, TIOCSCTTY, 0);
		if (rc < 0)
			return child_fail(s, SHIM_STEP_TTY, rc);
	}
	if (p->set_user) {
		rc = child_user(p);
		if (rc < 0)
			return child_fail(s, SHIM_STEP_USER, rc);
	}
	rc = child_cwd(p);
	if (rc < 0)
		return child_fail(s, SHIM_STEP_CWD, rc);
	(void)SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	return child_fail(s, SHIM_STEP_EXEC, child_exec(p));
}

static SYS_BARE void shim_tell(struct shim *s, enum shim_phase phase)
{
	atomic_store_explicit(&s->phase, phase, memory_order_release);
	(void)SYS2(SYS_kill, s->guest, SIGCHLD); /* the guest outlives us */
}

/* Reaps the command, which is a zombie now; never while the guest is signalling it. */
static SYS_BARE void shim_reap_command(struct shim *s, int32_t child)
{
	uint32_t was = 0;

	while (!atomic_compare_exchange_strong(&s->lock, &was, 1)) {
		was = 0;
		(void)SYS0(SYS_sched_yield);
	}
	(void)SYS4(SYS_wait4, child, &s->status, __WALL, NULL);
	atomic_store(&s->phase, SHIM_EXITED);
	atomic_store(&s->lock, 0);
}

/* A helper is ours, whoever stopped it. It is not reaped, so there it is. */
static SYS_BARE void shim_continue(int32_t child)
{
	(void)SYS5(SYS_waitid, P_PID, child, NULL, WSTOPPED | WNOHANG | __WALL, NULL);
	(void)SYS2(SYS_kill, child, SIGCONT);
}

/* Reaps below us until the command is gone, then until everything is. */
static SYS_BARE void shim_watch(struct shim *s, int32_t child, bool helper)
{
	int what = WEXITED | WNOWAIT | __WALL | (helper ? WSTOPPED : 0);
	bool exited = false;

	for (;;) {
		siginfo_t info;
		long rc;

		info.si_pid = 0;
		rc = SYS5(SYS_waitid, P_ALL, 0, &info, what, NULL);
		if (rc == -ECHILD)
			break;
		if (rc < 0)
			continue;
		if (info.si_code == CLD_STOPPED) {
			shim_continue(info.si_pid);
			continue;
		}
		if (info.si_pid != child || exited) {
			(void)SYS4(SYS_wait4, info.si_pid, NULL, __WALL, NULL);
			continue;
		}
		shim_reap_command(s, child);
		exited = true;
		do {
			rc = SYS4(SYS_wait4, -1, NULL, __WALL | WNOHANG, NULL);
		} while (rc > 0);
		if (rc == 0)
			shim_tell(s, SHIM_EXITED);
	}
	shim_tell(s, SHIM_DONE);
}

static SYS_BARE void shim_flush(struct shim *s)
{
	long rc =
	    s->job == SHIM_JOB_FSYNC ? SYS1(SYS_fsync, s->flush_fd) : SYS1(SYS_syncfs, s->flush_fd);

	s->err = (int32_t)-rc;
	shim_tell(s, SHIM_DONE);
}

static SYS_BARE void shim_command(struct shim *s)
{
	bool helper;
	long child;

	child = sys_clone(CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD,
	    s->child_stack + sizeof(s->child_stack), child_run, s, &s->child);
	if (s->plan.set_user)
		(void)SYS5(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); /* setuid touched our mm */
	if (child < 0) {
		(void)child_fail(s, SHIM_STEP_FORK, child);
		shim_tell(s, SHIM_FAILED);
		return;
	}
	if (s->err != 0) {
		(void)SYS4(SYS_wait4, child, NULL, __WALL, NULL);
		shim_tell(s, SHIM_FAILED);
		return;
	}
	helper = s->plan.program >= 0;
	shim_tell(s, SHIM_STARTED); /* from now on the plan is the guest's */
	shim_watch(s, (int32_t)child, helper);
}

SYS_BARE int shim_run(void *arg)
{
	struct shim *s = arg;

	(void)SYS5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)SYS5(SYS_prctl, PR_SET_NAME, "sbx-shim", 0, 0, 0);
	if (s->dies_with_guest) {
		(void)SYS5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (SYS0(SYS_getppid) != s->guest)
			return 0; /* it has died already */
	}
	for (;;) {
		uint32_t phase = atomic_load_explicit(&s->phase, memory_order_acquire);

		if (phase == SHIM_GO && s->job == SHIM_JOB_COMMAND)
			shim_command(s);
		else if (phase == SHIM_GO)
			shim_flush(s);
		else
			(void)SYS4(SYS_futex, &s->phase, FUTEX_WAIT_PRIVATE, phase, NULL);
	}
}
