/* kernel_find: which kernel, and where its modules are. Janitor; only looks. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/kernel.h"
#include "drivers/qemu/site.h"

#define BOOT "/boot"
#define IMAGE "vmlinuz-"
#define CLOUD "cloud"
#define PACKAGE "linux-image-cloud-amd64"

/* A cloud kernel before any other; then the higher version. */
static bool is_better(const char *a, const char *b)
{
	bool a_cloud = strstr(a, CLOUD) != NULL;
	bool b_cloud = strstr(b, CLOUD) != NULL;

	if (a_cloud != b_cloud)
		return a_cloud;
	return strverscmp(a, b) > 0;
}

static int find_image(struct kernel_files *k, struct err *err)
{
	char best[256] = "";
	DIR *dir = opendir(BOOT);

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		if (!strncmp(e->d_name, IMAGE, strlen(IMAGE)) &&
		    (!*best || is_better(e->d_name, best)))
			(void)snprintf(best, sizeof(best), "%s", e->d_name);
	}
	if (dir)
		(void)closedir(dir); /* opened for reading only */
	if (!*best)
		return err_set(err, ENOENT,
		    "no kernel in " BOOT ": install " PACKAGE ", or give one as qemu.kernel");
	if (qemu_path_join(k->image, BOOT, best, "") < 0)
		return err_set(err, ENAMETOOLONG, "the kernel %s", best);
	return 0;
}

static bool has_modules(const char *dir)
{
	char path[QEMU_PATH];

	return qemu_path_join(path, dir, "kernel", "") == 0 && access(path, R_OK | X_OK) == 0;
}

/* DIR/boot/vmlinuz-VERSION has its modules at DIR/lib/modules/VERSION, with or without usr/. */
static bool find_modules_beside(struct kernel_files *k)
{
	static const char *const places[] = {"lib/modules", "usr/lib/modules"};
	char root[QEMU_PATH];
	char *slash;

	(void)snprintf(root, sizeof(root), "%s", k->image);
	for (int i = 0; i < 2; i++) {
		slash = strrchr(root, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(
		    k->modules, sizeof(k->modules), "%s/%s/%s", root, places[i], k->version);

		if (n > 0 && (size_t)n < sizeof(k->modules) && has_modules(k->modules))
			return true;
	}
	return false;
}

static int find_modules(const struct driver_options *o, struct kernel_files *k, struct err *err)
{
	const char *given = driver_option(o, "qemu.modules");

	if (given) {
		(void)snprintf(k->modules, sizeof(k->modules), "%s", given);
		if (!has_modules(given))
			return err_set(
			    err, ENOENT, "qemu.modules: no kernel's modules in %s", given);
		return 0;
	}
	if (!find_modules_beside(k))
		return err_set(err, ENOENT,
		    "no modules of kernel %s: install its package, or give them as qemu.modules",
		    k->version);
	return 0;
}

int kernel_find(const struct driver_options *o, struct kernel_files *out, struct err *err)
{
	const char *given = driver_option(o, "qemu.kernel");
	struct kernel_files k = {0};
	const char *name;
	int rc = 0;

	if (given)
		(void)snprintf(k.image, sizeof(k.image), "%s", given);
	else
		rc = find_image(&k, err);
	if (rc < 0)
		return rc;
	if (access(k.image, R_OK) < 0)
		return err_sys(err, errno, "read the kernel %s", k.image);
	name = strrchr(k.image, '/');
	name = name ? name + 1 : k.image;
	if (!strncmp(name, IMAGE, strlen(IMAGE)))
		(void)snprintf(k.version, sizeof(k.version), "%s", name + strlen(IMAGE));
	rc = find_modules(o, &k, err);
	if (rc == 0)
		*out = k;
	return rc;
}
