/*
 * cgroup_site: where on this host the boxes' cgroups can be. Janitor. If it dies the parents stay,
 * recorded in the instance's directory, for the next one to use or remove.
 */
#include "drivers/namespace/cgroup_site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "drivers/namespace/cgroup_find.h"
#include "lib/fd.h"

#define RECORD "cgroups"
#define RECORD_MAX 65536
#define LEAF "supervisor" /* v2: a cgroup with children may hold no process itself */
#define WANTED (NS_CG_MEMORY | NS_CG_PIDS | NS_CG_CPU)

static const struct {
	uint32_t bit;
	const char *name;
	const char *enable;
} limits[] = {
    {NS_CG_MEMORY, "memory", "+memory"},
    {NS_CG_PIDS, "pids", "+pids"},
    {NS_CG_CPU, "cpu", "+cpu"},
};

#define LIMITS (sizeof(limits) / sizeof(limits[0]))

/* A path of two or three parts. 0 or -ENAMETOOLONG. */
static int site_join(char out[NS_PATH], const char *a, const char *b, const char *c)
{
	int n = snprintf(out, NS_PATH, "%s/%s%s", a, b, c);

	return n < 0 || n >= NS_PATH ? -ENAMETOOLONG : 0;
}

/* The controllers that a file of v2 lists. */
static uint32_t site_read_controllers(const char *dir, const char *file)
{
	char path[NS_PATH];
	char text[512];
	char *save = NULL;
	uint32_t bits = 0;

	if (site_join(path, dir, file, "") < 0 ||
	    fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
		for (size_t i = 0; i < LIMITS; i++) {
			if (!strcmp(w, limits[i].name))
				bits |= limits[i].bit;
		}
	}
	return bits;
}

/* systemd marks what it has given away. */
static bool site_is_delegated(const char *dir)
{
	char value[2];

	return getxattr(dir, "user.delegate", value, sizeof(value)) > 0 ||
	       getxattr(dir, "trusted.delegate", value, sizeof(value)) > 0;
}

/*
 * The directory of v2 to work below: our own, if it was given to us; for root else the top of the
 * hierarchy, as other container programs do. Returns its controllers, 0 when there is none.
 */
static uint32_t site_choose_v2(
    const struct driver_site *site, const struct cgroup_hierarchy *h, char base[NS_PATH])
{
	char suffix[NS_PATH];
	size_t len = strlen(h->own);
	size_t cut;

	/* An earlier supervisor of this family may have moved itself into the leaf. */
	(void)snprintf(suffix, sizeof(suffix), "/sbxd-%s/" LEAF, site->instance);
	cut = strlen(suffix);
	(void)snprintf(base, NS_PATH, "%s", h->own);
	if (len > cut && !strcmp(base + len - cut, suffix))
		base[len - cut] = '\0';
	if (*base && (geteuid() != 0 || site_is_delegated(base)) && access(base, W_OK) == 0)
		return site_read_controllers(base, "cgroup.controllers");
	(void)snprintf(base, NS_PATH, "%s", h->top);
	if (geteuid() != 0 || access(base, W_OK) < 0)
		return 0;
	return site_read_controllers(base, "cgroup.controllers");
}

static uint32_t site_choose(
    const struct driver_site *site, const struct cgroup_hierarchy *h, char base[NS_PATH])
{
	if (h->controllers & NS_CG_V2)
		return site_choose_v2(site, h, base);
	(void)snprintf(base, NS_PATH, "%s", h->own);
	return *base && access(base, W_OK) == 0 ? h->controllers : 0;
}

void cgroup_site_warn(const struct driver_site *site, char *out, size_t size)
{
	struct cgroup_hierarchy found[CGROUP_HIERARCHIES];
	char base[NS_PATH];
	uint32_t have = 0;
	int count = cgroup_find_all(found);
	int n = 0;

	for (int i = 0; i < count; i++)
		have |= site_choose(site, &found[i], base);
	if (!site->uid_base)
		have |= NS_CG_PIDS; /* a box of one uid is bounded by RLIMIT_NPROC too */
	out[0] = '\0';
	for (size_t i = 0; i < LIMITS; i++) {
		if (!(have & limits[i].bit))
			n += snprintf(
			    out + n, size - (size_t)n, "%s%s", n ? ", " : "", limits[i].name);
	}
	if (n > 0)
		(void)snprintf(out + n, size - (size_t)n,
		    " of a box not limited: no writable cgroup with %s here%s",
		    n > 8 ? "these controllers" : "this controller",
		    geteuid() == 0 ? "" : " (run as root, or with systemd's Delegate=yes)");
}

