/*
 * bench_command: the commands of sbxbench and their options.
 */
#ifndef SBXD_TOOLS_BENCH_COMMAND_H
#define SBXD_TOOLS_BENCH_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_command {
	const char *name;
	const char *args;
	const char *help;
	/* argv[0] is the command's name. Returns an exit status. */
	int (*run)(const struct bench_command *self, int argc, char **argv);
};

int bench_run_main(const struct bench_command *self, int argc, char **argv);
int bench_summarize_main(const struct bench_command *self, int argc, char **argv);
int bench_limits_main(const struct bench_command *self, int argc, char **argv);
int bench_compare_main(const struct bench_command *self, int argc, char **argv);
int bench_scale_main(const struct bench_command *self, int argc, char **argv);
int bench_plot_main(const struct bench_command *self, int argc, char **argv);
int bench_ratios_main(const struct bench_command *self, int argc, char **argv);

enum bench_option_type {
	BENCH_FLAG,    /* bool * */
	BENCH_TEXT,    /* const char ** */
	BENCH_COUNT,   /* uint32_t *, min to max */
	BENCH_SECONDS, /* double *, min to max */
};

struct bench_option {
	const char *name; /* without dashes */
	enum bench_option_type type;
	void *out;
	const char *arg; /* how --help calls its value; NULL for a flag */
	const char *help;
	double min;
	double max;
	bool *given; /* made true when it is there; may be NULL */
};

#define BENCH_OPTIONS_MAX 24

/*
 * Reads the options of a command; they may stand anywhere. Returns the index of the first argument
 * in argv, or -1 with the status to exit with in *status: after --help, or after saying what is
 * wrong.
 */
int bench_parse(const struct bench_command *self, const struct bench_option *options, size_t count,
    int argc, char **argv, int *status);

/* Says what is wrong and how the command is called. Returns BENCH_USAGE. */
int bench_usage(const struct bench_command *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Flushes stdout; BENCH_FAILED when something could not be written, else status. */
int bench_finish(int status);

#endif
