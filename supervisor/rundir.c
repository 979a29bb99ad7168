/* rundir: makes the directories of sbxd. sbxd, at start; a failure ends the start with nothing but
 * empty directories left. */
#include "supervisor/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "wire/rendezvous.h"

#define WORKERS_LEN (PATHS_LEN + sizeof(RENDEZVOUS_DIR))

/* Makes everything above the last component of path that is not there. */
static int make_parents(const char *path, struct err *err)
{
	char part[PATHS_LEN];

	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(err, errno, "cannot make the directory %s", part);
	}
	return 0;
}

/* Looks through the descriptor, so that nobody can put another directory in its place meanwhile. */
static int make_dir(const char *path, mode_t mode, uid_t uid, struct err *err)
{
	int rc = make_parents(path, err);
	FD_SCOPED int fd = -1;
	bool made;
	struct stat st;

	if (rc < 0)
		return rc;
	made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return err_sys(err, errno, "cannot make the directory %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot open the directory %s", path);
	if (st.st_uid != uid)
		return err_set(err, EPERM,
		    "%s: belongs to uid %u, not to %u; give another directory", path,
		    (unsigned int)st.st_uid, (unsigned int)uid);
	if (!made && (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, EPERM, "%s: others may write to it (mode %04o); chmod go-w it",
		    path, (unsigned int)(st.st_mode & 07777));
	if (made && fchmod(fd, mode) < 0)
		return err_sys(err, errno, "cannot set the mode of %s", path);
	return 0;
}

static void workers_path(const struct paths *p, char out[WORKERS_LEN])
{
	(void)snprintf(out, WORKERS_LEN, "%s/" RENDEZVOUS_DIR, p->runtime_dir);
}

void rundir_tidy(const struct paths *p)
{
	char workers[WORKERS_LEN];

	workers_path(p, workers);
	(void)rmdir(workers); /* not while there are workers in it */
}

int rundir_create(const struct paths *p, uid_t uid, struct err *err)
{
	char workers[WORKERS_LEN];
	int rc = make_dir(p->runtime_dir, uid == 0 ? 0755 : 0700, uid, err);

	workers_path(p, workers);
	if (rc == 0)
		rc = make_dir(workers, 0700, uid, err);
	return rc < 0 ? rc : make_dir(p->state_dir, 0700, uid, err);
}
