/*
 * opens: what QEMU gets when it opens a path for writing.
 *
 * It opens nothing for writing itself: each such call is stopped by the kernel and told to us
 * (seccomp user notification), and we hand over a descriptor, or refuse. So a clone maps its
 * template's memory through a descriptor that it can only read, although QEMU asks for more; the
 * accelerator needs no path and no group; and once it runs nobody answers any more: then it opens
 * nothing for writing at all.
 */
#ifndef SBXD_DRIVERS_QEMU_OPENS_H
#define SBXD_DRIVERS_QEMU_OPENS_H

/* Loads the filter into this process. The listener's descriptor (caller's) or -errno. */
int opens_listen(void);

/* Answers one call: `memory` for MACHINE_MEMORY, /dev/kvm for itself, else EACCES. 0 or -errno. */
int opens_answer(int listener, int memory);

#endif
