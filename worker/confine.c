/*
 * confine: dropping privileges. sbx-worker. If we die here the box is young and is cleaned up by
 * sbxd.
 */
#include "worker/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"

/* linux/landlock.h of the oldest distribution we build on lacks the newer members. */
struct landlock_rules {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

#define LANDLOCK_VERSION 1U /* LANDLOCK_CREATE_RULESET_VERSION */
#define LANDLOCK_FS(bits) ((1ULL << (bits)) - 1)
#define LANDLOCK_NET 3ULL      /* bind and connect TCP */
#define LANDLOCK_ABSTRACT 1ULL /* connect to abstract sockets from outside */

/* What each version of the interface can forbid. Signals stay: the box is ended by one. */
static const struct landlock_rules landlock_all[] = {
    {LANDLOCK_FS(13), 0, 0},
    {LANDLOCK_FS(14), 0, 0},
    {LANDLOCK_FS(15), 0, 0},
    {LANDLOCK_FS(15), LANDLOCK_NET, 0},
    {LANDLOCK_FS(16), LANDLOCK_NET, 0},
    {LANDLOCK_FS(16), LANDLOCK_NET, LANDLOCK_ABSTRACT},
};

#define LANDLOCK_VERSIONS ((long)(sizeof(landlock_all) / sizeof(landlock_all[0])))

static int confine_files(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
	FD_SCOPED int fd = -1;

	if (version <= 0)
		return 0; /* this kernel has none */
	if (version > LANDLOCK_VERSIONS)
		version = LANDLOCK_VERSIONS;
	fd = (int)syscall(SYS_landlock_create_ruleset, &landlock_all[version - 1],
	    sizeof(struct landlock_rules), 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 0;
}

static int confine_identity(uid_t uid)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		       setresuid(uid, uid, uid) < 0))
		return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, none) < 0)
		return -errno;
	return 0;
}

int confine_self(uid_t uid, struct err *err)
{
	static const struct rlimit no_core = {0, 0};
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "worker: no new privileges");
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_sys(err, errno, "worker: no core dumps");
	rc = confine_identity(uid);
	if (rc < 0)
		return err_sys(err, -rc, "worker: become uid %u", (unsigned int)uid);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "worker: not dumpable");
	rc = confine_files();
	if (rc < 0)
		return err_sys(err, -rc, "worker: Landlock");
	rc = confine_load_filter();
	if (rc < 0)
		return err_sys(err, -rc, "worker: system call filter");
	return 0;
}
