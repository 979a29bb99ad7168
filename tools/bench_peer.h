/*
 * bench_peer: what a user would pick instead of sbxd, where it is installed: how it is called.
 */
#ifndef SBXD_TOOLS_BENCH_PEER_H
#define SBXD_TOOLS_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "tools/bench_private.h"

#define PEER_PATH 256

/* How a program is called. In the words "@program", "@bundle", "@rootfs", "@id" and "@held" stand
 * for what the site and the peer have. */
struct peer_tool {
	const char *name;
	const char *package;	 /* what to install */
	const char *const *run;	 /* a new sandbox with `true` in it, and its end */
	const char *const *hold; /* one that lives as long as its input; NULL: it has none */
	const char *const *exec; /* `true` in that one */
	bool root;		 /* it is measured as root only */
	bool cgroup2;		 /* it does not work where cgroup v1 is mounted, too */
};

/* The i-th, NULL past the last. */
const struct peer_tool *peer_tool_at(size_t i);

/* ---- bench_bundle.c: what sandboxes are made of ---- */

/* One for all tools. */
struct peer_site {
	struct bench_private files;
	char rootfs[PEER_PATH];
	char run_bundle[PEER_PATH];
	char hold_bundle[PEER_PATH];
	char log[PEER_PATH]; /* what the programs print */
	int cgroup2_ns;	     /* a mount namespace with cgroup v2 alone; -1: the host's is so */
};

/* An OCI bundle with the host's /usr, read-only. Ends the program on failure. */
void peer_site_open(struct peer_site *s);
void peer_site_close(struct peer_site *s);

/* ---- bench_peer.c: a tool that is there ---- */

struct peer {
	const struct peer_tool *tool;
	const struct peer_site *site;
	char program[PEER_PATH];
	char version[80];
	char id[32]; /* of sandboxes that end at once, one after the other */
	char held_id[40];
	pid_t holder; /* 0: none */
	int hold_fd;  /* its input */
};

/* Where a program is, in PATH or among those of administrators. */
bool bench_find_program(const char *name, char out[PEER_PATH]);

/* Finds the program and tries it. 0; -ENOENT when it is not installed; -errno with *err: what it
 * says. */
int peer_open(
    struct peer *p, const struct peer_tool *tool, const struct peer_site *site, struct err *err);

/* Its sandboxes are gone afterwards. */
void peer_close(struct peer *p);

/* Runs one of its command lines to its end. *ns: how long it took. 0 or -errno with *err. */
int peer_call(struct peer *p, const char *const *line, uint64_t *ns, struct err *err);

#endif
