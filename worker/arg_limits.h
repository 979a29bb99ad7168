/* arg_limits: what the kernel gives to no program, said before it is tried. sbx-worker. */
#ifndef SBXD_WORKER_ARG_LIMITS_H
#define SBXD_WORKER_ARG_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* MAX_ARG_STRLEN of the kernel, without the NUL. How much all may be together depends on the box's
 * stack limit: the guest is told that by the kernel. */
#define ARG_STRING_MAX 131071U

/*
 * Looks for an argument or a variable in a payload of AGENT_EXEC that is longer than the kernel
 * takes. 0, or -E2BIG with *err naming it.
 */
int arg_limits_check(const uint8_t *payload, size_t n, struct err *err);

#endif
