/*
 * patience: how long the suite waits for what is to happen soon. All of it is longer by the factor
 * in SBX_TEST_SLOW, which is for hosts that are emulated themselves (tests/qemu/check_kvm.sh).
 */
#ifndef SBXD_TESTS_DRIVERS_PATIENCE_H
#define SBXD_TESTS_DRIVERS_PATIENCE_H

#include <stdint.h>

/* That factor, for a test with a time of its own. */
int patience_factor(void);

/* For what takes milliseconds, or on an emulated processor seconds: a minute, in milliseconds. */
int patience_ms(void);

/* When a box should have started, on CLOCK_MONOTONIC: in 5 minutes, as it may have to make first
 * what its likes begin with. */
uint64_t patience_start(void);

/* For a process of the test that does all that a worker or a janitor does: 10 minutes, in
 * milliseconds. */
int patience_child_ms(void);

/* When something should be gone that was killed, on CLOCK_MONOTONIC: in 10 seconds. */
uint64_t patience_soon(void);

/* For all orphans to be gone: 30 seconds. */
unsigned int patience_orphans_s(void);

#endif
