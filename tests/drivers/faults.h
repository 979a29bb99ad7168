/*
 * faults: arming the fault points of drivers. A process reads what is armed only once, so all of
 * them are named at the start, each with a file that says whether it acts.
 */
#ifndef SBXD_TESTS_DRIVERS_FAULTS_H
#define SBXD_TESTS_DRIVERS_FAULTS_H

/* Where a driver may be cut; each list ends with NULL. */
struct fault_steps {
	const char *driver;
	const char *const *deadly;    /* start() and kill(): the process is killed there */
	const char *const *failing;   /* start() fails there */
	const char *const *preparing; /* probe() and prepare(): as deadly */
	const char *const *cleaning;  /* list(), adopt(), cleanup(): as deadly */
	const char *const *finishing; /* finish(): as deadly */
	const char *const *program;   /* start(): a program of the driver's own is killed there */
};

extern const struct fault_steps faults_namespace;
extern const struct fault_steps faults_boxlite;
extern const struct fault_steps faults_qemu;

/* Names every point of every driver in the environment. Before anything else; 0 or -errno. */
int faults_set_up(void);
void faults_tear_down(void);

/* The next process to pass the point, ours or a forked one, is killed there, or fails. */
void faults_arm_kill(const char *driver, const char *step);
void faults_arm_fail(const char *driver, const char *step);

/* None of them acts any more. */
void faults_disarm(void);

/* The driver's own program is killed there. */
void faults_arm_program(const char *driver, const char *step);

#endif
