/*
 * doctor: the checks of sbxctl doctor. A check is one function below and one row in cli_doctor.c.
 */
#ifndef SBXD_TOOLS_DOCTOR_H
#define SBXD_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/paths.h"
#include "tools/cli.h"

enum doctor_verdict {
	DOCTOR_FINE,
	DOCTOR_NOTE,  /* works, but less than it could */
	DOCTOR_WRONG, /* must be mended */
	DOCTOR_VERDICTS,
};

#define DOCTOR_LIVE_MAX 64

struct doctor {
	const struct cli *cli;
	json_t *findings;  /* owned */
	const char *check; /* name of the one that runs */
	bool wrong;
	/* Instances whose sbxd runs; filled by doctor_segments(), which comes before the other
	 * leftovers. */
	char live[DOCTOR_LIVE_MAX][PATHS_INSTANCE_LEN];
	size_t live_count;
};

/* Notes what a check found; fix NULL when there is nothing to do. */
void doctor_say(struct doctor *d, enum doctor_verdict verdict, const char *fix, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));

/* True when `name` (of a cgroup, a mount, ...) belongs to an instance that runs. */
bool doctor_is_live(const struct doctor *d, const char *name);

/* doctor_host.c: can this host run boxes? */
void doctor_namespaces(struct doctor *d);
void doctor_overlay(struct doctor *d);
void doctor_seccomp(struct doctor *d);
void doctor_shm_space(struct doctor *d);

/* doctor_cgroup.c */
void doctor_cgroups(struct doctor *d);
void doctor_left_cgroups(struct doctor *d);

/* doctor_left.c: what did dead instances leave? */
void doctor_segments(struct doctor *d);
void doctor_processes(struct doctor *d);

#endif
