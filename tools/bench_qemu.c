/*
 * bench_qemu: boxes that are micro-VMs, emulated: copies of a template against boots of the same
 * machine, and what parked ones cost.
 *
 * SBX_ROOT and SBX_KERNEL as for the tests; without them nothing is measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define BOOTS 5
#define CLONES 4 /* for each boot */
#define WARM 50
#define STOCK 4
#define PREWARMED 20
#define PARKED 50
#define SETTLE_MS 1500 /* a box is paused a second after its boot at the latest */
#define IDLE_MS 5000
#define WARM_BOUND_NS (10 * NS_PER_MS)
#define STOCK_BOUND_NS (30 * NS_PER_MS)
#define PARKED_KIB (25 * 1024.0)
#define TICK_MS 10.0

struct bench_vm {
	struct daemon d;
	struct wire w;
};

static void vm_open(struct bench_vm *b, const char *more, const char *qemu)
{
	char config[2048];

	(void)snprintf(config, sizeof(config),
	    "driver: qemu\nimage: %s\nmemory_mib: 128\ndisk_mib: 32\nreplicas: 100\n"
	    "acquire_timeout: 120\nboot_timeout: 120\nhealth_check_timeout: 20\n%s"
	    "qemu:\n  kernel: %s\n  accel: tcg\n%s",
	    getenv("SBX_ROOT"), more, getenv("SBX_KERNEL"), qemu);
	daemon_start(&b->d, config);
	wire_open(&b->w, &b->d);
}

static void vm_close(struct bench_vm *b)
{
	wire_close(&b->w);
	daemon_stop(&b->d);
}

/* From nothing to the end of a first command, and away with it. */
static void measure_first_command(struct bench_vm *b, struct samples *s)
{
	static unsigned int serial;
	struct acquired a;
	char request[512];
	char path[160];
	char thread[32];
	uint64_t begin = clock_now_ns();

	(void)snprintf(thread, sizeof(thread), "cold-%u", serial++);
	call_acquire(&b->w, thread, &a);
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", a.id);
	wire_call(&b->w, request,
	    wire_build(request, sizeof(request), "POST", path, "{\"argv\":[\"/bin/true\"]}"));
	if (wire_json_int(&b->w, "exit_code") != 0)
		bench_give_up("`true` fails");
	if (s)
		samples_add(s, clock_now_ns() - begin);
	call_remove(&b->w, a.id);
}

static int measure_cold(void)
{
	struct bench_vm boots;
	struct bench_vm clones;
	struct samples boot = {0};
	struct samples clone = {0};
	int missed;

	vm_open(&boots, "", "  templates: false\n");
	vm_open(&clones, "", "");
	measure_first_command(&boots, NULL);
	measure_first_command(&clones, NULL); /* makes the template */
	for (int i = 0; i < BOOTS; i++) {
		measure_first_command(&boots, &boot);
		for (int k = 0; k < CLONES; k++)
			measure_first_command(&clones, &clone);
	}
	vm_close(&boots);
	vm_close(&clones);
	missed = print_times("micro-VM, copied: acquire and `true`", "ms", &clone,
	    "the same machine, booted", &boot, 0.3);
	samples_free(&boot);
	samples_free(&clone);
	return missed;
}

static int print_bound(const char *what, struct samples *s, const char *baseline, uint64_t bound_ns)
{
	struct samples bound = {0};
	int missed;

	samples_add(&bound, bound_ns);
	missed = print_times(what, "ms", s, baseline, &bound, 1.0);
	samples_free(&bound);
	samples_free(s);
	return missed;
}

static int measure_warm(void)
{
	struct samples warm = {0};
	struct bench_vm b;
	struct acquired a;

	vm_open(&b, "", "");
	call_acquire(&b.w, "warm", &a);
	for (int i = 0; i < WARM; i++) {
		call_release(&b.w, a.id);
		bench_settle(50); /* it is paused as soon as it is released */
		call_acquire(&b.w, "warm", &a);
		if (strcmp(a.source, "warm") != 0)
			bench_give_up("the warm box is not given");
		samples_add(&warm, a.ns);
	}
	vm_close(&b);
	return print_bound(
	    "micro-VM, paused: warm acquire, checked", &warm, "10 ms", WARM_BOUND_NS);
}

