/*
 * args: QEMU's command line. Worker; holds no state.
 *
 * A clone must be the same machine as its template, to the last device. So there is one command
 * line, and few places where the two differ.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "drivers/qemu/machine.h"

#define KERNEL_MIB 64U /* what the guest's kernel needs for itself */
#define STEP_MIB 32U   /* machines of nearly the same size share a template */
#define CPUS_MAX 32U

#define KERNEL_LINE                                                                                \
	"console=ttyS0 panic=-1 reboot=t SBX_MACHINE=1 nokaslr cryptomgr.notests mitigations=off " \
	"audit=0 apparmor=0 random.trust_cpu=on quiet"
/* What is emulated cannot find out how fast its clock is, and hangs now and then while it tries. */
#define KERNEL_LINE_TCG " tsc_early_khz=%u tsc=reliable no_timer_check"

struct args {
	char *text;
	size_t size;
	size_t len;
	char **argv;
	int argc;
	int rc;
};

__attribute__((format(printf, 2, 3))) static void arg(struct args *a, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (a->rc < 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(a->text + a->len, a->size - a->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= a->size - a->len || a->argc + 1 >= MACHINE_ARGS) {
		a->rc = -E2BIG;
		return;
	}
	a->argv[a->argc++] = a->text + a->len;
	a->len += (size_t)n + 1;
}

#define OPT(a, name, ...) (arg(a, "%s", name), arg(a, __VA_ARGS__))

static void put_machine(struct args *a, const struct machine_spec *m)
{
	bool kvm = m->plan->flags & QEMU_F_KVM;

	OPT(a, "-M",
	    "microvm,x-option-roms=off,pit=off,pic=off,rtc=on,isa-serial=on,acpi=on,"
	    "memory-backend=ram");
	OPT(a, "-accel", "%s", kvm ? "kvm" : "tcg,tb-size=32");
	OPT(a, "-cpu", "%s", m->plan->cpu);
	OPT(a, "-smp", "%u", m->cpus);
	OPT(a, "-m", "%uM", m->memory_mib);
	OPT(a, "-object",
	    "memory-backend-file,id=ram,size=%uM,mem-path=" MACHINE_MEMORY ",share=%s",
	    m->memory_mib, m->shared ? "on" : "off");
	OPT(a, "-bios", "qboot.rom");
	arg(a, "-nodefaults");
	arg(a, "-no-user-config");
	arg(a, "-no-reboot");
	OPT(a, "-display", "none");
	OPT(a, "-monitor", "none");
	OPT(a, "-sandbox",
	    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
}

static void put_devices(struct args *a, const struct machine_spec *m)
{
	OPT(a, "-global", "virtio-mmio.force-legacy=false");
	OPT(a, "-add-fd", "set=1,fd=%d", MACHINE_FD_DISK);
	OPT(a, "-blockdev",
	    "driver=file,node-name=image,filename=/dev/fdset/1,read-only=on,locking=off");
	OPT(a, "-blockdev", "driver=raw,node-name=root,file=image,read-only=on");
	OPT(a, "-device", "virtio-blk-device,drive=root");
	OPT(a, "-chardev", "socket,id=agent,fd=%d", MACHINE_FD_AGENT);
	OPT(a, "-device", "virtio-serial-device,max_ports=2");
	OPT(a, "-device", "virtserialport,chardev=agent,name=sbx.agent");
	OPT(a, "-chardev", "socket,id=qmp,fd=%d", MACHINE_FD_QMP);
	OPT(a, "-mon", "chardev=qmp,mode=control");
	if (m->boots)
		OPT(a, "-chardev", "socket,id=console,fd=%d", MACHINE_FD_CONSOLE);
	else
		OPT(a, "-chardev", "null,id=console");
	OPT(a, "-serial", "chardev:console");
}

static void put_origin(struct args *a, const struct machine_spec *m)
{
	bool kvm = m->plan->flags & QEMU_F_KVM;

	if (!m->boots) {
		OPT(a, "-incoming", "defer");
		return;
	}
	OPT(a, "-kernel", MACHINE_KERNEL);
	OPT(a, "-initrd", MACHINE_INITRD);
	if (kvm)
		OPT(a, "-append", KERNEL_LINE);
	else
		OPT(a, "-append", KERNEL_LINE KERNEL_LINE_TCG, m->plan->tsc_khz);
}

int machine_args(const struct machine_spec *m, char *text, size_t size, char *argv[MACHINE_ARGS])
{
	struct args a = {.text = text, .size = size, .argv = argv};

	arg(&a, "%s", m->plan->binary);
	put_machine(&a, m);
	put_devices(&a, m);
	put_origin(&a, m);
	argv[a.argc] = NULL;
	return a.rc;
}

uint32_t machine_memory_mib(const struct driver_spec *spec)
{
	uint64_t mib = (uint64_t)spec->memory_mib + spec->disk_mib + KERNEL_MIB;

	return (uint32_t)((mib + STEP_MIB - 1) / STEP_MIB * STEP_MIB);
}

/* No limit is one processor, too: more of them would stand idle, and cost memory. */
uint32_t machine_cpus(const struct driver_spec *spec)
{
	uint32_t cpus = (spec->cpus_milli + 999) / 1000;

	return cpus < 1 ? 1 : cpus > CPUS_MAX ? CPUS_MAX : cpus;
}
