/*
 * start: from nothing to a box. Worker. If it dies, QEMU dies with it; cgroups and the record are
 * left for the janitor, which finds them by the box's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/qemu/box.h"
#include "drivers/qemu/image.h"
#include "drivers/qemu/qemu.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/talk.h"
#include "drivers/qemu/template.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proc.h"

#define UNDO_NS (5 * NS_PER_S)
#define QEMU_MIB 96U   /* what QEMU itself may need, */
#define QEMU_PART 128U /* and one part in so many of the machine, for its page tables */
#define QEMU_TASKS 64U /* and its threads */
#define TRIES 2	       /* with a template that turns out to be damaged */

struct start {
	const struct driver_site *site;
	const struct driver_spec *spec;
	struct qemu_plan *plan; /* our own copy */
	struct driver_box *box;
	uid_t base; /* first host id of the box, 0 when it has none of its own */
	bool recorded;
};

/* ---- what the process becomes before it may run ---- */

static int start_born(void *ctx, pid_t pid, struct err *err)
{
	struct start *s = ctx;
	char dir[QEMU_PATH];
	uint64_t begin = 0;
	int rc = proc_start_time(pid, &begin);

	if (rc == 0)
		rc = qemu_site_path(s->site, dir);
	if (rc == 0)
		rc = record_write(dir, s->spec->name, pid, begin);
	if (rc < 0)
		return err_sys(err, -rc, "note the box's first process");
	s->recorded = true;
	if (s->spec->born)
		s->spec->born(s->spec->born_ctx, pid, begin);
	return 0;
}

/* The guest's own limits are the guest's to keep; these are for QEMU as a whole. */
static int start_limit(void *ctx, pid_t pid, struct err *err)
{
	struct start *s = ctx;
	uint32_t mib = machine_memory_mib(s->spec);
	const struct driver_spec all = {
	    .name = s->spec->name,
	    .memory_mib = mib + mib / QEMU_PART + QEMU_MIB,
	    .cpus_milli = s->spec->cpus_milli,
	    .pids_max = QEMU_TASKS + machine_cpus(s->spec),
	};
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->plan->limits.cgroup_count; i++) {
		rc = cgroup_make(&s->plan->limits, i, &all, &s->box->cgroups, err);
		if (rc < 0)
			return rc;
		rc = cgroup_attach(&s->box->cgroups, i, pid);
		if (rc < 0)
			return err_sys(err, -rc, "move QEMU into its cgroup");
	}
	return rc;
}

/* In the order that leaves nothing: processes, their cgroups, the record. */
static void start_undo(struct start *s)
{
	uint64_t deadline = clock_now_ns() + UNDO_NS;
	char dir[QEMU_PATH];

	(void)machine_kill(&s->box->machine, deadline); /* else it is the janitor's */
	machine_close(&s->box->machine);
	for (uint32_t i = 0; i < s->plan->limits.cgroup_count; i++) {
		if (s->box->cgroups.dirs[i] >= 0)
			(void)cgroup_destroy(
			    s->plan->limits.cgroups[i].parent, s->spec->name, deadline);
	}
	cgroup_set_close(&s->box->cgroups);
	if (s->recorded && qemu_site_path(s->site, dir) == 0)
		(void)record_remove(dir, s->spec->name); /* as above */
	s->recorded = false;
}

/* ---- the two ways to a machine ---- */

static int start_clone(struct start *s, const struct machine_spec *m, struct err *err)
{
	const struct machine_hooks hooks = {start_born, start_limit, s};
	struct driver_box *b = s->box;
	char order[96];
	int rc = machine_launch(m, s->base, &hooks, s->spec->deadline_ns, &b->machine, err);

	(void)snprintf(order, sizeof(order),
	    "{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:%d\"}}",
	    MACHINE_FD_STATE);
	if (rc == 0)
		rc = qmp_begin(&b->qmp, &b->machine, s->spec->deadline_ns, err);
	if (rc == 0)
		rc = qmp_order(&b->qmp, QMP_IGNORE_SHARED, s->spec->deadline_ns, err);
	if (rc == 0)
		rc = qmp_order(&b->qmp, order, s->spec->deadline_ns, err);
	return rc;
}

static int start_boot(struct start *s, const struct machine_spec *m, struct err *err)
{
	const struct machine_hooks hooks = {start_born, start_limit, s};
	int rc = template_boot(m, s->spec, s->base, &hooks, &s->box->machine, err);

	return rc == 0 ? qmp_begin(&s->box->qmp, &s->box->machine, s->spec->deadline_ns, err) : rc;
}