static void await_stock(struct bench_vm *b, long want)
{
	static const char ask[] = "GET /v1/pool HTTP/1.1\r\nHost: localhost\r\n\r\n";

	do {
		bench_settle(20);
		wire_call(&b->w, ask, sizeof(ask) - 1);
	} while (wire_json_int(&b->w, "stock") < want);
	bench_settle(SETTLE_MS);
}

static int measure_stock(void)
{
	struct samples stock = {0};
	struct bench_vm b;
	struct acquired a;
	char thread[32];

	vm_open(&b, "prewarm: 4\n", "");
	for (int i = 0; i < PREWARMED; i++) {
		if (i % STOCK == 0)
			await_stock(&b, STOCK);
		(void)snprintf(thread, sizeof(thread), "stock-%d", i);
		call_acquire(&b.w, thread, &a);
		if (strcmp(a.source, "prewarmed") != 0)
			bench_give_up("the stock is not used");
		samples_add(&stock, a.ns);
		call_remove(&b.w, a.id);
	}
	vm_close(&b);
	return print_bound(
	    "micro-VM, from stock: acquire, checked", &stock, "30 ms", STOCK_BOUND_NS);
}

/* Processor time of a process so far, in ms. */
static double cpu_ms(pid_t pid)
{
	unsigned long long user = 0;
	unsigned long long system = 0;
	char path[48];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
		      &user, &system) != 2)
		bench_give_up("a parked box has no QEMU");
	(void)fclose(f); /* opened for reading */
	return (double)(user + system) * 1000.0 / (double)sysconf(_SC_CLK_TCK);
}

static int measure_parked(uint32_t boxes)
{
	uint32_t n = boxes ? boxes : PARKED;
	pid_t *qemu = calloc(n, sizeof(*qemu));
	double kib = 0;
	double before = 0;
	double after = 0;
	struct bench_vm b;
	struct acquired a;
	char thread[32];
	int missed;

	if (!qemu)
		bench_give_up("no memory");
	vm_open(&b, "", "");
	for (uint32_t i = 0; i < n; i++) {
		(void)snprintf(thread, sizeof(thread), "parked-%u", i);
		call_acquire(&b.w, thread, &a);
		qemu[i] = (pid_t)call_box_number(&b.w, a.id, "box_pid");
		call_release(&b.w, a.id);
	}
	bench_settle(SETTLE_MS);
	for (uint32_t i = 0; i < n; i++) {
		kib += (double)daemon_pss_kib(qemu[i]);
		before += cpu_ms(qemu[i]);
	}
	bench_settle(IDLE_MS);
	for (uint32_t i = 0; i < n; i++)
		after += cpu_ms(qemu[i]);
	vm_close(&b);
	missed = print_row(&(struct row){
	    .what = "micro-VM, parked: PSS of each",
	    .unit = "MiB",
	    .baseline = "25 MiB",
	    .value = kib / n / 1024.0,
	    .p95 = kib / n / 1024.0,
	    .base = PARKED_KIB / 1024.0,
	    .bound = 1.0,
	});
	missed += print_row(&(struct row){
	    .what = "micro-VM, parked: all of them in 5 s",
	    .unit = "ms",
	    .baseline = "what can be measured",
	    .value = after - before,
	    .p95 = after - before,
	    .base = TICK_MS,
	    .bound = 1.0,
	});
	free(qemu);
	return missed;
}

int bench_qemu(uint32_t boxes)
{
	const char *root = getenv("SBX_ROOT");
	const char *kernel = getenv("SBX_KERNEL");

	if (!root || access(root, X_OK) < 0 || !kernel || access(kernel, R_OK) < 0) {
		bench_note("micro-VMs are not measured: SBX_ROOT or SBX_KERNEL is missing");
		return 0;
	}
	return measure_cold() + measure_warm() + measure_stock() + measure_parked(boxes);
}
