/*
 * trial: that there is a /dev/kvm says little: a kernel is booted to see whether it does. Janitor;
 * if it dies QEMU is killed, and who comes next tries anew.
 *
 * Of a KVM that does not work QEMU mostly says so at once. One that only looks as if it worked
 * (nested virtualization) may leave it hanging: that is what patience is for. A host that is too
 * busy cannot be told from that, so such a "no" is not for ever.
 */
#include "drivers/qemu/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drivers/qemu/program.h"
#include "drivers/qemu/store.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"

#define NOTE (TRIAL_WHY + 32)
#define YES "yes"
#define NO "no "
#define TRIES 8 /* with notes that have grown old as soon as they are there */

/* Suspended time counts: it is as good a reason to look again. */
static unsigned long long seconds_now(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (unsigned long long)ts.tv_sec;
}

/* ---- the note: "yes", or "no SECONDS why" ---- */

/* False: it is too old to be an answer, or nobody's. */
static bool note_read(const char *path, const struct trial_how *how, struct trial *out)
{
	char text[NOTE] = "";
	char *why;
	unsigned long long since;

	(void)fd_read_file_at(AT_FDCWD, path, text, sizeof(text)); /* it may be gone again */
	out->boots = !strcmp(text, YES);
	out->why[0] = '\0';
	if (out->boots)
		return true;
	if (strncmp(text, NO, strlen(NO)) != 0)
		return false;
	since = strtoull(text + strlen(NO), &why, 10);
	(void)snprintf(out->why, sizeof(out->why), "%s", why + (*why == ' '));
	if (how->look || how->again)
		return how->look;
	return seconds_now() >= since && seconds_now() - since < TRIAL_AGAIN_S;
}

static int note_write(const char *path, const struct trial *t)
{
	char text[NOTE];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	int rc = fd < 0 ? -errno : 0;
	int n = t->boots ? snprintf(text, sizeof(text), YES)
			 : snprintf(text, sizeof(text), NO "%llu %s", seconds_now(), t->why);

	if (rc == 0 && write(fd, text, (size_t)n) != n)
		rc = -EIO;
	fd_close(&fd);
	return rc;
}

/* ---- the trial ---- */

/* The kernel boots without anything: it panics for want of a root, and the machine ends. True: what
 * came of it is worth a note. */
static bool try_now(const struct qemu_plan *plan, const struct trial_how *how, struct trial *out)
{
	const char *const argv[] = {plan->binary, "-M",
	    "microvm,x-option-roms=off,pit=off,pic=off,rtc=on,isa-serial=off", "-accel", "kvm",
	    "-cpu", plan->cpu, "-m", "256M", "-bios", "qboot.rom", "-nodefaults", "-no-user-config",
	    "-display", "none", "-monitor", "none", "-serial", "none", "-no-reboot", "-kernel",
	    plan->kernel, "-append", "panic=-1 reboot=t quiet", NULL};
	uint64_t patient_until = clock_now_ns() + how->patience_ns;
	bool hurried = how->deadline_ns < patient_until;
	struct err said = {0};
	int rc = program_run(argv, -1, -1, hurried ? how->deadline_ns : patient_until, &said);

	*out = (struct trial){.boots = rc == 0};
	if (rc == -ETIMEDOUT)
		(void)snprintf(out->why, sizeof(out->why),
		    "no kernel has booted with " TRIAL_KVM " in %u s%s",
		    (unsigned int)(how->patience_ns / NS_PER_S),
		    hurried ? ", of which other work took a part" : "");
	else if (rc < 0)
		(void)snprintf(out->why, sizeof(out->why),
		    "no kernel boots with " TRIAL_KVM ": %.160s", said.text);
	if (rc < 0)
		log_warn("%s", out->why);
	return rc == 0 || rc == -EIO || (rc == -ETIMEDOUT && !hurried);
}

static int note_digest(
    const struct qemu_plan *plan, const struct found *found, uint8_t digest[DIGEST_LEN])
{
	char boot[64] = "";
	const struct digest_part parts[] = {{"trial 2", 7}, {boot, sizeof(boot)},
	    {found->binary, sizeof(found->binary)}, {plan->kernel, strlen(plan->kernel)},
	    {plan->cpu, strlen(plan->cpu)}};

	(void)fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	return digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), digest);
}

/* We are the one to try: others wait for it. */
static int try_and_note(const struct qemu_plan *plan, const struct trial_how *how,
    struct store_entry *e, struct trial *out, struct err *err)
{
	bool counts = try_now(plan, how, out);
	int rc = counts ? note_write(e->new_path, out) : 0;

	FAULT_POINT("driver.qemu.probe.tried");
	if (counts && rc == 0)
		return store_keep(e, err);
	store_give_up(e);
	return rc < 0 ? err_sys(err, -rc, "note the trial of KVM") : 0;
}

/* Changes nothing. */
static int look(const struct driver_site *site, const uint8_t digest[DIGEST_LEN],
    const struct trial_how *how, struct trial *out, struct err *err)
{
	char path[QEMU_PATH];
	int rc = store_path(site, "trial", digest, path, err);

	*out = (struct trial){.boots = false};
	if (rc == 0 && !note_read(path, how, out))
		(void)snprintf(
		    out->why, sizeof(out->why), "nobody has tried " TRIAL_KVM " since the start");
	return rc;
}

int trial_kvm(const struct driver_site *site, const struct qemu_plan *plan,
    const struct found *found, const struct trial_how *how, struct trial *out, struct err *err)
{
	uint8_t digest[DIGEST_LEN];
	struct store_entry e;
	int rc;

	if (note_digest(plan, found, digest) < 0)
		return err_sys(err, EIO, "make a digest");
	if (how->look)
		return look(site, digest, how, out, err);
	for (int i = 0; i < TRIES; i++) {
		rc = store_get(site, "trial", digest, how->deadline_ns, &e, err);
		if (rc == 0)
			return try_and_note(plan, how, &e, out, err);
		if (rc < 0 || note_read(e.path, how, out))
			return rc < 0 ? rc : 0;
		store_discard(e.path);
	}
	return err_set(err, EAGAIN, "others try KVM here again and again");
}
