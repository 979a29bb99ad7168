/*
 * raw: a child that shares the worker's memory until it execs, and with it the C library's errno,
 * locks and caches: it must not touch them, and uses lib/sys.h only.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_RAW_H
#define SBXD_DRIVERS_NAMESPACE_RAW_H

#include <stdint.h>

#include "lib/sys.h"

#define RAW_PTR(p) ((long)(uintptr_t)(p))

#if defined(__x86_64__)

/* clone3() on a stack of its own: the child runs fn(arg) and exits with its result. */
static inline long raw_clone3(void *args, uint64_t size, long (*fn)(void *), void *arg)
{
	register long (*r8)(void *) __asm__("r8") = fn;
	register void *r9 __asm__("r9") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r9, %%rdi\n\t"
			 "call *%%r8\n\t"
			 "mov %%rax, %%rdi\n\t"
			 "mov %[exit], %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n\t"
			 "1:"
			 : "=a"(ret)
			 : "a"((long)SYS_clone3), "D"(args), "S"(size), "r"(r8),
			 "r"(r9), [exit] "i"(SYS_exit_group)
			 : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

/* clone3() on a stack of its own: the child runs fn(arg) and exits with its result. */
static inline long raw_clone3(void *args, uint64_t size, long (*fn)(void *), void *arg)
{
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)(uintptr_t)args;
	register long x1 __asm__("x1") = (long)size;
	register long (*x9)(void *) __asm__("x9") = fn;
	register void *x10 __asm__("x10") = arg;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "mov x8, %[exit]\n\t"
			 "svc 0\n\t"
			 "brk 1\n\t"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x9), "r"(x10), [exit] "i"(SYS_exit_group)
			 : "memory");
	return x0;
}

#else
#error "the namespace driver knows x86_64 and aarch64"
#endif

#endif
