/*
 * sys: what a shim and the child it starts may call (lib/sys.h), in short. sbx-guest. If we die
 * here only the shim or the child dies.
 */
#ifndef SBXD_GUEST_SYS_H
#define SBXD_GUEST_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/sys.h"

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
