/* cli_options: reading the options of a command. sbxctl; holds no state. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"
#include "wire/json.h"

#define SECONDS_MIN 0.001
#define SECONDS_MAX 31536000.0
#define NUMBER_MAX 100000

#define COMMON(member) offsetof(struct cli, member)

const struct cli_option cli_common_options[] = {
    {"json", 0, CLI_OPTION_FLAG, COMMON(json), NULL, "print data as JSON", CLI_WORD_OTHER},
    {"socket", 0, CLI_OPTION_TEXT, COMMON(socket), "PATH", "the socket of the service",
	CLI_WORD_FILE},
    {"instance", 0, CLI_OPTION_TEXT, COMMON(instance), "NAME", "which service, where several run",
	CLI_WORD_OTHER},
    {"help", 'h', CLI_OPTION_FLAG, COMMON(help), NULL, "tell how the command is used",
	CLI_WORD_OTHER},
};

const size_t cli_common_count = sizeof(cli_common_options) / sizeof(cli_common_options[0]);

#define COMMON_MAX (sizeof(cli_common_options) / sizeof(cli_common_options[0]))

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

static int set_number(const char *text, uint32_t *out)
{
	char *end;
	unsigned long value;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end || errno || value < 1 || value > NUMBER_MAX)
		return -EINVAL;
	*out = (uint32_t)value;
	return 0;
}

static int set_option(
    const struct cli *cli, const struct cli_option *o, void *base, const char *arg)
{
	void *out = (char *)base + o->at;

	if (arg && !cli_is_utf8(arg))
		return -cli_usage(cli, "--%s: the value is no UTF-8 text", o->name);
	switch (o->type) {
	case CLI_OPTION_FLAG:
		*(bool *)out = true;
		return 0;
	case CLI_OPTION_TEXT:
		*(const char **)out = arg;
		return 0;
	case CLI_OPTION_SECONDS:
		if (set_seconds(arg, out) == 0)
			return 0;
		return -cli_usage(cli,
		    "--%s: '%s' is not allowed; give seconds from 0.001 to 31536000", o->name, arg);
	case CLI_OPTION_NUMBER:
		if (set_number(arg, out) == 0)
			return 0;
		return -cli_usage(cli, "--%s: '%s' is not allowed; give a number from 1 to %d",
		    o->name, arg, NUMBER_MAX);
	case CLI_OPTION_LIST:
		if (set_list(arg, out) == 0)
			return 0;
		return -cli_usage(cli, "--%s: given more than %d times", o->name, CLI_LIST_MAX);
	}
	return -cli_usage(cli, "--%s: cannot be set", o->name);
}

/* One table for getopt out of the command's options and the common ones. */
struct parser {
	struct {
		const struct cli_option *option;
		void *base; /* of the structure with its value */
	} all[CLI_OPTIONS_MAX + COMMON_MAX];
	struct option longs[CLI_OPTIONS_MAX + COMMON_MAX + 1];
	char shorts[2 * (CLI_OPTIONS_MAX + COMMON_MAX) + 4];
	size_t count;
};

static void add_option(struct parser *p, const struct cli_option *o, void *base)
{
	size_t n = strlen(p->shorts);
	bool arg = o->type != CLI_OPTION_FLAG;

	p->all[p->count].option = o;
	p->all[p->count].base = base;
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

/* Index of the option that getopt calls c; there is one. */
static size_t find_option(const struct parser *p, int c)
{
	size_t i = 0;

	if (c >= 256)
		return (size_t)c - 256;
	while (i + 1 < p->count && p->all[i].option->letter != c)
		i++;
	return i;
}

static int take_option(const struct cli *cli, const struct parser *p, int c, char *const *argv)
{
	size_t i;

	if (c == ':')
		return -cli_usage(cli, "%s needs a value", argv[optind - 1]);
	if (c == '?' && optopt >= 256)
		return -cli_usage(cli, "--%s takes no value", p->all[optopt - 256].option->name);
	if (c == '?' && optopt)
		return -cli_usage(cli, "unknown option -%c", optopt);
	if (c == '?')
		return -cli_usage(cli, "unknown option %s", argv[optind - 1]);
	i = find_option(p, c);
	return set_option(cli, p->all[i].option, p->all[i].base, optarg);
}

static int read_options(const struct cli *cli, struct parser *p, int argc, char **argv)
{
	int rc = 0;
	int c;

	opterr = 0;
	optind = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1)
		rc = take_option(cli, p, c, argv);
	return rc < 0 ? rc : optind;
}

int cli_parse(struct cli *cli, void *out, int argc, char **argv)
{
	const struct cli_command *cmd = cli->command;
	struct parser p = {.shorts = ""};
	int rc;

	(void)snprintf(p.shorts, sizeof(p.shorts), "%s", cmd->command_line ? "+:" : ":");
	for (size_t i = 0; i < cmd->option_count && i < CLI_OPTIONS_MAX; i++)
		add_option(&p, &cmd->options[i], out);
	for (size_t i = 0; i < cli_common_count; i++)
		add_option(&p, &cli_common_options[i], cli);
	rc = read_options(cli, &p, argc, argv);
	if (rc >= 0 && cli->help) {
		cli_put_help(stdout, cmd);
		rc = cli_finish(CLI_HELPED);
		return -rc;
	}
	if (rc >= 0 && cli->instance && !paths_instance_valid(cli->instance))
		return -cli_usage(cli,
		    "--instance: '%s' is not allowed; give 1 to 31 of a-z, 0-9 and -, no - first",
		    cli->instance);
	return rc;
}

int cli_parse_all(struct cli *cli, void *out, int argc, char **argv)
{
	int at = cli_parse(cli, out, argc, argv);

	if (at < 0)
		return -at;
	return at == argc ? CLI_OK : cli_usage(cli, "unexpected argument '%s'", argv[at]);
}
