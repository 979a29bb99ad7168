/* doctor_cgroup: can limits be enforced here? Reads only. */
#include <string.h>
#include <unistd.h>

#include "tools/doctor.h"
#include "tools/host_cgroup.h"

static const struct {
	const char *name;
	const char *limits;
} wanted[] = {{"memory", "memory"}, {"pids", "processes"}, {"cpu", "cpu time"}};

void doctor_cgroups(struct doctor *d)
{
	struct host_cgroup all[HOST_CGROUP_MOUNTS];
	size_t count = host_cgroup_find(all);

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct host_cgroup *h = host_cgroup_with(wanted[i].name, all, count);

		if (!h)
			doctor_say(d, DOCTOR_NOTE,
			    "enable the controller on the kernel's command line, or mount its "
			    "hierarchy",
			    "no %s controller: %s of a box cannot be limited", wanted[i].name,
			    wanted[i].limits);
		else if (getuid() != 0)
			doctor_say(d, DOCTOR_NOTE,
			    "run sbxd as root, or by systemd with Delegate=yes",
			    "%s: %s; an ordinary user can limit only what was delegated",
			    wanted[i].name, h->v2 ? "v2" : "v1");
		else if (access(h->dir, W_OK) < 0)
			doctor_say(d, DOCTOR_NOTE, "mount it writable",
			    "%s: %s is read-only: %s of a box cannot be limited", wanted[i].name,
			    h->dir, wanted[i].limits);
		else
			doctor_say(d, DOCTOR_FINE, NULL, "%s: %s at %s", wanted[i].name,
			    h->v2 ? "v2" : "v1", h->dir);
	}
}
