/*
 * fixture: one prepared driver and boxes of it, for the conformance suite.
 */
#ifndef SBXD_TESTS_DRIVERS_FIXTURE_H
#define SBXD_TESTS_DRIVERS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/driver.h"
#include "tests/drivers/agent_client.h"
#include "tests/drivers/host_state.h"
#include "tests/drivers/patience.h"
#include "tests/drivers/target.h"

struct fixture {
	const struct target *target;
	const struct driver *driver;
	struct driver_site site;
	struct driver_facts facts;
	struct host_state quiet; /* prepared, no box */
	int guest;
	int helper;
	const char *image; /* that its boxes are made of */
	char options[1024];
	char dir[64];
	char state[80]; /* what may outlive an instance */
	char instance[32];
};

/* What born() said, where a parent process can read it. */
struct fixture_born {
	volatile int calls;
	volatile pid_t pid;
	volatile uint64_t start;
};

struct fixture_box {
	struct driver_spec spec;
	struct driver_box *box;
	int stream;
	struct agent_client client;
	struct agent_result result;
	struct fixture_born *born; /* shared with forked processes */
	char name[64];
};

/* Probes and prepares; 0, or -errno of probe() with *err. The rest must work, else this exits. */
int fixture_open(struct fixture *f, const struct target *target, struct err *err);
void fixture_close(struct fixture *f);

/* A box description with sensible limits; the name is made from the slot. NULL-safe to free. */
struct fixture_box *fixture_box_new(struct fixture *f, uint32_t slot);
void fixture_box_free(struct fixture_box *b);

/* Starts it and waits for HELLO; asserts that both work. */
void fixture_box_start(struct fixture *f, struct fixture_box *b);

/* Kills it; asserts that it is dead, or was left by what drove it, whose end was somebody else's
 * doing: then cleanup() removes it, or has. */
void fixture_box_kill(struct fixture *f, struct fixture_box *b);

/* Kills, cleans up, and frees it; asserts that it works and leaves nothing. */
void fixture_box_end(struct fixture *f, struct fixture_box *b);

/* Runs a line of sh; asserts that it could be started and exits with `status`. Its output. */
const char *fixture_shell(struct fixture_box *b, const char *user, const char *line, int status);

/* cmocka: the box of a test that needs just one, as *state. */
int fixture_setup_box(void **state);
int fixture_teardown_box(void **state);

/* The fixture of the driver under test. */
struct fixture *fixture_current(void);

/* Forks; the child runs fn(f, b), and exits with its result. Its pid. */
typedef int fixture_worker_fn(struct fixture *f, struct fixture_box *b);
pid_t fixture_fork(struct fixture *f, struct fixture_box *b, fixture_worker_fn *fn);

/* Waits for that child; asserts that it ends. Its wait status. */
int fixture_wait(pid_t pid);

#endif
