/*
 * machine: what a QEMU process is told, and the process itself.
 */
#ifndef SBXD_DRIVERS_QEMU_MACHINE_H
#define SBXD_DRIVERS_QEMU_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers/driver.h"
#include "drivers/namespace/cgroup.h"
#include "drivers/qemu/plan.h"

/* The descriptors of QEMU: those on its command line. */
enum machine_fd {
	MACHINE_FD_WORDS = 2, /* what it says, a memfd */
	MACHINE_FD_AGENT,     /* sbx-guest's stream */
	MACHINE_FD_QMP,	      /* its monitor */
	MACHINE_FD_DISK,      /* the image */
	MACHINE_FD_STATE,     /* a clone's devices */
	MACHINE_FD_CONSOLE,   /* of one that boots: what its kernel says */
	MACHINE_FDS,
};

/* The path at which it finds its memory: it is answered by us (opens.h), there is no such file. */
#define MACHINE_MEMORY "/run/memory"
/* Copied there for a machine that boots. */
#define MACHINE_KERNEL "/run/kernel"
#define MACHINE_INITRD "/run/initrd"

/* What kind of machine it is to be, and of what. Descriptors stay the caller's. */
struct machine_spec {
	const struct qemu_plan *plan;
	uint32_t memory_mib; /* all of it */
	uint32_t cpus;
	bool boots;  /* else it is a clone */
	bool shared; /* what it writes to its memory goes to `memory` */
	int memory;  /* a clone's is open for reading only */
	int disk;
	int state;  /* of a clone, else -1 */
	int kernel; /* of one that boots, as initrd */
	int initrd;
};

#define MACHINE_ARGS 64
#define MACHINE_SAID 4096

/* The command line. argv points into text; both are the caller's. 0 or -E2BIG. */
int machine_args(const struct machine_spec *m, char *text, size_t size, char *argv[MACHINE_ARGS]);

/* Of a spec, the memory that its machine needs: what the box is given, what it may write, and the
 * kernel's own. */
uint32_t machine_memory_mib(const struct driver_spec *spec);
uint32_t machine_cpus(const struct driver_spec *spec);

/* A QEMU process. All descriptors are owned, -1 none. */
struct machine {
	pid_t pid;
	int pidfd;
	int stream;   /* to sbx-guest; non-blocking */
	int qmp;      /* to its monitor; non-blocking */
	int words;    /* memfd: its standard error */
	int console;  /* of one that boots; non-blocking */
	int said;     /* with console, a memfd: the first MACHINE_SAID bytes that came there */
	int listener; /* its calls that opens.h answers; until it runs */
	int memory;   /* what it gets for MACHINE_MEMORY; the caller's */
	bool reaped;
};

/*
 * What becomes of the process before it may run: both may be NULL. `born` as in driver_spec;
 * `limit` moves it into its cgroups. 0 or -errno with *err.
 */
struct machine_hooks {
	int (*born)(void *ctx, pid_t pid, struct err *err);
	int (*limit)(void *ctx, pid_t pid, struct err *err);
	void *ctx;
};

/*
 * Starts QEMU in its own namespaces, as a user that nobody else is, with nothing open but what it
 * is given. base: the first host id of the box, 0: it has none of its own. On failure nothing is
 * left of it. 0 or -errno with *err.
 */
int machine_launch(const struct machine_spec *spec, uid_t base, const struct machine_hooks *hooks,
    uint64_t deadline_ns, struct machine *m, struct err *err);

/* What is left until then, for poll(2): milliseconds. */
int machine_wait_ms(uint64_t deadline_ns);

/* Kills and reaps it. 0, -ETIMEDOUT: it is not gone yet; or -errno. */
int machine_kill(struct machine *m, uint64_t deadline_ns);

/* Closes all descriptors. */
void machine_close(struct machine *m);

/* Adds to *err what QEMU or the machine's console has said last, if anything. */
void machine_explain(const struct machine *m, struct err *err);

/*
 * Waits until one of fd's events is there, answering QEMU's calls and emptying the console
 * meanwhile. 0, -ETIMEDOUT, -EPIPE: QEMU is gone, or -errno.
 */
int machine_wait(const struct machine *m, int fd, short events, uint64_t deadline_ns);

#endif
