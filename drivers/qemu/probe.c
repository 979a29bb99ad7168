/*
 * probe: can this host run micro-VMs, and how. Janitor. That there is a /dev/kvm says little: a
 * kernel is booted to see whether it does.
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
#include "drivers/qemu/tsc.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define BINARY "qemu-system-x86_64"
#define PACKAGE "qemu-system-x86"
#define VERSION_MIN 7 /* the major number */
#define VERSION_NS (10 * NS_PER_S)
/* Takes half a second where it works, and 20 on an emulated host. Where it does not work QEMU says
 * so at once. */
#define TRIAL_NS (60 * NS_PER_S)
#define KVM "/dev/kvm"
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

static int ask_version(const struct qemu_plan *plan, struct found *found, struct err *err)
{
	FD_SCOPED int out = memfd_create("version", MFD_CLOEXEC);
	const char *const argv[] = {plan->binary, "--version", NULL};
	char text[256] = "";
	const char *at;
	ssize_t n;
	int rc = store_identity(plan->binary, found->binary);

	if (rc == 0 && out < 0)
		rc = -errno;
	if (rc < 0)
		return err_sys(err, -rc, "look at %s", plan->binary);
	rc = program_run(argv, -1, out, clock_now_ns() + VERSION_NS, err);
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

/* Boots the kernel without anything: it panics for want of a root, and the machine ends. */
static bool kvm_boots(const struct qemu_plan *plan)
{
	const char *const argv[] = {plan->binary, "-M",
	    "microvm,x-option-roms=off,pit=off,pic=off,rtc=on,isa-serial=off", "-accel", "kvm",
	    "-cpu", plan->cpu, "-m", "256M", "-bios", "qboot.rom", "-nodefaults", "-no-user-config",
	    "-display", "none", "-monitor", "none", "-serial", "none", "-no-reboot", "-kernel",
	    plan->kernel, "-append", "panic=-1 reboot=t quiet", NULL};
	struct err ignored = {0};

	return program_run(argv, -1, -1, clock_now_ns() + TRIAL_NS, &ignored) == 0;
}

/* Once for each start of the host, QEMU and kernel. */
static int kvm_try(const struct driver_site *site, const struct qemu_plan *plan,
    const struct found *found, bool *works, struct err *err)
{
	char boot[64] = "";
	char word[8] = "";
	struct store_entry e;
	uint8_t digest[DIGEST_LEN];
	const struct digest_part parts[] = {{"trial 1", 7}, {boot, sizeof(boot)},
	    {found->binary, sizeof(found->binary)}, {plan->kernel, strlen(plan->kernel)},
	    {plan->cpu, strlen(plan->cpu)}};
	int rc;

	(void)fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), digest) < 0)
		return err_sys(err, EIO, "make a digest");
	rc = store_get(site, "trial", digest, clock_now_ns() + TRIAL_NS, &e, err);
	if (rc < 0)
		return rc;
	if (rc == 1) {
		(void)fd_read_file_at(AT_FDCWD, e.path, word, sizeof(word));
		*works = !strcmp(word, "yes");
		return 0;
	}
	*works = kvm_boots(plan);
	FAULT_POINT("driver.qemu.probe.tried");
	rc = open(e.new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	if (rc >= 0) {
		(void)close(rc);
		rc = 0;
		if (*works)
			rc = fd_write_file_at(AT_FDCWD, e.new_path, "yes");
	}
	if (rc < 0) {
		store_give_up(&e);
		return err_sys(err, rc == -1 ? EIO : -rc, "note the trial of KVM");
	}
	return store_keep(&e, err);
}

static void use_accel(const struct driver_options *o, struct qemu_plan *plan, bool kvm)
{
	const char *cpu = driver_option(o, "qemu.cpu");

	plan->flags = (plan->flags & ~QEMU_F_KVM) | (kvm ? QEMU_F_KVM : 0U);
	(void)snprintf(plan->cpu, sizeof(plan->cpu), "%s", cpu ? cpu : kvm ? CPU_KVM : CPU_TCG);
}

static int choose_accel(const struct driver_site *site, struct qemu_plan *plan,
    const struct found *found, struct err *err)
{
	const char *wanted = driver_option(&site->options, "qemu.accel");
	bool works = false;
	int rc = 0;

	if (!wanted)
		wanted = "auto";
	if (strcmp(wanted, "auto") != 0 && strcmp(wanted, "kvm") != 0 && strcmp(wanted, "tcg") != 0)
		return err_set(err, EINVAL, "qemu.accel: '%s' is none of auto, kvm, tcg", wanted);
	if (strcmp(wanted, "tcg") != 0 && access(KVM, R_OK | W_OK) == 0) {
		use_accel(&site->options, plan, true);
		rc = kvm_try(site, plan, found, &works, err);
	} else if (!strcmp(wanted, "kvm")) {
		return err_sys(err, errno, "use " KVM);
	}
	if (rc < 0)
		return rc;
	if (!works && !strcmp(wanted, "kvm"))
		return err_set(err, ENODEV, "a kernel does not boot with " KVM " of this host");
	use_accel(&site->options, plan, works);
	return 0;
}

static bool is_no(const char *text)
{
	return text && (!strcmp(text, "false") || !strcmp(text, "no"));
}

int probe_host(
    const struct driver_site *site, struct qemu_plan *plan, struct found *found, struct err *err)
{
	uint64_t deadline_ns = clock_now_ns() + PREPARE_NS;
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
		rc = ask_version(plan, found, err);
	if (rc == 0)
		rc = kernel_find(&site->options, &found->files, err);
	(void)snprintf(plan->version, sizeof(plan->version), "%s", found->version);
	(void)snprintf(plan->release, sizeof(plan->release), "%s", found->files.version);
	if (rc == 0)
		rc = image_probe(err);
	if (rc == 0)
		rc = kernel_unpack(site, &found->files, plan, deadline_ns, err);
	if (rc == 0)
		rc = choose_accel(site, plan, found, err);
	return rc;
}

int qemu_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err)
{
	struct driver_facts out = {0};
	struct qemu_plan *plan = calloc(1, sizeof(*plan));
	struct found *found = calloc(1, sizeof(*found));
	int rc = -ENOMEM;

	if (plan && found)
		rc = probe_host(site, plan, found, err);
	else
		(void)err_sys(err, ENOMEM, "look for QEMU");
	if (rc == 0 && plan) {
		out.only_if_asked = !(plan->flags & QEMU_F_KVM);
		(void)snprintf(out.isolation, sizeof(out.isolation), "%s",
		    plan->flags & QEMU_F_KVM ? "microvm-kvm" : "microvm-tcg");
		cgroup_site_warn(site, out.warning, sizeof(out.warning));
		*facts = out;
	}
	free(plan);
	free(found);
	return rc;
}
