/*
 * note: what is kept of an image beside its root: what it is, and what it says of commands that run
 * in it. Janitor and `sbx-worker image`; the file outlives both.
 */
#ifndef SBXD_DRIVERS_IMAGE_NOTE_H
#define SBXD_DRIVERS_IMAGE_NOTE_H

#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/image_ref.h"

#define NOTE_USER_MAX 128   /* as wire/control.h has room for */
#define NOTE_DIR_MAX 1000   /* likewise */
#define NOTE_ENV_MAX 16384U /* bytes of "K=V\0": leaves room for the configured ones */
#define NOTE_FILE "note"

struct image_note {
	char id[IMAGE_DIGEST_LEN];
	char user[NOTE_USER_MAX];	/* "": none */
	char working_dir[NOTE_DIR_MAX]; /* "": none */
	struct buf env;			/* "K=V\0"...; names are sound, each is there once */
	uint64_t size;			/* bytes of disk that its root takes */
	uint64_t files;
	uint64_t made_wall_ms;
};

void image_note_init(struct image_note *n);
void image_note_free(struct image_note *n);

/* Adds a variable, or changes it. What is no sound name is left out. 0, -ENOBUFS, -ENOMEM. */
int image_note_set_env(struct image_note *n, const char *entry);

/* Writes it below dirfd, on the disk. 0 or -errno. */
int image_note_write(int dirfd, const struct image_note *n);

/* Reads it back into *n, which is as image_note_init() made it. 0 or -errno; *n is the caller's to
 * free in both cases. */
int image_note_read(int dirfd, struct image_note *n);

/* What sbxd is told of it, as the tail of CTL_DONE: user, working directory, then the environment,
 * each with its NUL. 0 or -errno. */
int image_note_put_tail(const struct image_note *n, struct buf *out);

#endif
