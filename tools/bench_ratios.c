/* bench_ratios: sbxbench ratios. Each row is measured in turn with its baseline, so that a noisy
 * machine disturbs both alike. Holds no state. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/bench.h"
#include "tools/bench_command.h"

static const struct section {
	const char *name;
	int (*fn)(uint32_t boxes);
	const char *what;
	bool is_long; /* done only when it is named */
} sections[] = {
    {"warm", bench_warm, "acquire of a released box", false},
    {"cold", bench_cold, "acquire of a new box, and its first command", false},
    {"run", bench_run, "a command in a box", false},
    {"exec", bench_exec, "a command as an execution, attached", false},
    {"read", bench_read, "a large file from a box", false},
    {"write", bench_write, "a large file into a box", false},
    {"files", bench_files, "a search in a box", false},
    {"tar", bench_tar, "many small files into a box", false},
    {"memory", bench_memory, "an idle box", false},
    {"events", bench_events, "acquires while somebody follows the events", false},
    {"recovery", bench_recovery, "acquire of a box whose worker is killed", false},
    {"restart", bench_restart, "sbxd killed and started again, 1000 boxes", true},
    {"flat", bench_flat, "warm acquires among 10 boxes and among 10000", true},
    {"top", bench_top, "sbxtop: a snapshot of 10000 boxes, and drawing it", false},
    {"qemu", bench_qemu, "micro-VMs: copied, warm, from stock, parked", true},
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

static const struct section *find_section(const char *name)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		if (strcmp(sections[i].name, name) == 0)
			return &sections[i];
	}
	return NULL;
}

static int refuse_section(const struct bench_command *self, const char *name)
{
	(void)fprintf(stderr, "sections:\n");
	for (size_t i = 0; i < SECTIONS; i++)
		(void)fprintf(stderr, "  %-10s %s%s\n", sections[i].name, sections[i].what,
		    sections[i].is_long ? " (only when named)" : "");
	return bench_usage(self, "no section '%s'", name);
}

static void print_head(void)
{
	struct utsname host;

	(void)uname(&host);
	(void)printf("%s %s, %ld cpus, sbxd %s; medians; each row in turn with its baseline\n\n",
	    host.sysname, host.release, sysconf(_SC_NPROCESSORS_ONLN), SBX_VERSION);
	print_table_head();
}

int bench_ratios_main(const struct bench_command *self, int argc, char **argv)
{
	uint32_t boxes = 0;
	const struct bench_option options[] = {
	    {"boxes", BENCH_COUNT, &boxes, "N", "how many, in sections that have many", 1, 100000,
		NULL},
	};
	int missed = 0;
	int status;
	int at = bench_parse(self, options, 1, argc, argv, &status);

	if (at < 0)
		return status;
	for (int i = at; i < argc; i++) {
		if (!find_section(argv[i]))
			return refuse_section(self, argv[i]);
	}
	print_head();
	for (size_t i = 0; at == argc && i < SECTIONS; i++)
		missed += sections[i].is_long ? 0 : sections[i].fn(boxes);
	for (int i = at; i < argc; i++)
		missed += find_section(argv[i])->fn(boxes);
	(void)printf("\n");
	bench_note("%d missed", missed);
	bench_print_notes();
	return missed ? BENCH_WRONG : BENCH_OK;
}
