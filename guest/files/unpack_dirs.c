/*
 * unpack_dirs: what the directories that were made are to be in the end: until then they must be
 * writable, and everything that is put into them changes their times. sbx-files; if it dies, they
 * stay as they are.
 *
 * Only those that we made: what was there before keeps its mode and its times. When there are more
 * than fit, those so far are done with, and their times may be spoilt.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files/unpack.h"
#include "lib/hash.h"

#define DIRS_MAX (4U * 1024U * 1024U)
#define DIRS_MODE_BITS 0777U

struct dir {
	int64_t mtime;
	uint32_t mtime_nsec;
	uint32_t mode; /* DIRS_UNTOLD: as it is */
	uint32_t hash; /* of the name */
	uint32_t len;  /* of the name, which comes before */
};

#define DIRS_UNTOLD UINT32_MAX

/* A name and its struct dir, and so on: read from the end. */
static struct {
	size_t len;
	uint8_t bytes[DIRS_MAX];
} dirs;

static void tell(struct dir *d, const struct entry_member *m)
{
	d->mode = m->mode & DIRS_MODE_BITS;
	d->mtime = m->mtime;
	d->mtime_nsec = m->mtime_nsec;
}

void dirs_add(struct unpack *u, const char *name, const struct entry_member *m)
{
	struct dir d = {.mode = DIRS_UNTOLD, .len = (uint32_t)strlen(name)};

	d.hash = hash32(HASH32_START, name, d.len);
	if (m != NULL)
		tell(&d, m);
	if (sizeof(d) + d.len > DIRS_MAX - dirs.len)
		dirs_settle(u);
	memcpy(dirs.bytes + dirs.len, name, d.len);
	dirs.len += d.len;
	memcpy(dirs.bytes + dirs.len, &d, sizeof(d));
	dirs.len += sizeof(d);
}

void dirs_update(const char *name, const struct entry_member *m)
{
	size_t len = strlen(name);
	uint32_t hash = hash32(HASH32_START, name, len);
	struct dir d;

	for (size_t at = dirs.len; at > 0; at -= sizeof(d) + d.len) {
		memcpy(&d, dirs.bytes + at - sizeof(d), sizeof(d));
		if (d.hash != hash || d.len != len ||
		    memcmp(dirs.bytes + at - sizeof(d) - len, name, len) != 0)
			continue;
		tell(&d, m);
		memcpy(dirs.bytes + at - sizeof(d), &d, sizeof(d));
		return;
	}
}

static void settle_one(struct unpack *u, const char *name, const struct dir *d)
{
	const struct timespec times[2] = {
	    {.tv_nsec = UTIME_OMIT},
	    {.tv_sec = d->mtime, .tv_nsec = d->mtime_nsec},
	};
	int fd = dest_open(u, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

	if (fd < 0)
		return;
	(void)fchmod(fd, d->mode);
	(void)futimens(fd, times);
	(void)close(fd); /* was only read */
}

void dirs_settle(struct unpack *u)
{
	char name[ENTRY_PATH_MAX + 1];

	/* What is made later lies deeper: it comes first, as long as one may get there. */
	while (dirs.len > 0) {
		struct dir d;

		dirs.len -= sizeof(d);
		memcpy(&d, dirs.bytes + dirs.len, sizeof(d));
		dirs.len -= d.len;
		memcpy(name, dirs.bytes + dirs.len, d.len);
		name[d.len] = '\0';
		if (d.mode != DIRS_UNTOLD)
			settle_one(u, name, &d);
	}
}
