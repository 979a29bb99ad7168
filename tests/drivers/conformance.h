/*
 * conformance: the groups of the suite. Each runs over the current fixture and returns the number
 * of failed tests.
 */
#ifndef SBXD_TESTS_DRIVERS_CONFORMANCE_H
#define SBXD_TESTS_DRIVERS_CONFORMANCE_H

int conformance_lifecycle(void);
int conformance_crash(void);
int conformance_takeover(void);
int conformance_outlive(void);
int conformance_isolation(void);
int conformance_limits(void);
int conformance_image(void);

#endif
