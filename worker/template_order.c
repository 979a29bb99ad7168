/*
 * template_order: one order of sbxd's about templates, whatever driver has them. If it dies while
 * it makes one, what it made is removed by the next CTL_IMAGE_SWEEP.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/template.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "worker/image_order_int.h"

#define TELL_NS (100 * NS_PER_MS) /* between two words of the same stage */

static const char *const state_names[] = {
    [DRIVER_TEMPLATE_CURRENT] = "current",
    [DRIVER_TEMPLATE_STALE] = "stale",
    [DRIVER_TEMPLATE_DAMAGED] = "damaged",
};

struct listing {
	struct json_out *out;
	const char *only; /* a key; "" all */
};

static void put_text(struct json_out *j, const char *key, const char *text)
{
	json_put_string(j, key, *text ? text : NULL);
}

static int put_template(void *ctx, const struct driver_template *t)
{
	const struct listing *l = ctx;
	struct json_out *j = l->out;

	if (*l->only && strcmp(l->only, t->key) != 0)
		return 0;
	json_object_begin(j, NULL);
	json_put_string(j, "key", t->key);
	put_text(j, "image", t->image);
	json_put_uint(j, "memory_mib", t->memory_mib);
	json_put_uint(j, "cpus", t->cpus);
	put_text(j, "accelerator", t->accelerator);
	put_text(j, "cpu_model", t->cpu_model);
	put_text(j, "qemu_version", t->version);
	put_text(j, "kernel_release", t->kernel);
	json_put_string(j, "state", state_names[t->state]);
	put_text(j, "why", t->why);
	json_put_uint(j, "boxes", t->boxes);
	json_put_uint(j, "size_bytes", t->bytes);
	json_put_uint(j, "made_wall_ms", t->made_wall_ms);
	json_put_uint(j, "used_wall_ms", t->used_wall_ms);
	json_object_end(j);
	return 0;
}

static int put_list(const struct image_job *job, const char *only, struct err *err)
{
	struct listing l = {.out = job->result, .only = only};
	const struct driver *driver;
	int rc = 0;

	json_array_begin(job->result, "templates");
	for (unsigned int n = 0; rc == 0 && (driver = driver_at(n)); n++) {
		if (driver->templates)
			rc = driver->templates->each(
			    job->site, job->guest, job->helper, put_template, &l, err);
	}
	json_array_end(job->result);
	return rc;
}

int template_order_list(const struct image_job *job, struct err *err)
{
	int rc;

	json_object_begin(job->result, NULL);
	rc = put_list(job, "", err);
	json_object_end(job->result);
	return rc;
}

/* ---- building ---- */

/* In a process of its own: what boots a machine waits for that machine, and not for sbxd. */
static _Noreturn void guard_main(pid_t builder)
{
	struct pollfd p = {.fd = CTL_FD_CONTROL};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != builder)
		_exit(1);
	/* What is locked or in use by them is the builder's. */
	(void)syscall(SYS_close_range, CTL_FD_CONTROL + 1, ~0U, 0);
	while (!(p.revents & (POLLHUP | POLLERR)) && (poll(&p, 1, -1) > 0 || errno == EINTR))
		;
	(void)kill(builder, SIGKILL); /* our parent, which is alive: we would be dead */
	_exit(0);
}

/* From now on we die with sbxd, and QEMU with us. */
static int die_with_sbxd(struct err *err)
{
	pid_t self = getpid();
	pid_t pid = fork();

	if (pid == 0)
		guard_main(self);
	return pid < 0 ? err_sys(err, errno, "start the process that watches over this") : 0;
}

struct told {
	char stage[16];
	uint64_t next_ns;
};

static void tell(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
	struct told *t = ctx;
	uint64_t now = clock_now_ns();

	if (!strcmp(t->stage, stage) && now < t->next_ns)
		return;
	(void)snprintf(t->stage, sizeof(t->stage), "%s", stage);
	t->next_ns = now + TELL_NS;
	image_order_tell(stage, done, total);
}

int template_order_build(const struct image_job *job, struct err *err)
{
	const struct ctl_image *order = job->order;
	const struct driver *driver = driver_find(order->site.driver);
	struct told told = {.stage = ""};
	const struct driver_spec spec = {
	    .name = "template",
	    .image = order->image,
	    .slot = order->slot,
	    .memory_mib = order->memory_mib,
	    .cpus_milli = order->cpus_milli,
	    .disk_mib = order->disk_mib,
	    .guest = job->guest,
	    .helper = job->helper,
	    .deadline_ns = clock_now_ns() + order->time_ms * NS_PER_MS,
	    .progress = tell,
	    .progress_ctx = &told,
	};
	char key[DRIVER_TEMPLATE_KEY] = "";
	bool made = false;
	int rc;

	if (!driver || !driver->templates)
		return err_set(err, EOPNOTSUPP,
		    "driver %s makes no templates: only boxes of qemu begin as copies",
		    order->site.driver);
	rc = die_with_sbxd(err);
	if (rc == 0)
		rc = driver->templates->build(job->site, &spec, key, &made, err);
	if (rc < 0)
		return rc;
	FAULT_POINT("image.template.built");
	json_object_begin(job->result, NULL);
	rc = put_list(job, key, err);
	json_put_bool(job->result, "built", made);
	json_object_end(job->result);
	return rc;
}

/* ---- removing ---- */

int template_order_remove(const struct image_job *job, struct err *err)
{
	const char *key = job->order->image;
	const struct driver *driver;
	uint64_t bytes = 0;
	int rc = err_set(err, ENOENT, "template not found: %s", key);

	for (unsigned int n = 0; rc == -ENOENT && (driver = driver_at(n)); n++) {
		if (driver->templates)
			rc = driver->templates->remove(job->site, key, &bytes, err);
	}
	if (rc < 0)
		return rc;
	json_object_begin(job->result, NULL);
	json_array_begin(job->result, "removed");
	json_put_string(job->result, NULL, key);
	json_array_end(job->result);
	json_put_uint(job->result, "freed_bytes", bytes);
	json_object_end(job->result);
	return 0;
}
