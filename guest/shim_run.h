/* shim_run: what runs in a shim process, on the shim's own stack. sbx-guest. */
#ifndef SBXD_GUEST_SHIM_RUN_H
#define SBXD_GUEST_SHIM_RUN_H

/* The life of a shim; arg is its struct shim. Returns only if the guest is gone. */
int shim_run(void *arg);

#endif
