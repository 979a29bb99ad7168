/*
 * templates: making a template ahead of time, and removing one. `sbx-worker image`. If it dies
 * while it makes one, QEMU is killed, and trim() removes what was written.
 */
#include "drivers/qemu/templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/qemu/image.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/template.h"
#include "lib/fd.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int build_with(const struct driver_site *site, const struct driver_spec *spec,
    struct qemu_plan *plan, char key[DRIVER_TEMPLATE_KEY], bool *made, struct err *err)
{
	uid_t base = site->uid_base ? site->uid_base + spec->slot * DRIVER_UIDS : 0;
	FD_SCOPED int disk = -1;
	struct template t;
	int rc;

	if (!(plan->flags & QEMU_F_TEMPLATES))
		return err_set(err, EOPNOTSUPP, "qemu.templates is false: each box boots");
	driver_progress(spec, "preparing", 0, 0);
	disk = image_need_disk(site, plan, spec->deadline_ns, err);
	if (disk < 0)
		return disk;
	rc = template_get(site, plan, spec, base, &t, err);
	if (rc < 0)
		return rc;
	(void)snprintf(
	    key, DRIVER_TEMPLATE_KEY, "%s", base_name(t.entry.path) + strlen("template-"));
	*made = t.made;
	template_close(&t);
	return 0;
}

static int templates_build(const struct driver_site *site, const struct driver_spec *spec,
    char key[DRIVER_TEMPLATE_KEY], bool *made, struct err *err)
{
	struct qemu_plan *plan = qemu_plan_load(site, err);
	int rc = plan ? build_with(site, spec, plan, key, made, err) : -EINVAL;

	free(plan);
	return rc;
}

/* A name of another form leads out of the store. */
static bool is_key(const char *key)
{
	return strlen(key) == STORE_KEY - 1 && strspn(key, "0123456789abcdef") == STORE_KEY - 1;
}

static int templates_remove(
    const struct driver_site *site, const char *key, uint64_t *bytes, struct err *err)
{
	char dir[QEMU_PATH];
	char path[QEMU_PATH];
	uint64_t size;
	int rc;

	if (!is_key(key))
		return err_set(err, ENOENT, "template not found: %.64s", key);
	rc = qemu_store_path(site, dir);
	if (rc == 0)
		rc = qemu_path_join(path, dir, "template-", key);
	if (rc < 0)
		return err_sys(err, -rc, "the store in %s", site->state_dir);
	size = store_bytes(path);
	rc = store_take_out(path);
	if (rc == -ENOENT)
		return err_set(err, ENOENT, "template not found: %s", key);
	if (rc == -EBUSY)
		return err_set(
		    err, EBUSY, "template %s is in use: boxes are copies of it, and live", key);
	if (rc < 0)
		return err_sys(err, -rc, "remove template %s", key);
	*bytes = size;
	return 0;
}

const struct driver_templates qemu_templates = {
    .each = templates_each,
    .build = templates_build,
    .remove = templates_remove,
};
