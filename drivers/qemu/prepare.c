/*
 * prepare: all that boxes of an image need, short of templates, and its end. Janitor. If it dies
 * half-way the next prepare() goes on with what is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "drivers/namespace/cgroup_site.h"
#include "drivers/qemu/image.h"
#include "drivers/qemu/probe.h"
#include "drivers/qemu/qemu.h"
#include "drivers/qemu/room.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/template_parts.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

/* The host's processor and kernel, as far as machines see them. */
static void read_host(char *out, size_t size)
{
	struct utsname names = {0};
	char text[4096] = "";
	const char *at;
	const char *end;

	(void)fd_read_file_at(AT_FDCWD, "/proc/cpuinfo", text, sizeof(text));
	at = strstr(text, "vendor_id"); /* up to "microcode" */
	end = at ? strstr(at, "cpu MHz") : NULL;
	(void)uname(&names);
	(void)snprintf(
	    out, size, "%s %.*s", names.release, end ? (int)(end - at) : 0, at ? at : "");
}

int qemu_plan_parts(struct qemu_plan *plan, const struct found *found)
{
	char host[512] = "";
	struct {
		char version[sizeof(found->version)];
		uint64_t binary[STORE_IDENTITY];
	} qemu = {.version = ""};
	struct {
		char model[QEMU_CPU];
		uint32_t flags;
	} cpu = {.flags = plan->flags & QEMU_F_KVM};
	const struct {
		enum template_part part;
		const void *data;
		size_t len;
	} parts[] = {
	    {PART_FORMAT, TEMPLATE_FORMAT, strlen(TEMPLATE_FORMAT)},
	    {PART_QEMU, &qemu, sizeof(qemu)},
	    {PART_KERNEL, plan->kernel, strlen(plan->kernel)},
	    {PART_MODULES, plan->modules, strlen(plan->modules)},
	    {PART_CPU, &cpu, sizeof(cpu)},
	    {PART_HOST, host, sizeof(host)},
	};
	int rc = 0;

	(void)snprintf(qemu.version, sizeof(qemu.version), "%s", found->version);
	memcpy(qemu.binary, found->binary, sizeof(qemu.binary));
	(void)snprintf(cpu.model, sizeof(cpu.model), "%s", plan->cpu);
	read_host(host, sizeof(host));
	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = template_part_set(plan->parts[parts[i].part], parts[i].data, parts[i].len);
	return rc;
}

static int prepare_all(const struct driver_site *site, const char *image, struct qemu_plan *plan,
    struct found *found, struct err *err)
{
	uint64_t deadline_ns = clock_now_ns() + PREPARE_NS;
	FD_SCOPED int dir = -1;
	int rc = image_root(site, image, plan->root, err);

	if (rc == 0)
		rc = probe_host(site, plan, found, deadline_ns, err);
	if (rc == 0)
		rc = kernel_pack_modules(site, &found->files, plan, deadline_ns, err);
	FAULT_POINT("driver.qemu.prepare.modules");
	if (rc == 0)
		rc = image_make_disk(site, plan, deadline_ns, err);
	if (rc < 0)
		return rc;
	dir = qemu_site_make(site, err);
	if (dir < 0)
		return dir;
	rc = cgroup_site_prepare(site, dir, &plan->limits, err);
	FAULT_POINT("driver.qemu.prepare.cgroups");
	if (rc == 0 && qemu_plan_parts(plan, found) < 0)
		rc = err_sys(err, EIO, "make a digest");
	return rc;
}

int qemu_prepare(const struct driver_site *site, const char *image, struct err *err)
{
	struct qemu_plan *plan = calloc(1, sizeof(*plan));
	struct found *found = calloc(1, sizeof(*found));
	int rc = -ENOMEM;

	if (plan && found) {
		plan->magic = QEMU_MAGIC;
		plan->size = sizeof(*plan);
		plan->cache_bytes = room_limit(&site->options);
		(void)snprintf(plan->image, sizeof(plan->image), "%s", image);
		rc = prepare_all(site, image, plan, found, err);
	} else {
		(void)err_sys(err, ENOMEM, "prepare the qemu driver");
	}
	if (rc == 0)
		rc = qemu_plan_save(site, plan, err);
	if (rc == 0)
		store_sweep(site, STORE_UNUSED_S);
	free(plan);
	free(found);
	return rc;
}

/* The store stays: it is for whoever comes next. */
int qemu_finish(const struct driver_site *site, struct err *err)
{
	FD_SCOPED int dir = qemu_site_open(site);
	char path[QEMU_PATH];
	int rc = dir == -ENOENT ? 0 : dir < 0 ? dir : cgroup_site_finish(dir);

	FAULT_POINT("driver.qemu.finish");
	if (rc < 0)
		return err_sys(err, -rc, "remove the cgroups of instance %s", site->instance);
	rc = qemu_site_path(site, path);
	if (rc == 0)
		rc = record_remove_tree(AT_FDCWD, path);
	store_sweep_dead(site); /* who was making something has been ended */
	return rc < 0 ? err_sys(err, -rc, "remove %s", path) : 0;
}
