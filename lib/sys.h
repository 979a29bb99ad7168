/*
 * sys: system calls that touch neither errno nor any other memory of the C library.
 *
 * For processes that run in another's address space (CLONE_VM) without being threads the library
 * knows of: they may use these calls, plain memory and nothing else. A call returns its result or
 * -errno.
 */
#ifndef SBXD_LIB_SYS_H
#define SBXD_LIB_SYS_H

#include <sys/syscall.h>

/* For code on such a process's stack: sanitizers and stack protectors know nothing of it. */
#define SYS_BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_stack_protector))

#if defined(__clang__)
#undef SYS_BARE
#define SYS_BARE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

#if defined(__x86_64__)
SYS_BARE static inline long sys_call(long nr, long a, long b, long c, long d, long e)
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
SYS_BARE static inline long sys_call(long nr, long a, long b, long c, long d, long e)
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

#endif
