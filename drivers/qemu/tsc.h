/*
 * tsc: the time stamp counter, which emulated machines see as it is.
 */
#ifndef SBXD_DRIVERS_QEMU_TSC_H
#define SBXD_DRIVERS_QEMU_TSC_H

#include <stdint.h>

/* Its rate in kHz, measured: takes 20 ms. 0: this processor has none. */
uint32_t tsc_khz(void);

#endif
