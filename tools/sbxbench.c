/* sbxbench: the measuring program of sbxd: one table of commands. What it starts is ended with it
 * (bench_private.h). */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench.h"
#include "tools/bench_command.h"

static const struct bench_command commands[] = {
    {"run", "[OPTION...]", "turns of a scenario and a workload, a line of JSON for each",
	bench_run_main},
    {"summarize", "[OPTION...] FILE...", "percentiles of such rows, in groups",
	bench_summarize_main},
    {"plot", "[OPTION...] FILE...", "a histogram of such rows, warm and cold, as SVG (gnuplot)",
	bench_plot_main},
    {"limits", "[OPTION...]", "what the kernel alone costs here, of which all else is made",
	bench_limits_main},
    {"compare", "[OPTION...]",
	"the same work by bwrap, crun, runc, podman and srt, where they are installed",
	bench_compare_main},
    {"scale", "[OPTION...]", "acquires and memory with 10 to 10,000 scopes and 1 to 64 clients",
	bench_scale_main},
    {"ratios", "[--boxes N] [SECTION...]",
	"each thing that sbxd does in turn with its baseline, and the ratio that is aimed at",
	bench_ratios_main},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void put_help(FILE *f)
{
	(void)fprintf(f, "usage: sbxbench COMMAND [OPTION...] [ARGUMENT...]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		(void)fprintf(
		    f, "  %s %s\n      %s\n", commands[i].name, commands[i].args, commands[i].help);
	(void)fprintf(f, "\nsbxbench COMMAND --help lists its options.\n"
			 "Exit status: 0; 1 errors are among what was measured, or an aim was "
			 "missed; 2 usage;\n"
			 "125 it could not be measured; 128+N signal N ended it.\n");
}

static const struct bench_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct bench_command *c;

	(void)signal(SIGPIPE, SIG_IGN); /* fails only for numbers that are no signals */
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
		put_help(stdout);
		return bench_finish(BENCH_OK);
	}
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		(void)printf("sbxbench %s\n", SBX_VERSION);
		return bench_finish(BENCH_OK);
	}
	c = argc > 1 ? find_command(argv[1]) : NULL;
	if (c)
		return bench_finish(c->run(c, argc - 1, argv + 1));
	if (argc > 1)
		(void)fprintf(stderr, "sbxbench: unknown command '%s'\n", argv[1]);
	put_help(stderr);
	return BENCH_USAGE;
}
