/*
 * faults: arming the fault points of drivers. A process reads what is armed only once, so all of
 * them are named at the start, each with a file that says whether it acts.
 */
#ifndef SBXD_TESTS_DRIVERS_FAULTS_H
#define SBXD_TESTS_DRIVERS_FAULTS_H

/* Where any driver may be cut; each ends with NULL. */
extern const char *const faults_deadly[];    /* start() and kill(): the process is killed there */
extern const char *const faults_failing[];   /* start() fails there */
extern const char *const faults_cleaning[];  /* list(), adopt(), cleanup(): as faults_deadly */
extern const char *const faults_finishing[]; /* finish(): as faults_deadly */

/* probe() and prepare() for the first time: as faults_deadly, of one driver. NULL at the end. */
const char *const *faults_preparing(const char *driver);

/* Names every point of every driver in the environment. Before anything else; 0 or -errno. */
int faults_set_up(void);
void faults_tear_down(void);

/* The next process to pass the point, ours or a forked one, is killed there, or fails. */
void faults_arm_kill(const char *driver, const char *step);
void faults_arm_fail(const char *driver, const char *step);

#endif
