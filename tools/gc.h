/*
 * gc: what instances of sbxd have left on this host, whose they are, and whether they are dead.
 * sbxctl gc and doctor.
 *
 * An instance is a uid and a name. It is dead when that is proven: nobody supervises its table, no
 * process with the pid and the start time of one of its workers is there, none of sbxd's maps the
 * table, and nobody listens at its socket. (Workers listen, too; but to connect to one would make
 * it believe that a new sbxd has come.)
 */
#ifndef SBXD_TOOLS_GC_H
#define SBXD_TOOLS_GC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/paths.h"
#include "shm/segment.h"

enum gc_verdict {
	GC_LIVE,    /* its sbxd runs */
	GC_WAITING, /* its sbxd is gone, workers of it live: the next sbxd takes them over */
	GC_DEAD,
	GC_UNKNOWN, /* it cannot be told: left alone */
	GC_VERDICTS,
};

/* gc_judge.c: "live", "waiting", "dead", "unknown". */
const char *gc_verdict_name(enum gc_verdict verdict);

struct gc_instance {
	uid_t uid;
	char name[PATHS_INSTANCE_LEN];
	struct paths paths;

	bool has_table;	  /* something of it is there: */
	bool has_runtime; /* the directory that sbxd made */
	bool has_cgroup;
	enum gc_verdict verdict;
	char why[256];
};

struct gc_list {
	struct gc_instance *items; /* owned */
	size_t count;
};

struct gc_query {
	uid_t uid; /* whose; 0: everybody's */
	char *const *env;
	const char *instance;	 /* only that one; NULL: all */
	const char *runtime_dir; /* of that one; NULL: where it is by default */
	const char *state_dir;	 /* likewise */
};

/* Finds and judges all of them; only reads. *out is the caller's to gc_free(). 0 or -ENOMEM. */
int gc_find(const struct gc_query *q, struct gc_list *out);
void gc_free(struct gc_list *list);

/* ---- gc_judge.c ---- */

/* Fills in what of it is there, and the verdict. */
void gc_judge(struct gc_instance *i);

/* Of one whose table, ours to read, is as the verdict says: are there workers, or may there be?
 * Then i->verdict and i->why say so. */
bool gc_has_workers(struct gc_instance *i, enum segment_verdict table);

/* ---- gc_holders.c: processes ---- */

/*
 * A process of sbxd (itself, a worker) that has the instance's table mapped: its pid, 0: none. -1:
 * there are some of that uid whose maps are not for us to read.
 */
pid_t gc_holder_of(uid_t uid, const char *instance);

/*
 * Calls fn for each process that runs a program of sbxd's or of a backend (sbx-*, qemu-*) and has
 * the name of a box of that instance as an argument. (What runs in a box's cgroup goes with that.)
 */
typedef void gc_process_fn(void *ctx, pid_t pid, uint64_t start, const char *name);
void gc_named_processes(const struct gc_instance *i, gc_process_fn *fn, void *ctx);

/* ---- gc_remove.c ---- */

/* Told of each thing that was removed (or would be); failed NULL, or why it stays. */
typedef void gc_report_fn(void *ctx, const char *kind, const char *what, const char *failed);

/*
 * Removes what a dead instance left, or with `dry` only tells. It becomes the instance's supervisor
 * meanwhile, so that no sbxd can, and then looks for workers once more. Runs with the instance's
 * uid. 0; -EBUSY: it is not dead any more; or -errno with *err. What stays is told by fn.
 */
int gc_remove(struct gc_instance *i, bool dry, gc_report_fn *fn, void *ctx, struct err *err);

#endif
