/*
 * probe: can this host run micro-VMs, and how. Janitor.
 */
#include "drivers/qemu/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/namespace/cgroup_site.h"
#include "drivers/qemu/image.h"
#include "drivers/qemu/program.h"
#include "drivers/qemu/qemu.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/trial.h"
#include "drivers/qemu/tsc.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define BINARY "qemu-system-x86_64"
#define PACKAGE "qemu-system-x86"
#define VERSION_MIN 7 /* the major number */
#define VERSION_NS (10 * NS_PER_S * FAULT_SLOW())
/* For a kernel to boot with KVM: takes half a second, and 20 on an emulated host. */
#define TRIAL_NS (60 * NS_PER_S * FAULT_SLOW())
#define CPU_KVM "host"
#define CPU_TCG "max,la57=off" /* what is emulated anyway costs least with 4 levels of pages */

static int find_binary(const struct driver_options *o, struct qemu_plan *plan, struct err *err)
{
	const char *given = driver_option(o, "qemu.binary");
	char *slash;

	if (given)
		(void)snprintf(plan->binary, sizeof(plan->binary), "%s", given);
	else if (program_find(BINARY, plan->binary, sizeof(plan->binary)) < 0)
		return err_set(err, ENOENT, "there is no " BINARY ": install " PACKAGE);
	if (access(plan->binary, X_OK) < 0)
		return err_sys(err, errno, "run QEMU at %s", plan->binary);
	/* The directory that has bin/ and share/ of it. */
	(void)snprintf(plan->prefix, sizeof(plan->prefix), "%s", plan->binary);
	for (int i = 0; i < 2; i++) {
		slash = strrchr(plan->prefix, '/');
		if (slash)
			*slash = '\0';
	}
	if (!plan->prefix[0])
		return err_set(
		    err, EINVAL, "QEMU at %s is not in a directory of its own", plan->binary);
	if (!strcmp(plan->prefix, "/usr") || !strncmp(plan->prefix, "/usr/", 5))
		plan->prefix[0] = '\0';
	return 0;
}

static uint64_t earlier(uint64_t deadline_ns, uint64_t most_ns)
{
	uint64_t other = clock_now_ns() + most_ns;

	return other < deadline_ns ? other : deadline_ns;
}

static int look_at_binary(const struct qemu_plan *plan, struct found *found, struct err *err)
{
	int rc = store_identity(plan->binary, found->binary);

	return rc < 0 ? err_sys(err, -rc, "look at %s", plan->binary) : 0;
}

static int ask_version(
    const struct qemu_plan *plan, struct found *found, uint64_t deadline_ns, struct err *err)
{
	FD_SCOPED int out = memfd_create("version", MFD_CLOEXEC);
	const char *const argv[] = {plan->binary, "--version", NULL};
	char text[256] = "";
	const char *at;
	ssize_t n;
	int rc;

	if (out < 0)
		return err_sys(err, errno, "ask %s for its version", plan->binary);
	rc = program_run(argv, -1, out, earlier(deadline_ns, VERSION_NS), err);
	if (rc < 0)
		return rc;
	n = pread(out, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "version ");
	if (!at)
		return err_set(err, EINVAL, "%s does not tell its version", plan->binary);
	at += strlen("version ");
	(void)snprintf(
	    found->version, sizeof(found->version), "%.*s", (int)strcspn(at, " \n("), at);
	if (strtoul(found->version, NULL, 10) < VERSION_MIN)
		return err_set(err, ENOSYS, "%s is version %s: %d.0 or newer is needed",
		    plan->binary, found->version, VERSION_MIN);
	return 0;
}

/* ---- KVM ---- */

static void use_accel(const struct driver_options *o, struct qemu_plan *plan, bool kvm)
{
	const char *cpu = driver_option(o, "qemu.cpu");

	plan->flags = (plan->flags & ~QEMU_F_KVM) | (kvm ? QEMU_F_KVM : 0U);
	(void)snprintf(plan->cpu, sizeof(plan->cpu), "%s", cpu ? cpu : kvm ? CPU_KVM : CPU_TCG);
}

