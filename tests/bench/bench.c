/* bench: `make bench`. Each row is measured in turn with its baseline, so that a noisy machine
 * disturbs both alike. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/bench/bench.h"

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

static void usage(void) __attribute__((noreturn));

static void usage(void)
{
	(void)fprintf(stderr, "usage: sbx-bench [-n BOXES] [SECTION...]\n\n");
	for (size_t i = 0; i < SECTIONS; i++)
		(void)fprintf(stderr, "  %-10s %s%s\n", sections[i].name, sections[i].what,
		    sections[i].is_long ? " (only when named)" : "");
	exit(2);
}

static const struct section *find_section(const char *name)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		if (strcmp(sections[i].name, name) == 0)
			return &sections[i];
	}
	usage();
}

static uint32_t parse_boxes(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (n == 0 || n > 100000 || *end)
		usage();
	return (uint32_t)n;
}

static void print_head(void)
{
	struct utsname host;

	(void)uname(&host);
	(void)printf("%s %s, %ld cpus, sbxd %s; medians; each row in turn with its baseline\n\n",
	    host.sysname, host.release, sysconf(_SC_NPROCESSORS_ONLN), SBX_VERSION);
	print_table_head();
}

int main(int argc, char **argv)
{
	uint32_t boxes = 0;
	int missed = 0;
	int opt;

	while ((opt = getopt(argc, argv, "n:")) != -1) {
		if (opt != 'n')
			usage();
		boxes = parse_boxes(optarg);
	}
	for (int i = optind; i < argc; i++)
		(void)find_section(argv[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	print_head();
	for (size_t i = 0; optind == argc && i < SECTIONS; i++)
		missed += sections[i].is_long ? 0 : sections[i].fn(boxes);
	for (int i = optind; i < argc; i++)
		missed += find_section(argv[i])->fn(boxes);
	(void)printf("\n%d missed\n", missed);
	return missed ? EXIT_FAILURE : EXIT_SUCCESS;
}
