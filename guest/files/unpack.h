/*
 * unpack: what the files of `sbx-files unpack` share. unpack.c takes records, one member after the
 * other; unpack_dest.c finds out where a member goes; unpack_file.c writes a file, or a link, and
 * gives it its name; unpack_dirs.c remembers what the directories that were made are to be in the
 * end.
 *
 * No member gets out of the destination: its path is opened below it by openat2(), which refuses
 * every symbolic link that leads out, whoever made it. A file is complete under a temporary name
 * before it replaces what was there. So the first error leaves the members before it whole, what
 * is in the place of the one at hand as it was, and the rest undone. If it is killed in between,
 * ".sbx-<hex>.tmp" may stay.
 */
#ifndef SBXD_GUEST_FILES_UNPACK_H
#define SBXD_GUEST_FILES_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/files/files.h"

#define UNPACK_NAME_MAX 256
#define UNPACK_TEMPORARY_MAX 32
#define UNPACK_DEVS 8 /* file systems that are remembered, to be flushed */

/* A name in a directory, be there something or not. */
struct unpack_spot {
	int dir; /* not owned */
	const char *name;
};

/* A file that is being written. */
struct unpack_file {
	int fd;				      /* -1: there is none */
	bool growing;			      /* there are pieces to come */
	int dir;			      /* not owned */
	char temporary[UNPACK_TEMPORARY_MAX]; /* its name in dir; "": none */
	uint64_t end;			      /* of the last piece */
};

enum unpack_target {
	UNPACK_UNKNOWN,	  /* no directory is there: the path may become one, or a file */
	UNPACK_HELD,	  /* the first member is a file, and has no name yet */
	UNPACK_DIRECTORY, /* dest is open */
};

struct unpack {
	const char *path; /* what was asked for */
	bool overwrite;
	bool directory; /* the path must be one */

	int status; /* exit status, once it failed */
	bool done;  /* the last record came */
	uint64_t members;

	int root; /* "/" of the box, O_PATH */
	int dest; /* O_PATH, or -1 */
	enum unpack_target target;

	/* what the path names while it is no directory */
	int spot_dir; /* O_PATH; -1: not looked for */
	char spot_name[UNPACK_NAME_MAX];

	/* the member at hand, and (UNPACK_HELD) the first one */
	struct entry_member member;
	char name[ENTRY_PATH_MAX + 1]; /* clean */
	char first[ENTRY_PATH_MAX + 1];
	struct unpack_file file;

	/* the directory of the last member */
	int parent; /* O_PATH; -1: none */
	char parent_path[ENTRY_PATH_MAX + 1];

	/* file systems that were written to */
	size_t dev_count;
	dev_t devs[UNPACK_DEVS];
	int dev_fds[UNPACK_DEVS];

	uint32_t temporaries;
	char random[15]; /* in the name of each */
};

/* Says why, unless that was done before. -1, so that it can be returned. */
int unpack_fail(struct unpack *u, enum agent_code code, const char *name, const char *why);

/* The same for an errno, met while unpacking `name`. */
int unpack_fail_errno(struct unpack *u, const char *name, int err);

/* ---- unpack_dest.c; all return 0, or -1 after saying why ---- */

/* Looks what is at u->path. */
int dest_find(struct unpack *u);

/* Finds the place of u->path, which is no directory: makes those above it, follows links at its
 * end. */
int dest_find_spot(struct unpack *u, struct unpack_spot *spot);

/* Makes u->path a directory. */
int dest_make(struct unpack *u);

/*
 * A name in the archive without "." and needless slashes, into out[ENTRY_PATH_MAX + 1]; "" is the
 * destination. Refuses what is absolute and what has "..". called: the member that it is of.
 */
int dest_clean(struct unpack *u, const char *path, const char *called, char *out);

/* Opens the directory that a clean name, not "", is in, and makes it if need be. */
int dest_open_spot(struct unpack *u, const char *name, struct unpack_spot *spot);

/* openat2() of a clean name below the destination. The descriptor, or -errno. */
int dest_open(struct unpack *u, const char *name, int flags);

/* Something new stands at a clean name: what was kept of a path through it does not count. */
void dest_changed(struct unpack *u, const char *name);

/* Flushes all that was written to. */
int dest_sync(struct unpack *u);

/* ---- unpack_file.c; as above ---- */

/* Begins the file u->member, which will stand at spot. */
int file_begin(struct unpack *u, const struct unpack_spot *spot);

/* A piece of its data. */
int file_piece(struct unpack *u, uint64_t offset, const uint8_t *p, size_t n);

/* All of it has come. */
int file_end(struct unpack *u);

/* Gives it its name; `name` is what it is called in messages. */
int file_place(struct unpack *u, const struct unpack_spot *spot, const char *name);

/* Forgets it, and removes the temporary name. */
void file_drop(struct unpack *u);

/* Makes the link u->member, of either kind, at spot. */
int file_link(struct unpack *u, const struct unpack_spot *spot, const char *link);

/* ---- unpack_dirs.c ---- */

/* A directory was made. m: what it is to be in the end; NULL: as it is. */
void dirs_add(struct unpack *u, const char *name, const struct entry_member *m);

/* A directory is there: if we made it, this is what it is to be. */
void dirs_update(const char *name, const struct entry_member *m);

/* Gives all of them their modes and times. What does not work any more is left. */
void dirs_settle(struct unpack *u);

#endif
