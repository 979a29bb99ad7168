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

/* Says on the machine's console what could not be done, with errno. -1. */
int vm_fail(const char *what, const char *which);

/* Waits for the device at `path`: drivers look for theirs when it suits them. 0 or -1. */
int vm_await(const char *path);

/* vm_root.c: what the initial file system needs to go on, and then the box's root. 0 or -1. */
int vm_mount_early(void);
int vm_make_root(struct guest *g);

/* A guest's wake(). */
int vm_wake(struct guest *g, const uint8_t *payload, size_t n);

#endif
