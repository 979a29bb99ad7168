/*
 * vm: sbx-guest as the first program of a virtual machine. There it has everything to do itself:
 * modules, the root, virtual file systems; and to make a box of its own of a machine that is the
 * copy of another.
 */
#ifndef SBXD_GUEST_VM_H
#define SBXD_GUEST_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest;

/* True when the kernel has started us as a machine's init: it was told to say so. */
bool vm_is_machine(void);

/*
 * From the initial file system to a box: afterwards descriptors 0 and 1 are the stream, 3 is
 * sbx-files if there is one, "/" is the box's root. 0, or -1: the kernel's log says why.
 */
int vm_boot(struct guest *g);

/* A guest's wake(). */
int vm_wake(struct guest *g, const uint8_t *payload, size_t n);

#endif
