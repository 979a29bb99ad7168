/*
 * tree: who descends from whom, from /proc. sbx-guest.
 */
#ifndef SBXD_GUEST_TREE_H
#define SBXD_GUEST_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_MAX 32768U /* processes looked at in one round */
#define TREE_DIR_BYTES 4096U

struct tree_entry {
	uint64_t start; /* clock ticks since boot: with the pid, the process's identity */
	int32_t pid;
	int32_t parent;
	int32_t root; /* the root pid it descends from, 0 none */
	char state;   /* as in /proc/PID/stat */
	bool inert;   /* stopped or dead: it cannot fork now */
};

struct tree {
	uint32_t count;
	int dir; /* /proc while it is read, -1 */
	uint32_t dir_at;
	uint32_t dir_len;
	_Alignas(8) uint8_t dir_bytes[TREE_DIR_BYTES];
	struct tree_entry entries[TREE_MAX];
};

/* Reads pid, parent, state, threads and start time from the text of /proc/PID/stat (n bytes). 0 or
 * -EBADMSG. */
int tree_parse_stat(const char *text, size_t n, struct tree_entry *e);

/* Begins to look at all processes. 0 or -errno: there is no /proc. */
int tree_begin(struct tree *t);

/* Looks at most at `slice` processes more. 1: there are more; 0: that was all; -errno. */
int tree_read(struct tree *t, unsigned int slice);

/* Adds an entry, kept in the order of pids. */
void tree_add(struct tree *t, const struct tree_entry *e);

/* Marks everything below the process `root` that is not marked yet. */
void tree_mark(struct tree *t, int32_t root);

/* Sends a signal to exactly the process that the entry was read from. 0, -ESRCH or -errno. */
int tree_signal(const struct tree *t, const struct tree_entry *e, int sig);

void tree_end(struct tree *t);

#endif
