/*
 * driver: the contract of a backend. A driver starts, stops, kills, lists, adopts and cleans up
 * boxes; everything that happens inside a box goes through sbx-guest over the byte stream that
 * start() returns.
 *
 * Drivers run in the worker (start .. stats) and in the janitor (probe .. finish), never in sbxd.
 * All functions may block, but not past their deadline. A new driver is one file or folder that
 * ends in a `const struct driver`, and one row in drivers/registry.c.
 *
 * Boxes are named sbxd-<instance>-<slot>-<generation in hex>. Whatever a driver keeps on the host
 * for a box, it finds by that name: after a crash the name is all that is left. A name of another
 * instance, even if its name begins with ours, is refused with -EINVAL.
 *
 * When a worker dies its box dies too, by itself and soon: the namespace driver has the kernel kill
 * the box's first process (parent-death signal), and with it all others. So a box is alive only
 * together with its worker, and a new supervisor takes over both or none; cleanup() of a box whose
 * worker is gone finds at most what is already ending. A driver with outlives() has boxes for which
 * that does not hold: another worker may take them over.
 *
 * Two janitors of one runtime directory take turns. Each call of one may be cut off by SIGKILL at
 * any point, and is made again then.
 */
#ifndef SBXD_DRIVERS_DRIVER_H
#define SBXD_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"

/*
 * Settings for drivers, as the configuration has them: "boxlite.url=...\0qemu.accel=...\0", those
 * that are not empty. Some are secrets: they go into no log line, no error and no file.
 */
struct driver_options {
	const char *data; /* the last byte is a NUL; NULL when len is 0 */
	size_t len;
};

/* What is the same for all boxes of one instance. Pointers are the caller's and outlive the call.
 */
struct driver_site {
	const char *instance;	 /* names are sbxd-<instance>-... */
	const char *state_dir;	 /* may hold caches that outlive the instance */
	const char *runtime_dir; /* dies with the host */
	uint32_t uid_base; /* host uids for boxes: box n has uid_base + n * DRIVER_UIDS ...; 0: none
			      (not root) */
	int prepared;	   /* start(), prepare(): the memfd of what is prepared for the image */
	const char *root;  /* prepare() of a driver that is `rooted`: the directory that holds the
			      image's root; NULL for `host` */
	struct driver_options options; /* janitor only: start() finds in prepared what it needs */
	void (*busy)(void *ctx); /* janitor, may be NULL: to be called every few seconds by what
				    takes long and gets on, as prepare() with an image to fetch */
	void *busy_ctx;
};

/* probe() and prepare() answer or call busy() in this time. Whoever has ordered it waits longer. */
#define DRIVER_ANSWER_NS (100ULL * 1000000000ULL)

#define DRIVER_UIDS 65536U	 /* host uids per slot */
#define DRIVER_BOX_UIDS 65535U	 /* of these are mapped into the box: 0 .. 65534 */
#define DRIVER_WORKER_UID 65535U /* uid_base + slot * DRIVER_UIDS + this is the worker's own */

/* What a host can do, as probe() found. */
struct driver_facts {
	char isolation[16];  /* namespace, microvm-kvm, microvm-tcg */
	char warning[256];   /* limits that cannot be enforced here, and why; empty when all can */
	bool only_if_asked;  /* it works, but not so well that `driver: auto` should take it, */
	char why_asked[200]; /* and why; may be empty */
};