static int try_kvm(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    const struct trial_how *how, struct err *err)
{
	struct trial t = {0};
	int rc;

	if (access(TRIAL_KVM, R_OK | W_OK) < 0) {
		rc = -errno;
		(void)snprintf(
		    found->no_kvm, sizeof(found->no_kvm), "use " TRIAL_KVM ": %s", strerror(-rc));
		return rc;
	}
	use_accel(&site->options, plan, true);
	rc = trial_kvm(site, plan, found, how, &t, err);
	(void)snprintf(found->no_kvm, sizeof(found->no_kvm), "%s", t.why);
	return rc < 0 ? rc : t.boots ? 0 : -ENODEV;
}

static int choose_accel(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    bool looks, uint64_t deadline_ns, struct err *err)
{
	const char *accel = driver_option(&site->options, "qemu.accel");
	bool wanted = accel && !strcmp(accel, "kvm");
	const struct trial_how how = {
	    .patience_ns = TRIAL_NS,
	    .deadline_ns = deadline_ns,
	    .again = wanted,
	    .look = looks,
	};
	int rc = -ENODEV;

	if (accel && !wanted && strcmp(accel, "auto") != 0 && strcmp(accel, "tcg") != 0)
		return err_set(err, EINVAL, "qemu.accel: '%s' is none of auto, kvm, tcg", accel);
	found->no_kvm[0] = '\0';
	if (accel && !strcmp(accel, "tcg"))
		(void)snprintf(found->no_kvm, sizeof(found->no_kvm), "qemu.accel is tcg");
	else
		rc = try_kvm(site, plan, found, &how, err);
	use_accel(&site->options, plan, rc == 0);
	/* Without a reason, it could not even be tried. */
	if (rc < 0 && (wanted || !found->no_kvm[0]))
		return found->no_kvm[0] ? err_set(err, -rc, "%s", found->no_kvm) : rc;
	return 0;
}

static bool is_no(const char *text)
{
	return text && (!strcmp(text, "false") || !strcmp(text, "no"));
}

static int probe(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    bool looks, uint64_t deadline_ns, struct err *err)
{
	int rc = 0;

	if (geteuid() == 0 && !site->uid_base)
		return err_set(err, EINVAL, "root must give boxes uids of their own: set uid_base");
	plan->tsc_khz = tsc_khz();
	if (!plan->tsc_khz)
		return err_set(err, ENOSYS, "micro-VMs are for x86-64");
	if (!is_no(driver_option(&site->options, "qemu.templates")))
		plan->flags |= QEMU_F_TEMPLATES;
	rc = find_binary(&site->options, plan, err);
	if (rc == 0)
		rc = look_at_binary(plan, found, err);
	if (rc == 0 && !looks)
		rc = ask_version(plan, found, deadline_ns, err);
	if (rc == 0)
		rc = kernel_find(&site->options, &found->files, err);
	(void)snprintf(plan->version, sizeof(plan->version), "%s", found->version);
	(void)snprintf(plan->release, sizeof(plan->release), "%s", found->files.version);
	if (rc == 0)
		rc = image_probe(err);
	if (rc == 0)
		rc = kernel_unpack(site, &found->files, plan, deadline_ns, err);
	if (rc == 0)
		rc = choose_accel(site, plan, found, looks, deadline_ns, err);
	return rc;
}

int probe_host(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    uint64_t deadline_ns, struct err *err)
{
	return probe(site, plan, found, false, deadline_ns, err);
}

int probe_look(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    uint64_t deadline_ns, struct err *err)
{
	return probe(site, plan, found, true, deadline_ns, err);
}

int qemu_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err)
{
	struct driver_facts out = {0};
	struct qemu_plan *plan = calloc(1, sizeof(*plan));
	struct found *found = calloc(1, sizeof(*found));
	int rc = -ENOMEM;

	if (plan && found)
		rc = probe_host(site, plan, found, clock_now_ns() + PREPARE_NS, err);
	else
		(void)err_sys(err, ENOMEM, "look for QEMU");
	if (rc == 0 && plan) {
		out.only_if_asked = !(plan->flags & QEMU_F_KVM);
		(void)snprintf(out.why_asked, sizeof(out.why_asked), "%s", found->no_kvm);
		(void)snprintf(out.isolation, sizeof(out.isolation), "%s",
		    plan->flags & QEMU_F_KVM ? "microvm-kvm" : "microvm-tcg");
		cgroup_site_warn(site, out.warning, sizeof(out.warning));
		*facts = out;
	}
	free(plan);
	free(found);
	return rc;
}
