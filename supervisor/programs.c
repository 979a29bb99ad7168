/*
 * programs: where sbx-worker, sbx-guest and sbx-files are. Runs in sbxd at start; holds no state.
 *
 * A box's root may open the program of each of its processes (/proc/PID/exe), and where sbxd is an
 * ordinary user's, that user is the box's root: sbx-files could then be rewritten for all boxes. So
 * what boxes get is a sealed copy in memory. sbx-guest needs none: it lets nobody look into it.
 */
#include "supervisor/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"
#include "supervisor/sbxd.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static const char *const places[] = {"", "/../libexec/sbxd"};

/* An executable memfd. Kernels before 6.3 do not know that there is another kind. */
static int programs_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

/* Makes `to` a sealed copy of `from`, and opens it for reading only. The descriptor or -1 with
 * errno. */
static int programs_seal(int from, int to)
{
	char again[32];
	struct stat st;
	off_t done = 0;

	if (fstat(from, &st) < 0)
		return -1;
	while (done < st.st_size) {
		ssize_t n = sendfile(to, from, &done, (size_t)(st.st_size - done));

		if (n == 0)
			errno = EIO; /* it was cut meanwhile */
		if (n <= 0)
			return -1;
	}
	if (fchmod(to, 0555) < 0 ||
	    fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -1;
	/* What is open for writing cannot be executed. */
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", to);
	return open(again, O_RDONLY | O_CLOEXEC);
}

/* A copy of the program at `path` that nobody can change. The descriptor or -errno with *err. */
static int programs_copy(const char *path, struct err *err)
{
	FD_SCOPED int from = open(path, O_RDONLY | O_CLOEXEC);
	FD_SCOPED int to = -1;
	int fd;

	if (from < 0)
		return err_sys(err, errno, "open %s", path);
	to = programs_memfd("sbx-files");
	if (to < 0 && errno == EACCES)
		return err_set(err, EACCES,
		    "copy %s to memory: the kernel forbids programs there (sysctl "
		    "vm.memfd_noexec is 2); set it to 1 or 0: sysctl -w vm.memfd_noexec=1",
		    path);
	fd = to < 0 ? -1 : programs_seal(from, to);
	return fd < 0 ? err_sys(err, errno, "copy %s to memory", path) : fd;
}

static int programs_open(struct sbxd *s, const char *dir, const char *place, struct err *err)
{
	char path[PATH_MAX + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s/sbx-guest", dir, place);
	s->guest_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->guest_fd < 0)
		return err_sys(err, errno, "open %s", path);
	(void)snprintf(path, sizeof(path), "%s%s/sbx-files", dir, place);
	fd = programs_copy(path, err);
	if (fd < 0)
		return fd;
	s->helper_fd = fd;
	return 0;
}

int programs_find(struct sbxd *s, struct err *err)
{
	char self[PATH_MAX] = "";
	const char *dir;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return err_sys(err, errno, "find the path of sbxd itself in /proc");
	dir = dirname(self);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(
		    s->worker_path, sizeof(s->worker_path), "%s%s/sbx-worker", dir, places[i]);

		if (n < 0 || (size_t)n >= sizeof(s->worker_path) ||
		    access(s->worker_path, X_OK) < 0)
			continue;
		return programs_open(s, dir, places[i], err);
	}
	return err_set(
	    err, ENOENT, "sbx-worker is neither in %s nor in %s/../libexec/sbxd", dir, dir);
}
