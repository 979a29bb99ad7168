/* bench_options: reading the options of a command. sbxbench; holds no state. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"
#include "tools/bench_command.h"

enum { VAL_HELP = 256, VAL_FIRST };

int bench_usage(const struct bench_command *self, const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "sbxbench: ");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\nusage: sbxbench %s %s\n", self->name, self->args);
	return BENCH_USAGE;
}

int bench_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	(void)fprintf(stderr, "sbxbench: standard output: %s\n", strerror(errno));
	return BENCH_FAILED;
}

static void print_help(
    const struct bench_command *self, const struct bench_option *options, size_t count)
{
	(void)printf("usage: sbxbench %s %s\n%s\n\n", self->name, self->args, self->help);
	for (size_t i = 0; i < count; i++) {
		char left[64];

		(void)snprintf(left, sizeof(left), "--%s%s%s", options[i].name,
		    options[i].arg ? " " : "", options[i].arg ? options[i].arg : "");
		(void)printf("  %-34s %s\n", left, options[i].help);
	}
}

static int set_number(
    const struct bench_command *self, const struct bench_option *o, const char *text)
{
	bool whole = o->type == BENCH_COUNT;
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end || errno || !isfinite(value) || value < o->min || value > o->max ||
	    (whole && value != floor(value)))
		return bench_usage(self, "--%s: '%s' is not allowed; give %s from %g to %.0f",
		    o->name, text, whole ? "a whole number" : "seconds", o->min, o->max);
	if (whole)
		*(uint32_t *)o->out = (uint32_t)value;
	else
		*(double *)o->out = value;
	return BENCH_OK;
}

static int set_option(
    const struct bench_command *self, const struct bench_option *o, const char *arg)
{
	if (o->given)
		*o->given = true;
	switch (o->type) {
	case BENCH_FLAG:
		*(bool *)o->out = true;
		return BENCH_OK;
	case BENCH_TEXT:
		*(const char **)o->out = arg;
		return BENCH_OK;
	case BENCH_COUNT:
	case BENCH_SECONDS:
		return set_number(self, o, arg);
	}
	return bench_usage(self, "--%s: cannot be set", o->name);
}

static int refuse(
    const struct bench_command *self, const struct bench_option *options, int c, char *const *argv)
{
	if (c == ':')
		return bench_usage(self, "%s needs a value", argv[optind - 1]);
	if (optopt >= VAL_FIRST)
		return bench_usage(self, "--%s takes no value", options[optopt - VAL_FIRST].name);
	if (optopt && optopt != VAL_HELP)
		return bench_usage(self, "unknown option -%c", optopt);
	return bench_usage(self, "unknown option %s", argv[optind - 1]);
}

int bench_parse(const struct bench_command *self, const struct bench_option *options, size_t count,
    int argc, char **argv, int *status)
{
	struct option longs[BENCH_OPTIONS_MAX + 2] = {
	    {.name = "help", .has_arg = no_argument, .val = VAL_HELP}};
	int c;

	for (size_t i = 0; i < count; i++)
		longs[i + 1] = (struct option){.name = options[i].name,
		    .has_arg = options[i].arg ? required_argument : no_argument,
		    .val = VAL_FIRST + (int)i};
	*status = BENCH_OK;
	opterr = 0;
	optind = 0;
	while (*status == BENCH_OK && (c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (c == VAL_HELP) {
			print_help(self, options, count);
			*status = bench_finish(BENCH_OK);
			return -1;
		}
		*status = c < VAL_FIRST ? refuse(self, options, c, argv)
					: set_option(self, &options[c - VAL_FIRST], optarg);
	}
	return *status == BENCH_OK ? optind : -1;
}