static int start_with(struct start *s, const struct machine_spec *m, struct err *err)
{
	struct machine *machine = &s->box->machine;
	int rc = m->boots ? start_boot(s, m, err) : start_clone(s, m, err);

	if (rc == 0)
		rc = talk_wake(machine, s->spec, s->spec->deadline_ns, err);
	if (FAULT_FAILS("driver.qemu.started"))
		rc = err_set(err, EIO, "fault");
	if (rc < 0) {
		if (proc_was_killed(machine->pidfd, machine->qmp))
			rc = err_set(err, EOWNERDEAD, "QEMU was killed");
		machine_explain(machine, err);
		start_undo(s);
		return rc;
	}
	/* It runs: from now on it opens nothing for writing. */
	fd_close(&machine->listener);
	fd_close(&machine->words);
	fd_close(&machine->console);
	fd_close(&machine->said);
	return 0;
}

/* QEMU ended by itself although nobody was short of time: so what it was given is to blame. */
static bool is_damage(int rc)
{
	return rc == -EPIPE || rc == -EREMOTEIO;
}

static int start_from_template(struct start *s, struct machine_spec *m, struct err *err)
{
	struct template t;
	int rc;

	for (int i = 0; i < TRIES; i++) {
		rc = template_get(s->site, s->plan, s->spec, s->base, &t, err);
		if (rc < 0)
			return rc;
		m->memory = t.memory;
		m->state = t.state;
		rc = start_with(s, m, err);
		template_close(&t);
		if (!is_damage(rc))
			return rc;
		log_warn("box %s: %s does not come to life, and is made anew: %s", s->spec->name,
		    t.entry.path, err ? err->text : "");
		store_discard(t.entry.path);
	}
	return rc;
}

/* One that begins by itself, with memory of its own. */
static int start_alone(struct start *s, struct machine_spec *m, struct err *err)
{
	FD_SCOPED int memory = memfd_create("memory", MFD_CLOEXEC);

	if (memory < 0 || ftruncate(memory, (off_t)m->memory_mib << 20) < 0)
		return err_sys(err, errno, "get %u MiB of memory for a box", m->memory_mib);
	m->boots = true;
	m->shared = true;
	m->memory = memory;
	m->state = -1;
	return start_with(s, m, err);
}

static int start_run(struct start *s, struct err *err)
{
	FD_SCOPED int disk = image_open_disk(s->plan, s->spec->deadline_ns, err);
	struct machine_spec m = {
	    .plan = s->plan,
	    .memory_mib = machine_memory_mib(s->spec),
	    .cpus = machine_cpus(s->spec),
	    .disk = disk,
	    .state = -1,
	};
	int rc;

	if (disk < 0)
		return disk;
	store_touch(s->plan->modules);
	/* Of the kernel only what was unpacked is ours. */
	if (!strncmp(s->plan->kernel, s->site->state_dir, strlen(s->site->state_dir)))
		store_touch(s->plan->kernel);
	if (s->plan->flags & QEMU_F_TEMPLATES) {
		rc = start_from_template(s, &m, err);
		if (rc != -EDQUOT)
			return rc;
		log_warn("box %s boots, for want of room for its template: %s", s->spec->name,
		    err ? err->text : "");
	}
	return start_alone(s, &m, err);
}

static int start_check(const struct start *s, struct err *err)
{
	char dir[QEMU_PATH];
	pid_t pid;
	uint64_t begin;

	if (!driver_owns_name(s->site, s->spec->name))
		return err_set(err, EINVAL, "%s is no box name of instance %s", s->spec->name,
		    s->site->instance);
	/* Only what the configuration names: a client must not choose what of the host it sees. */
	if (strcmp(s->spec->image, s->plan->image) != 0)
		return err_set(err, EINVAL, "image %s is not the one this service was set up for",
		    s->spec->image);
	if (clock_now_ns() >= s->spec->deadline_ns)
		return err_set(err, ETIMEDOUT, "the box was to have started already");
	if (qemu_site_path(s->site, dir) == 0 &&
	    record_read(dir, s->spec->name, &pid, &begin) != -ENOENT)
		return err_set(err, EEXIST, "there is a box %s already", s->spec->name);
	return 0;
}

int qemu_start(const struct driver_site *site, const struct driver_spec *spec,
    struct driver_box **box, int *stream, struct err *err)
{
	struct qemu_plan *plan = qemu_plan_load(site, err);
	struct start s = {.site = site, .spec = spec, .plan = plan};
	int rc;

	if (!plan)
		return -EINVAL;
	if (site->uid_base)
		s.base = site->uid_base + spec->slot * DRIVER_UIDS;
	s.box = calloc(1, sizeof(*s.box));
	if (!s.box) {
		free(plan);
		return err_sys(err, ENOMEM, "start box %s", spec->name);
	}
	rc = start_check(&s, err);
	if (rc == 0) {
		s.box->cpu = -1;
		s.box->memory = -1;
		cgroup_set_init(&s.box->cgroups);
		rc = start_run(&s, err);
	}
	if (rc == 0) {
		s.box->qmp.m = &s.box->machine;
		cgroup_open_stats(&plan->limits, &s.box->cgroups);
		*box = s.box;
		*stream = fd_take(&s.box->machine.stream);
	} else {
		free(s.box);
	}
	free(plan);
	return rc;
}
