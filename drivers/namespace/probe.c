/*
 * probe: can this host run boxes of namespaces, and if not, what would mend it. Janitor. It starts
 * a whole box short of the exec, because no list of checks is as true as that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/box.h"
#include "drivers/namespace/cgroup_site.h"
#include "drivers/namespace/child.h"
#include "drivers/namespace/image_host.h"
#include "drivers/namespace/layer.h"
#include "drivers/namespace/namespace.h"
#include "drivers/namespace/prepare.h"
#include "drivers/namespace/site.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define TRIAL_NS (10 * NS_PER_S)

/* Switches of various distributions that forbid what the driver needs. */
static const struct {
	const char *path;
	const char *bad; /* the value that forbids */
	bool root_too;
	const char *mend;
} switches[] = {
    {"/proc/sys/user/max_user_namespaces", "0", true,
	"user namespaces are off: sysctl -w user.max_user_namespaces=10000"},
    {"/proc/sys/kernel/unprivileged_userns_clone", "0", false,
	"user namespaces are root's only: run sbxd as root, or sysctl -w "
	"kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", false,
	"AppArmor restricts user namespaces: run sbxd as root, or sysctl -w "
	"kernel.apparmor_restrict_unprivileged_userns=0"},
};

/* What is likely missing when the trial fails, by the words of its error. */
static const struct {
	const char *words;
	int code; /* errno value, 0 any */
	const char *mend;
} hints[] = {
    {"clone a process", ENOSYS, "Linux 5.12 or newer is needed, and clone3() allowed"},
    {"clone a process", EPERM, "a container around sbxd must allow user namespaces"},
    {"clone a process", ENOSPC, "raise the sysctls user.max_*_namespaces"},
    {"overlay", ENODEV, "modprobe overlay"},
    {"overlay", 0, "Linux 5.12 or newer is needed, and /usr not on an overlay of an overlay"},
    {"mount its procfs", EPERM,
	"/proc is partly covered here: a container around sbxd must leave it unmasked"},
    {"seccomp filter", 0, "a kernel with CONFIG_SECCOMP_FILTER is needed"},
};

static int probe_switches(struct err *err)
{
	char value[16];

	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		if (geteuid() == 0 && !switches[i].root_too)
			continue;
		if (fd_read_file_at(AT_FDCWD, switches[i].path, value, sizeof(value)) < 0)
			continue;
		value[strcspn(value, "\n")] = '\0';
		if (!strcmp(value, switches[i].bad))
			return err_set(err, EPERM, "%s", switches[i].mend);
	}
	return 0;
}

static int probe_explain(int rc, struct err *err)
{
	size_t len;

	if (!err)
		return rc;
	len = strlen(err->text);
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (!strstr(err->text, hints[i].words) ||
		    (hints[i].code && hints[i].code != err->code))
			continue;
		(void)snprintf(err->text + len, sizeof(err->text) - len, " (%s)", hints[i].mend);
		break;
	}
	return rc;
}

/* Any directory that a box could be made of; this one makes the same layers as `host`. */
#define TRIAL_ROOT "/usr"

/* Its name is fixed: what a probe that was killed has left goes with the next. */
static int probe_make_layer(const char *dir, struct ns_prepared *prep, struct err *err)
{
	int rc = record_remove_tree(AT_FDCWD, dir);

	if (rc < 0)
		return err_sys(err, -rc, "remove %s", dir);
	if (mkdir(dir, 0700) < 0)
		return err_sys(err, errno, "make %s", dir);
	return layer_make(dir, IMAGE_ROOTED, prep, err);
}

static int probe_start(const struct driver_site *site, struct ns_prepared *prep, struct err *err)
{
	struct driver_spec spec = {
	    .name = "trial",
	    .image = prep->image,
	    .disk_mib = 1,
	    .guest = -1,
	    .helper = -1,
	    .deadline_ns = clock_now_ns() + TRIAL_NS,
	};
	int rc = prepare_fill(prep, err);

	return rc == 0 ? ns_box_start(site, prep, &spec, true, NULL, NULL, err) : rc;
}

/* Starts a box from layers that are there already, else from some that are gone afterwards. */
static int probe_trial(const struct driver_site *site, struct err *err)
{
	char dir[NS_PATH];
	struct ns_prepared *prep = calloc(1, sizeof(*prep));
	bool own = false;
	int rc = prep ? site_trial_path(site, dir) : -ENOMEM;

	if (rc < 0) {
		free(prep);
		return err_sys(err, -rc, "try a box in %s", site->runtime_dir);
	}
	own = layer_find_any(site, prep) < 0;
	if (own)
		rc = probe_make_layer(dir, prep, err);
	if (rc == 0 && !prep->lower[1][0]) /* of no image */
		(void)snprintf(prep->lower[1], NS_PATH, "%s", TRIAL_ROOT);
	if (rc == 0)
		rc = probe_start(site, prep, err);
	FAULT_POINT("driver.namespace.probe.tried");
	free(prep);
	if (own && record_remove_tree(AT_FDCWD, dir) < 0 && rc == 0)
		rc = err_sys(err, errno, "remove %s", dir);
	return rc;
}

int namespace_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err)
{
	struct driver_facts found = {.isolation = "namespace"};
	int rc;

	if (geteuid() == 0 && !site->uid_base)
		return err_set(err, EINVAL, "root must give boxes uids of their own: set uid_base");
	rc = probe_switches(err);
	if (rc == 0)
		rc = probe_explain(probe_trial(site, err), err);
	if (rc < 0)
		return rc;
	cgroup_site_warn(site, found.warning, sizeof(found.warning));
	*facts = found;
	return 0;
}
