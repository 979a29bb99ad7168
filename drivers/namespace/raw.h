/*
 * raw: system calls without the C library, for the cloned child only.
 *
 * The child shares the worker's memory until it execs, and with it the C library's errno, locks and
 * caches: it must not touch them. These return the kernel's value: >= 0, or -errno.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_RAW_H
#define SBXD_DRIVERS_NAMESPACE_RAW_H

#include <stdint.h>
#include <sys/syscall.h>

/* The sanitizers' runtime is part of the C library in this sense. */
#define RAW_CHILD __attribute__((no_sanitize("address", "undefined"), no_sanitize("thread")))

#define RAW_PTR(p) ((long)(uintptr_t)(p))

#if defined(__x86_64__)

RAW_CHILD static inline long raw_syscall(long n, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

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

RAW_CHILD static inline long raw_syscall(long n, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}

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