struct driver_spec {
	const char *name; /* box name */
	const char *image;
	uint32_t slot;
	uint32_t memory_mib;
	uint32_t cpus_milli; /* 0: no limit */
	uint32_t disk_mib;
	uint32_t pids_max;
	int guest;  /* the sbx-guest binary, open for reading */
	int helper; /* the sbx-files binary, which sbx-guest gets as descriptor 3; -1: none */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	/*
	 * The box is there already, and its worker has died: it is taken over and never made. What
	 * the dead worker left on the host is ended, what it had running in the box too; files
	 * stay. -ENOENT: there is no such box any more, or it does not run. Only for a driver with
	 * outlives().
	 */
	bool take_over;
	/*
	 * Called once, as soon as the box's first process exists and before it may do anything: so
	 * that a worker that dies right after it leaves a trace. box_start as proc_start_time().
	 */
	void (*born)(void *ctx, pid_t box_pid, uint64_t box_start);
	void *born_ctx;
	/* May be NULL: how far it is; see driver_progress(). */
	void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total);
	void *progress_ctx;
};

struct driver_box; /* a driver's own handle */

struct driver_stats {
	uint64_t cpu_ns;
	uint64_t memory_bytes;
};

/* A box that list() found. */
typedef int driver_list_fn(void *ctx, const char *name);

struct driver_templates; /* see drivers/template.h */

struct driver {
	const char *name;

	/*
	 * Janitor. Can an image of that name be one of this driver's? By its form alone: for
	 * `driver: auto`, which takes the first driver that says yes, and then can.
	 */
	bool (*takes)(const char *image);

	/*
	 * It makes boxes of root directories, and knows nothing of images: whoever calls prepare()
	 * has found the one of the image (drivers/image/root.h), and keeps it as long as there may
	 * be boxes of it. A driver that is not pulls images itself.
	 */
	bool rooted;

	/* Janitor. Can this host run it? 0 with *facts filled, or -errno with what is missing and
	 * how to mend it. */
	int (*probe)(const struct driver_site *site, struct driver_facts *facts, struct err *err);

	/*
	 * Janitor, for each image and before this supervisor's first start() of it: builds what the
	 * boxes of that image share (filters, directories, cgroup parents), or takes what an
	 * earlier supervisor of the instance built if it would be the same today, and writes what
	 * start() needs of it into site->prepared. Live boxes keep what they were made of. 0 or
	 * -errno.
	 */
	int (*prepare)(const struct driver_site *site, const char *image, struct err *err);

	/* Janitor. Calls fn for each box of this instance that has left a trace on the host. 0,
	 * fn's result, or -errno. Asked also of a driver that is not in use: an earlier supervisor
	 * may have used it. One that has left nothing answers at once, as in adopt() and finish().
	 */
	int (*list)(const struct driver_site *site, driver_list_fn *fn, void *ctx);

	/*
	 * Janitor, when a new supervisor takes over live boxes, for each that is to live on: proves
	 * that the box `name` is there, whole: its first process lives, and what it needs on the
	 * host exists. Changes nothing. 0; -ESRCH when nothing of it is there; -EUCLEAN when
	 * something is, but no live box; or -errno. *err says what is missing.
	 */
	int (*adopt)(const struct driver_site *site, const char *name, struct err *err);

	/*
	 * Janitor. Makes sure that no process of the box `name` is left, then removes all it left
	 * behind. pid and start (0 when not known) name its first process. Idempotent: nothing
	 * there is success, also when another process does the same. 0 or -errno.
	 */
	int (*cleanup)(const struct driver_site *site, const char *name, pid_t pid, uint64_t start,
	    struct err *err);

	/*
	 * `sbx-worker image`, may be NULL: of what the driver keeps of images in the state
	 * directory, what no box uses goes, the longest unused first, until no more than `most`
	 * bytes are left; and what those have left who died while they made it. *left: bytes. 0 or
	 * -errno.
	 */
	int (*trim)(const struct driver_site *site, uint64_t most, uint64_t *left, struct err *err);

	/* `sbx-worker image`; NULL: it makes no templates. */
	const struct driver_templates *templates;

	/* Janitor, last: removes what prepare() made. Idempotent. 0 or -errno. */
	int (*finish)(const struct driver_site *site, struct err *err);

