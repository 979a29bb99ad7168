/*
 * confine_filter: the worker's system call filter. sbx-worker.
 *
 * Written by hand and not with libseccomp because every worker loads it: a search tree over ranges
 * is short, and the kernel's cost of loading grows with length times system calls.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "worker/confine.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH is this?"
#endif

/* A sanitizer has needs of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FILTER_OFF 1
#else
#define FILTER_OFF 0
#endif

/* mmap is not among them: it has a rule of its own. */
static const uint32_t allowed[] = {
    SYS_accept4,
    SYS_brk,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_close,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    SYS_exit,
    SYS_exit_group,
    SYS_fcntl,
    SYS_fstat,
    SYS_futex,
    SYS_getpid,
    SYS_getrandom,
    SYS_getsockopt,
    SYS_gettid,
    SYS_lseek,
    SYS_madvise,
#ifdef SYS_map_shadow_stack
    SYS_map_shadow_stack, /* makecontext(), where the C library was told to use them */
#endif
    SYS_mremap,
    SYS_munmap,
    SYS_nanosleep,
    SYS_pidfd_send_signal,
    SYS_pipe2,
#ifdef SYS_poll
    SYS_poll,
#endif
    SYS_ppoll,
    SYS_pread64,
    SYS_pwrite64,
    SYS_read,
    SYS_readv,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_restart_syscall,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sched_yield,
    SYS_sendmsg,
    SYS_sendto,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_splice,
    SYS_tgkill, /* abort(), to ourselves; others have other uids */
    SYS_wait4,
    SYS_waitid,
    SYS_write,
    SYS_writev,
#ifdef SBX_FAULTS
    SYS_kill,
    SYS_pause,
    SYS_unlink,
#endif
};

#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

struct range {
	uint32_t from;
	uint32_t to;
};

#define TREE_LEN(ranges) (3 * (ranges)-1) /* two for each leaf, one for each fork */
#define FILTER_HEAD 7U			  /* before the tree */
#define FILTER_MAX (FILTER_HEAD + TREE_LEN(ALLOWED) + 2)

_Static_assert(FILTER_MAX < UINT8_MAX, "a jump reaches from one end to the other");

struct filter {
	struct sock_filter code[FILTER_MAX];
	size_t deny; /* where the verdicts stand */
	size_t allow;
};

static uint8_t filter_jump(size_t at, size_t to)
{
	return (uint8_t)(to - at - 1);
}

static void filter_put_tree(struct filter *f, size_t at, const struct range *r, size_t n)
{
	if (n == 1) {
		f->code[at] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JGE | BPF_K, r->from, 0, filter_jump(at, f->deny));
		f->code[at + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, r->to,
		    filter_jump(at + 1, f->deny), filter_jump(at + 1, f->allow));
		return;
	}
	f->code[at] = (struct sock_filter)BPF_JUMP(
	    BPF_JMP | BPF_JGE | BPF_K, r[n / 2].from, (uint8_t)TREE_LEN(n / 2), 0);
	filter_put_tree(f, at + 1, r, n / 2);
	filter_put_tree(f, at + 1 + TREE_LEN(n / 2), r + n / 2, n - n / 2);
}

static int filter_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Neighbouring numbers make one range. Returns how many ranges there are. */
static size_t filter_ranges(struct range out[ALLOWED])
{
	uint32_t sorted[ALLOWED];
	size_t n = 0;

	for (size_t i = 0; i < ALLOWED; i++)
		sorted[i] = allowed[i];
	qsort(sorted, ALLOWED, sizeof(sorted[0]), filter_order);
	for (size_t i = 0; i < ALLOWED; i++) {
		if (n == 0 || sorted[i] > out[n - 1].to + 1)
			out[n++].from = sorted[i];
		out[n - 1].to = sorted[i];
	}
	return n;
}

int confine_load_filter(void)
{
	struct range ranges[ALLOWED];
	size_t n = filter_ranges(ranges);
	struct filter f = {
	    .deny = FILTER_HEAD + TREE_LEN(n),
	    .allow = FILTER_HEAD + TREE_LEN(n) + 1,
	};
	const struct sock_filter head[FILTER_HEAD] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 2),
	    /* Memory that is code is nothing we ever make. */
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, filter_jump(6, f.deny),
		filter_jump(6, f.allow)),
	};
	struct sock_fprog prog = {.len = (unsigned short)(f.allow + 1), .filter = f.code};

	if (FILTER_OFF)
		return 0;
	memcpy(f.code, head, sizeof(head));
	filter_put_tree(&f, FILTER_HEAD, ranges, n);
	f.code[f.deny] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	f.code[f.allow] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0)
		return -errno;
	return 0;
}
