/*
 * shim: the guest's side of shims: taking, starting, releasing. shim_run.c is what runs in them.
 * sbx-guest; if we die here PID 1 is dead and the kernel ends the box.
 */
#include "guest/shim.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "guest/shim_run.h"
#include "guest/sys.h"

static int shim_spawn(struct shim *s)
{
	pid_t self = getpid();
	long pid;

	s->guest = self;
	s->dies_with_guest = self != 1;
	s->dismissed = false;
	atomic_store(&s->phase, SHIM_EMPTY);
	atomic_store(&s->lock, 0);
	pid = sys_clone(CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, s->stack + sizeof(s->stack),
	    shim_run, s, NULL);
	if (pid < 0)
		return (int)pid;
	s->pid = (int32_t)pid;
	return 0;
}

static bool shim_is_idle(const struct shim *s)
{
	return s->pid != 0 && !s->taken && !s->dismissed;
}

struct shim *shim_take(struct shim_pool *p, int *err)
{
	struct shim *unused = NULL;
	int rc;

	for (unsigned int i = 0; i < p->used; i++) {
		struct shim *s = &p->slots[i];

		if (shim_is_idle(s)) {
			s->taken = true;
			p->idle--;
			return s;
		}
		if (s->pid == 0 && !s->taken && unused == NULL)
			unused = s;
	}
	if (unused == NULL && p->used < SHIM_SLOTS)
		unused = &p->slots[p->used++];
	if (unused == NULL) {
		*err = EAGAIN;
		return NULL;
	}
	rc = shim_spawn(unused);
	if (rc != 0) {
		*err = -rc;
		return NULL;
	}
	unused->taken = true;
	return unused;
}

void shim_prepare(struct shim_pool *p)
{
	int err;
	struct shim *s = shim_take(p, &err);

	if (s != NULL)
		shim_release(p, s);
}

static void shim_go(struct shim *s, enum shim_job job)
{
	s->job = (int32_t)job;
	s->err = 0;
	atomic_store_explicit(&s->phase, SHIM_GO, memory_order_release);
	(void)SYS3(SYS_futex, &s->phase, FUTEX_WAKE_PRIVATE, 1); /* nobody waits: it will look */
}

void shim_start(struct shim *s)
{
	atomic_store(&s->child, 0);
	s->status = -1; /* no wait status looks like this */
	shim_go(s, SHIM_JOB_COMMAND);
}

void shim_start_flush(struct shim *s, enum shim_job job, int fd)
{
	s->flush_fd = fd;
	shim_go(s, job);
}

enum shim_phase shim_phase(const struct shim *s)
{
	return (enum shim_phase)atomic_load_explicit(&s->phase, memory_order_acquire);
}

void shim_release(struct shim_pool *p, struct shim *s)
{
	enum shim_phase phase = shim_phase(s);

	s->taken = false;
	if (s->pid == 0)
		return;
	if (phase == SHIM_EMPTY || phase == SHIM_FAILED || phase == SHIM_DONE) {
		if (p->idle < SHIM_IDLE_MAX) {
			p->idle++;
			return;
		}
	}
	s->dismissed = true;
	(void)kill(s->pid, SIGKILL); /* ours and not reaped: it is there */
}

int shim_signal(struct shim *s, int sig)
{
	uint32_t was = 0;
	int32_t child;
	int rc = -ESRCH;

	/* The lock is only ever held by a shim that is just reaping the command. */
	if (!atomic_compare_exchange_strong(&s->lock, &was, 1))
		return -ESRCH;
	child = atomic_load(&s->child);
	if (shim_phase(s) == SHIM_STARTED && child > 0)
		rc = kill(-child, sig) == 0 ? 0 : -errno;
	atomic_store(&s->lock, 0);
	return rc;
}

bool shim_is(const struct shim_pool *p, pid_t pid)
{
	for (unsigned int i = 0; i < p->used; i++) {
		if (p->slots[i].pid == pid)
			return true;
	}
	return false;
}

bool shim_any_starting(const struct shim_pool *p)
{
	for (unsigned int i = 0; i < p->used; i++) {
		const struct shim *s = &p->slots[i];

		if (s->pid != 0 && s->taken && s->job == SHIM_JOB_COMMAND &&
		    shim_phase(s) == SHIM_GO)
			return true;
	}
	return false;
}

bool shim_reaped(struct shim_pool *p, pid_t pid)
{
	for (unsigned int i = 0; i < p->used; i++) {
		struct shim *s = &p->slots[i];

		if (s->pid != pid)
			continue;
		if (shim_is_idle(s))
			p->idle--;
		s->pid = 0;
		return true;
	}
	return false;
}
