/*
 * sys_clone: clone(2) onto another stack. sbx-guest; a failure is the caller's -errno.
 *
 * libc's clone() is not used because nothing of libc may run in the child. The child takes the
 * function and its argument from the top of its stack, so it shares no register with its parent.
 */
#include "guest/sys.h"

#if defined(__x86_64__)
__asm__(".text\n"
	".globl sys_clone\n"
	".type sys_clone, @function\n"
	"sys_clone:\n"
	"	endbr64\n"
	"	sub $16, %rsi\n"
	"	mov %rdx, 0(%rsi)\n"
	"	mov %rcx, 8(%rsi)\n"
	"	mov %r8, %rdx\n"
	"	xor %r10d, %r10d\n"
	"	xor %r8d, %r8d\n"
	"	mov $56, %eax\n" /* clone */
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jnz 1f\n"
	"	xor %ebp, %ebp\n"
	"	pop %rax\n"
	"	pop %rdi\n"
	"	call *%rax\n"
	"	mov %eax, %edi\n"
	"	mov $231, %eax\n" /* exit_group */
	"	syscall\n"
	"	hlt\n"
	"1:	ret\n"
	".size sys_clone, . - sys_clone\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl sys_clone\n"
	".type sys_clone, %function\n"
	"sys_clone:\n"
	"	hint #34\n"
	"	stp x2, x3, [x1, #-16]!\n"
	"	mov x2, x4\n"
	"	mov x3, xzr\n"
	"	mov x4, xzr\n"
	"	mov x8, #220\n" /* clone */
	"	svc #0\n"
	"	cbnz x0, 1f\n"
	"	mov x29, xzr\n"
	"	ldp x1, x0, [sp], #16\n"
	"	blr x1\n"
	"	mov x8, #94\n" /* exit_group */
	"	svc #0\n"
	"	brk #0\n"
	"1:	ret\n"
	".size sys_clone, . - sys_clone\n");
#endif
