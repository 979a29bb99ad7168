/*
 * sys: system calls that touch neither errno nor any other memory of libc. sbx-guest.
 *
 * A shim and the child it starts run in the guest's own address space (CLONE_VM) but are no
 * threads that libc knows of: they may use these calls, plain memory and nothing else. Every call
 * returns its result or -errno. If we die here only the shim or the child dies.
 */
#ifndef SBXD_GUEST_SYS_H
#define SBXD_GUEST_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* For code that runs on a shim's stack: sanitizers and stack protectors know nothing of it. */
#define SYS_BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_stack_protector))

#if defined(__clang__)
#undef SYS_BARE
#define SYS_BARE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

#if defined(__x86_64__)
static inline long sys_call(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys_call(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}
#else
#error "sys.h knows x86_64 and aarch64"
#endif

#define SYS0(nr) sys_call(nr, 0, 0, 0, 0, 0)
#define SYS1(nr, a) sys_call(nr, (long)(a), 0, 0, 0, 0)
#define SYS2(nr, a, b) sys_call(nr, (long)(a), (long)(b), 0, 0, 0)
#define SYS3(nr, a, b, c) sys_call(nr, (long)(a), (long)(b), (long)(c), 0, 0)
#define SYS4(nr, a, b, c, d) sys_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0)
#define SYS5(nr, a, b, c, d, e) sys_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

/*
 * clone(2) with its own stack: the child runs fn(arg) there and ends with its result as exit
 * status. Before either of them goes on, the kernel stores the child's pid at *pid (with
 * CLONE_PARENT_SETTID). Returns that pid or -errno.
 */
long sys_clone(unsigned long flags, void *stack_top, int (*fn)(void *), void *arg, void *pid);

#endif
