/* programs: where sbx-worker and sbx-guest are. Runs in sbxd at start; holds no state. */
#include "supervisor/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "supervisor/sbxd.h"

static const char *const places[] = {"", "/../libexec/sbxd"};

int programs_find(struct sbxd *s, struct err *err)
{
	char self[PATH_MAX] = "";
	char guest[PATH_MAX + 64];
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
		(void)snprintf(guest, sizeof(guest), "%s%s/sbx-guest", dir, places[i]);
		s->guest_fd = open(guest, O_RDONLY | O_CLOEXEC);
		if (s->guest_fd < 0)
			return err_sys(err, errno, "open %s", guest);
		return 0;
	}
	return err_set(
	    err, ENOENT, "sbx-worker is neither in %s nor in %s/../libexec/sbxd", dir, dir);
}
