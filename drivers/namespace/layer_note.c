/*
 * layer_note: what is kept of a layer so that a later prepare() finds it again. Janitor. If it dies
 * while it writes, the layer has no note and is removed by the next.
 */
#include "drivers/namespace/layer_note.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/image_host.h"
#include "drivers/namespace/site.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define MADE ".made"
#define NEW ".new"

/* Whose notes are ours: compared as bytes, so what is not filled is zero. */
struct note_maker {
	uint32_t size; /* of struct layer_note */
	uint32_t uid_base;
	char version[24];
	char boot[40];	     /* what was on a disk when the host went down need not be whole */
	uint64_t program[4]; /* a layer is as the program's own tables say */
};

struct layer_note {
	struct note_maker maker;
	uint64_t layer[2];	 /* device and inode of the layer */
	uint64_t stamp;		 /* of what it was made of */
	struct ns_prepared prep; /* as layer_make() left it */
};

static void note_fill_maker(const struct driver_site *site, struct note_maker *m)
{
	struct stat st;

	*m = (struct note_maker){.size = sizeof(struct layer_note), .uid_base = site->uid_base};
	(void)snprintf(m->version, sizeof(m->version), "%s", SBX_VERSION);
	/* Where this cannot be read it is unknown in every note. */
	(void)fd_read_file_at(
	    AT_FDCWD, "/proc/sys/kernel/random/boot_id", m->boot, sizeof(m->boot));
	if (stat("/proc/self/exe", &st) < 0)
		return;
	m->program[0] = st.st_dev;
	m->program[1] = st.st_ino;
	m->program[2] = (uint64_t)st.st_mtim.tv_sec;
	m->program[3] = (uint64_t)st.st_mtim.tv_nsec;
}

static int note_put(const char *layer, const struct layer_note *note)
{
	char unfinished[NS_PATH + sizeof(NEW)];
	char path[NS_PATH + sizeof(MADE)];
	FD_SCOPED int fd = -1;
	ssize_t n;

	(void)snprintf(unfinished, sizeof(unfinished), "%s" NEW, layer);
	(void)snprintf(path, sizeof(path), "%s" MADE, layer);
	fd = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, note, sizeof(*note));
	if (n != (ssize_t)sizeof(*note))
		return n < 0 ? -errno : -ENOSPC;
	FAULT_POINT("driver.namespace.prepare.noted");
	return rename(unfinished, path) < 0 ? -errno : 0;
}

int layer_note_write(
    const struct driver_site *site, const struct ns_prepared *prep, uint64_t stamp, struct err *err)
{
	const char *layer = prep->lower[0];
	struct layer_note *note = calloc(1, sizeof(*note));
	struct stat st;
	int rc = note ? 0 : -ENOMEM;

	if (rc == 0 && stat(layer, &st) < 0)
		rc = -errno;
	if (rc == 0) {
		note_fill_maker(site, &note->maker);
		note->layer[0] = st.st_dev;
		note->layer[1] = st.st_ino;
		note->stamp = stamp;
		note->prep = *prep;
		rc = note_put(layer, note);
	}
	free(note);
	return rc < 0 ? err_sys(err, -rc, "note the layer %s", layer) : 0;
}

/* True when the file holds a note of this program's, and nothing else. */
static bool note_read(
    int dirfd, const char *name, const struct note_maker *ours, struct layer_note *note)
{
	FD_SCOPED int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)sizeof(*note) &&
	       read(fd, note, sizeof(*note)) == (ssize_t)sizeof(*note) &&
	       !memcmp(&note->maker, ours, sizeof(*ours));
}

/* Whether its layer is the one that it tells of, and would be made the same today. */
static bool note_holds(int dirfd, const char *dir, const char *name, const struct layer_note *note)
{
	char layer[LAYER_NAME + 1];
	char path[NS_PATH];
	struct stat st;

	(void)snprintf(layer, sizeof(layer), "%.*s", (int)LAYER_NAME, name);
	return snprintf(path, sizeof(path), "%s/%s", dir, layer) < (int)sizeof(path) &&
	       !strcmp(path, note->prep.lower[0]) &&
	       fstatat(dirfd, layer, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_dev == note->layer[0] && st.st_ino == note->layer[1] &&
	       image_stamp(note->prep.image) == note->stamp;
}

enum note_kind {
	NOTE_OTHER, /* the name of something else */
	NOTE_LAYER,
	NOTE_MADE,
	NOTE_NEW,
};

static enum note_kind note_kind_of(const char *name)
{
	if (strncmp(name, LAYER_PREFIX, strlen(LAYER_PREFIX)) != 0 || strlen(name) < LAYER_NAME)
		return NOTE_OTHER;
	name += LAYER_NAME;
	return !*name		     ? NOTE_LAYER
	       : !strcmp(name, MADE) ? NOTE_MADE
	       : !strcmp(name, NEW)  ? NOTE_NEW
				     : NOTE_OTHER;
}

/* The caller's to close; NULL with *rc, which is 0 when there is no such directory. */
static DIR *note_open_dir(const char *path, int *rc)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	*rc = dir || errno == ENOENT ? 0 : -errno;
	if (!dir)
		fd_close(&fd);
	return dir;
}

int layer_note_find(
    const struct driver_site *site, const char *dir, const char *image, struct ns_prepared *prep)
{
	struct layer_note *note = malloc(sizeof(*note));
	struct note_maker ours;
	int rc = note ? 0 : -ENOMEM;
	DIR *d = note ? note_open_dir(dir, &rc) : NULL;
	bool found = false;

	note_fill_maker(site, &ours);
	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d))
		found = note_kind_of(e->d_name) == NOTE_MADE &&
			note_read(dirfd(d), e->d_name, &ours, note) &&
			(!image || !strcmp(note->prep.image, image)) &&
			note_holds(dirfd(d), dir, e->d_name, note);
	if (found)
		*prep = note->prep;
	else if (rc == 0)
		rc = -ENOENT;
	if (d)
		(void)closedir(d); /* opened for reading only */
	free(note);
	return rc;
}

static int note_sweep_one(int dirfd, const char *name)
{
	char note[LAYER_NAME + sizeof(MADE)];

	switch (note_kind_of(name)) {
	case NOTE_OTHER:
	case NOTE_MADE: /* small, and finish() removes it */
		return 0;
	case NOTE_NEW:
		return unlinkat(dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	case NOTE_LAYER:
		break;
	}
	(void)snprintf(note, sizeof(note), "%.*s" MADE, (int)LAYER_NAME, name);
	if (faccessat(dirfd, note, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return errno == ENOENT ? record_remove_tree(dirfd, name) : -errno;
}

int layer_note_sweep(const char *dir)
{
	int rc = 0;
	DIR *d = note_open_dir(dir, &rc);

	for (struct dirent *e = d ? readdir(d) : NULL; rc == 0 && e; e = readdir(d))
		rc = note_sweep_one(dirfd(d), e->d_name);
	if (d)
		(void)closedir(d); /* opened for reading only */
	return rc;
}