static int site_record_parent(int dirfd, const char *parent)
{
	char text[RECORD_MAX];
	char line[NS_PATH + 2];
	FD_SCOPED int fd = -1;
	ssize_t n = fd_read_file_at(dirfd, RECORD, text, sizeof(text));
	int len = snprintf(line, sizeof(line), "%s\n", parent);

	if (n < 0 && n != -ENOENT)
		return (int)n;
	if (n > 0 && strstr(text, line))
		return 0;
	fd = openat(dirfd, RECORD, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return write(fd, line, (size_t)len) == len ? 0 : -EIO;
}

static void site_move_procs(const char *from, const char *to)
{
	char path[NS_PATH];
	char text[16384];
	char *save = NULL;

	if (site_join(path, from, "cgroup.procs", "") < 0 ||
	    fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
	    site_join(path, to, "cgroup.procs", "") < 0)
		return;
	for (char *pid = strtok_r(text, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save))
		(void)fd_write_file_at(AT_FDCWD, path, pid); /* may be gone; else EBUSY tells */
}

static void site_enable(const char *dir)
{
	char path[NS_PATH];

	if (site_join(path, dir, "cgroup.subtree_control", "") < 0)
		return;
	for (size_t i = 0; i < LIMITS; i++)
		(void)fd_write_file_at(AT_FDCWD, path, limits[i].enable); /* read back later */
}

/* Gives the children of `parent` the controllers of `base`. Returns those that work. */
static uint32_t site_enable_v2(const char *base, const char *parent, uint32_t wanted)
{
	char leaf[NS_PATH];

	if ((site_read_controllers(base, "cgroup.subtree_control") & wanted) != wanted)
		site_enable(base);
	if ((site_read_controllers(base, "cgroup.subtree_control") & wanted) != wanted &&
	    site_join(leaf, parent, LEAF, "") == 0 && (mkdir(leaf, 0755) == 0 || errno == EEXIST)) {
		site_move_procs(base, leaf);
		site_enable(base);
	}
	site_enable(parent);
	return site_read_controllers(parent, "cgroup.subtree_control");
}

static bool site_has(const char *dir, const char *file)
{
	char path[NS_PATH];

	return site_join(path, dir, file, "") == 0 && access(path, W_OK) == 0;
}

static int site_use(const struct driver_site *site, int dirfd, const struct cgroup_hierarchy *h,
    struct ns_prepared *prep)
{
	struct ns_cgroup cg = {.controllers = 0};
	char base[NS_PATH];
	uint32_t bits = site_choose(site, h, base);
	int rc;

	if (!bits || prep->cgroup_count == NS_CGROUPS)
		return 0;
	rc = site_join(cg.parent, base, "sbxd-", site->instance);
	if (rc == 0)
		rc = site_record_parent(dirfd, cg.parent);
	if (rc < 0)
		return rc;
	if (mkdir(cg.parent, 0755) < 0 && errno != EEXIST)
		return 0; /* cannot be used, as the warning says */
	if (h->controllers & NS_CG_V2) {
		bits = site_enable_v2(base, cg.parent, bits);
		if (!bits)
			return 0;
		bits |= NS_CG_V2;
	}
	if (site_has(cg.parent, "memory.memsw.limit_in_bytes") ||
	    site_has(cg.parent, "memory.swap.max"))
		bits |= NS_CG_SWAP;
	cg.controllers = bits;
	if (bits & NS_CG_V2) {
		/* First, because the clone goes into it. */
		prep->cgroups[prep->cgroup_count++] = prep->cgroups[0];
		prep->cgroups[0] = cg;
		prep->flags |= NS_F_CLONE_CGROUP;
	} else {
		prep->cgroups[prep->cgroup_count++] = cg;
	}
	return 0;
}

int cgroup_site_prepare(
    const struct driver_site *site, int dirfd, struct ns_prepared *prep, struct err *err)
{
	struct cgroup_hierarchy found[CGROUP_HIERARCHIES];
	int count = cgroup_find_all(found);
	int rc = count < 0 ? count : 0;

	for (int i = 0; rc == 0 && i < count; i++)
		rc = site_use(site, dirfd, &found[i], prep);
	if (rc < 0)
		return err_sys(err, -rc, "prepare the cgroups of instance %s", site->instance);
	return 0;
}

int cgroup_site_each(int dirfd, cgroup_site_fn *fn, void *ctx)
{
	char text[RECORD_MAX];
	char *save = NULL;
	ssize_t n = fd_read_file_at(dirfd, RECORD, text, sizeof(text));
	int rc = 0;

	if (n < 0)
		return n == -ENOENT ? 0 : (int)n;
	for (char *line = strtok_r(text, "\n", &save); rc == 0 && line;
	     line = strtok_r(NULL, "\n", &save))
		rc = fn(ctx, line);
	return rc;
}

/* v2: everything that was moved goes back before the leaf can be removed. */
static void site_leave_v2(const char *parent)
{
	char leaf[NS_PATH];
	char base[NS_PATH];
	char path[NS_PATH];
	char *slash;

	(void)snprintf(base, sizeof(base), "%s", parent);
	slash = strrchr(base, '/');
	if (!slash || site_join(leaf, parent, LEAF, "") < 0 || access(leaf, F_OK) < 0 ||
	    site_join(path, parent, "cgroup.subtree_control", "") < 0)
		return;
	*slash = '\0';
	(void)fd_write_file_at(AT_FDCWD, path, "-memory -pids -cpu"); /* rmdir will tell */
	if (site_join(path, base, "cgroup.subtree_control", "") == 0)
		(void)fd_write_file_at(AT_FDCWD, path, "-memory -pids -cpu");
	site_move_procs(leaf, base);
	(void)rmdir(leaf);
}

static int site_remove_parent(void *ctx, const char *parent)
{
	(void)ctx;
	site_leave_v2(parent);
	return rmdir(parent) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_site_finish(int dirfd)
{
	int rc = cgroup_site_each(dirfd, site_remove_parent, NULL);

	if (rc == 0 && unlinkat(dirfd, RECORD, 0) < 0 && errno != ENOENT)
		rc = -errno;
	return rc;
}
