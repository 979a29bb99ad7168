/*
 * filter: the system calls that a box may not make.
 *
 * Built once, in the janitor, by libseccomp; a start only loads the finished program.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_FILTER_H
#define SBXD_DRIVERS_NAMESPACE_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* Writes the program for this machine into out[max], its length into *len. 0 or -errno. */
int filter_build(struct sock_filter *out, size_t max, uint32_t *len, struct err *err);

#endif
