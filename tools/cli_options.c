/* cli_options: reading the options of a command. sbxctl; holds no state. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"
#include "wire/json.h"

#define SECONDS_MIN 0.001
#define SECONDS_MAX 31536000.0
#define COMMON 4

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
	const struct cli_command *cmd = cli->command;
	va_list ap;

	(void)fprintf(stderr, "sbxctl: ");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\nusage: sbxctl %s%s%s %s\n", cmd->name, cmd->sub ? " " : "",
	    cmd->sub ? cmd->sub : "", cmd->args);
	return CLI_USAGE;
}

bool cli_is_utf8(const char *text)
{
	size_t n = strlen(text);

	return utf8_valid_prefix((const uint8_t *)text, n, NULL) == n;
}

static int set_seconds(const char *text, double *out)
{
	char *end;
	double value;

	if (!text)
		return -EINVAL;
	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end || errno || !isfinite(value) || value < SECONDS_MIN ||
	    value > SECONDS_MAX)
		return -EINVAL;
	*out = value;
	return 0;
}

static int set_list(const char *text, struct cli_list *list)
{
	if (list->count == CLI_LIST_MAX)
		return -E2BIG;
	list->items[list->count++] = text;
	return 0;
}

static int set_option(const struct cli *cli, const struct cli_option *o, const char *arg)
{
	if (arg && !cli_is_utf8(arg))
		return -cli_usage(cli, "--%s: the value is no UTF-8 text", o->name);
	switch (o->type) {
	case CLI_OPTION_FLAG:
		*(bool *)o->out = true;
		return 0;
	case CLI_OPTION_TEXT:
		*(const char **)o->out = arg;
		return 0;
	case CLI_OPTION_SECONDS:
		if (set_seconds(arg, o->out) == 0)
			return 0;
		return -cli_usage(cli,
		    "--%s: '%s' is not allowed; give seconds from 0.001 to 31536000", o->name, arg);
	case CLI_OPTION_LIST:
		if (set_list(arg, o->out) == 0)
			return 0;
		return -cli_usage(cli, "--%s: given more than %d times", o->name, CLI_LIST_MAX);
	}
	return -cli_usage(cli, "--%s: cannot be set", o->name);
}

/* One table for getopt out of the command's options and the common ones. */
struct parser {
	struct cli_option all[CLI_OPTIONS_MAX + COMMON];
	struct option longs[CLI_OPTIONS_MAX + COMMON + 1];
	char shorts[2 * (CLI_OPTIONS_MAX + COMMON) + 4];
	size_t count;
};

static void add_option(struct parser *p, const struct cli_option *o)
{
	size_t n = strlen(p->shorts);
	bool arg = o->type != CLI_OPTION_FLAG;

	p->all[p->count] = *o;
	p->longs[p->count] = (struct option){.name = o->name,
	    .has_arg = arg ? required_argument : no_argument,
	    .val = 256 + (int)p->count};
	p->count++;
	if (o->letter) {
		p->shorts[n++] = o->letter;
		if (arg)
			p->shorts[n++] = ':';
		p->shorts[n] = '\0';
	}
}

static const struct cli_option *find_option(const struct parser *p, int c)
{
	if (c >= 256)
		return &p->all[c - 256];
	for (size_t i = 0; i < p->count; i++) {
		if (p->all[i].letter == c)
			return &p->all[i];
	}
	return NULL;
}

static int read_options(struct cli *cli, struct parser *p, int argc, char **argv)
{
	int rc = 0;
	int c;

	opterr = 0;
	optind = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		if (c == ':')
			rc = -cli_usage(cli, "%s needs a value", argv[optind - 1]);
		else if (c == '?' && optopt >= 256)
			rc = -cli_usage(cli, "--%s takes no value", p->all[optopt - 256].name);
		else if (c == '?' && optopt)
			rc = -cli_usage(cli, "unknown option -%c", optopt);
		else if (c == '?')
			rc = -cli_usage(cli, "unknown option %s", argv[optind - 1]);
		else
			rc = set_option(cli, find_option(p, c), optarg);
	}
	return rc < 0 ? rc : optind;
}

int cli_parse(struct cli *cli, const struct cli_option *options, size_t count, bool command,
    int argc, char **argv)
{
	const struct cli_option common[] = {
	    {"json", 0, CLI_OPTION_FLAG, &cli->json},
	    {"socket", 0, CLI_OPTION_TEXT, &cli->socket},
	    {"instance", 0, CLI_OPTION_TEXT, &cli->instance},
	};
	struct parser p = {.shorts = ""};
	int rc;

	(void)snprintf(p.shorts, sizeof(p.shorts), "%s", command ? "+:" : ":");
	for (size_t i = 0; i < count; i++)
		add_option(&p, &options[i]);
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		add_option(&p, &common[i]);
	rc = read_options(cli, &p, argc, argv);
	if (rc >= 0 && cli->instance && !paths_instance_valid(cli->instance))
		return -cli_usage(cli,
		    "--instance: '%s' is not allowed; give 1 to 31 of a-z, 0-9 and -, no - first",
		    cli->instance);
	return rc;
}
