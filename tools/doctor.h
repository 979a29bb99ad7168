/*
 * doctor: the checks of sbxctl doctor. A check is one function below and one row in cli_doctor.c.
 */
#ifndef SBXD_TOOLS_DOCTOR_H
#define SBXD_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "tools/cli.h"

enum doctor_verdict {
	DOCTOR_FINE,
	DOCTOR_NOTE,  /* works, but less than it could */
	DOCTOR_WRONG, /* must be mended */
	DOCTOR_VERDICTS,
};

struct doctor {
	const struct cli *cli;
	json_t *findings;  /* owned */
	const char *check; /* name of the one that runs */
	bool wrong;
	/* As doctor_config() found it, which comes before the drivers. */
	char uid_base[32];
	char driver[16];
	char image[256];
	json_t *options; /* owned: "qemu.accel=tcg" */
	json_t *drivers; /* owned, NULL none: what sbx-worker has said of each */
};

/* Notes what a check found; fix NULL when there is nothing to do. */
void doctor_say(struct doctor *d, enum doctor_verdict verdict, const char *fix, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));

/* doctor_host.c: can this host run boxes? */
void doctor_namespaces(struct doctor *d);
void doctor_overlay(struct doctor *d);
void doctor_seccomp(struct doctor *d);
void doctor_shm_space(struct doctor *d);

/* doctor_kernel.c: what does the kernel allow? */
void doctor_namespace_counts(struct doctor *d);
void doctor_landlock(struct doctor *d);
void doctor_memfd(struct doctor *d);
void doctor_pids(struct doctor *d);
void doctor_files(struct doctor *d);

/* doctor_access.c: who may use what there is? */
void doctor_access(struct doctor *d);

/* doctor_config.c: what does sbxd say? */
void doctor_config(struct doctor *d);

/* What a program has written, and the first line of what it complained about; the buf's. */
char *doctor_text(struct buf *b);
const char *doctor_complaint(struct buf *errors);

/* doctor_drivers.c: what does sbx-worker say? */
void doctor_drivers(struct doctor *d);

/* Of what a driver says, what would mend it; returns how much of it stands before that. */
size_t doctor_split_fix(const char *said, char *fix, size_t size);

/* doctor_choice.c: which driver does `driver: auto` take, and why none before it? */
void doctor_choice(struct doctor *d);

/* doctor_cgroup.c */
void doctor_cgroups(struct doctor *d);

/* doctor_images.c: can images be pulled? */
void doctor_images(struct doctor *d);

/* doctor_left.c: what did dead instances leave? */
void doctor_left(struct doctor *d);

#endif