	/*
	 * Worker. Starts a box; *stream is the byte stream to its sbx-guest (caller's,
	 * non-blocking): a connected stream socket (socketpair, Unix, vsock), as bulk data is
	 * moved to and from it by splice(2). On failure nothing is left. 0; -EOWNERDEAD: somebody
	 * has killed it meanwhile, and another may well start; -ESTALE: what prepare() made is
	 * gone, and is to be made anew first; or -errno.
	 */
	int (*start)(const struct driver_site *site, const struct driver_spec *spec,
	    struct driver_box **box, int *stream, struct err *err);

	/* Worker: a descriptor that polls readable when the box's first process is gone; the
	 * driver's. */
	int (*watch_fd)(const struct driver_box *box);

	/*
	 * Worker, after start() and before the first guest byte is read. The worker then runs as
	 * its own uid without any privilege: what kill() and stats() need must be open by then. 0
	 * or -errno. May be NULL.
	 */
	int (*unprivileged)(struct driver_box *box, struct err *err);

	/*
	 * Worker, may be NULL: how this box is kept apart and served, where that is not what
	 * probe() has found for all; NULL where it is. At most 15 bytes, constant.
	 */
	const char *(*isolation)(const struct driver_box *box);

	/*
	 * Worker, may be NULL, when the box has died: what the driver knows that it died of; NULL
	 * when that is nothing. Never waits; the text is the handle's.
	 */
	const char *(*why)(struct driver_box *box);

	/* Worker, may be NULL: does this box live on when its worker dies, so that start() in
	 * another can take it over? */
	bool (*outlives)(const struct driver_box *box);

	/* Worker: ends every process of the box at once and waits until they are gone, at most to
	 * deadline_ns. 0; -EOWNERDEAD: what drove it has died, the box cannot be reached, and it
	 * may live on as outlives() has said; or -errno. */
	int (*kill)(struct driver_box *box, uint64_t deadline_ns);

	/* Worker, may be NULL: stop and continue a warm box. 0 or -errno. */
	int (*pause)(struct driver_box *box);
	int (*resume)(struct driver_box *box);

	/* Worker: what the box uses. Unknown numbers stay 0. 0 or -errno. */
	int (*stats)(const struct driver_box *box, struct driver_stats *out);

	/* Worker: frees the handle and its descriptors; ends nothing. */
	void (*free)(struct driver_box *box);
};

/* ---- driver_site.c: what drivers share ---- */

/* The value of an option, e.g. "boxlite.url"; NULL when it is not given. */
const char *driver_option(const struct driver_options *o, const char *key);

/*
 * For prepare(): makes site->prepared hold the options whose keys begin with `section`
 * ("boxlite."), and behind them `more` (as struct driver_options, for what the driver found out;
 * may be empty). 0 or -errno with *err.
 */
int driver_options_save(const struct driver_site *site, const char *section,
    const struct driver_options *more, struct err *err);

/* For start(): reads them back; *out is the caller's to driver_options_free(). 0 or -errno. */
int driver_options_load(int prepared, struct driver_options *out, struct err *err);

/* Wipes and frees what driver_options_load() gave. */
void driver_options_free(struct driver_options *o);

/* Tells how far a start is: a word, and bytes (0 of 0: not known). */
void driver_progress(
    const struct driver_spec *spec, const char *stage, uint64_t done, uint64_t total);

#define DRIVER_NAME_LEN 64 /* of a box name, with its NUL */

/* True for a name that boxes of this instance have: sbxd-<instance>-<slot>-<generation in hex>. */
bool driver_owns_name(const struct driver_site *site, const char *name);

/* ---- registry.c ---- */

/* The driver of that name, or NULL. */
const struct driver *driver_find(const char *name);

/* The n-th driver in order of preference, or NULL past the last. */
const struct driver *driver_at(unsigned int n);

/* trim() of all that have one, together. 0, or the first failure. */
int driver_trim_all(const struct driver_site *site, uint64_t most, uint64_t *left, struct err *err);

#endif
