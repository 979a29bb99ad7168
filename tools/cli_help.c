/* cli_help: how sbxctl and its commands are used, told from the table. Holds no state. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"

#define OPTION_COLUMN 26 /* where the help of an option begins */

static void put_name(FILE *f, const struct cli_command *c)
{
	(void)fprintf(f, "%s%s%s", c->name, c->sub ? " " : "", c->sub ? c->sub : "");
}

static void put_synopsis(FILE *f, const struct cli_command *c)
{
	put_name(f, c);
	for (size_t i = 0; i < c->option_count; i++) {
		const struct cli_option *o = &c->options[i];

		if (o->letter)
			(void)fprintf(f, " [-%c", o->letter);
		else
			(void)fprintf(f, " [--%s", o->name);
		(void)fprintf(f, "%s%s]", o->value ? " " : "", o->value ? o->value : "");
	}
	if (*c->args)
		(void)fprintf(f, " %s", c->args);
}

char *cli_synopsis(const struct cli_command *command)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	put_synopsis(f, command);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "sbxctl: ");
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\nusage: sbxctl ");
	put_synopsis(stderr, cli->command);
	(void)fputc('\n', stderr);
	return CLI_USAGE;
}

static void put_option(FILE *f, const struct cli_option *o)
{
	char letter[] = {'-', o->letter, ',', ' ', '\0'};
	char name[64];

	(void)snprintf(name, sizeof(name), "%s--%s%s%s", o->letter ? letter : "    ", o->name,
	    o->value ? " " : "", o->value ? o->value : "");
	(void)fprintf(f, "  %-*s  %s\n", OPTION_COLUMN - 4, name, o->help);
}

static void put_command_help(FILE *f, const struct cli_command *c)
{
	(void)fprintf(f, "usage: sbxctl ");
	put_synopsis(f, c);
	(void)fprintf(f, "\n\n%c%s.\n", c->help[0] & ~0x20, c->help + 1);
	if (c->option_count) {
		(void)fprintf(f, "\nOptions:\n");
		for (size_t i = 0; i < c->option_count; i++)
			put_option(f, &c->options[i]);
	}
	(void)fprintf(f, "\nOf all commands:\n");
	for (size_t i = 0; i < cli_common_count; i++)
		put_option(f, &cli_common_options[i]);
}

static void put_overview(FILE *f)
{
	const struct cli_command *c;

	(void)fprintf(f, "usage: sbxctl COMMAND [OPTION...] [ARGUMENT...]\n\n");
	for (size_t i = 0; (c = cli_command_at(i)); i++) {
		if (c->hidden)
			continue;
		(void)fprintf(f, "  ");
		put_synopsis(f, c);
		(void)fprintf(f, "\n      %s\n", c->help);
	}
	(void)fprintf(f, "\nEverywhere: --json (data as JSON), --socket PATH (or SBXD_SOCKET), "
			 "--instance NAME,\n"
			 "--help (all about a command).\n"
			 "Exit status: the command's own; 128+N when signal N ended it; 124 "
			 "timeout; 125 sbxctl\n"
			 "or the service failed; 2 usage.\n");
}

void cli_put_help(FILE *f, const struct cli_command *command)
{
	if (command)
		put_command_help(f, command);
	else
		put_overview(f);
}

static int help(struct cli *cli, int argc, char **argv)
{
	int at = cli_parse(cli, NULL, argc, argv);
	const struct cli_command *about;

	if (at < 0)
		return -at;
	about = at < argc ? cli_command_find(argv[at], argv[at + 1]) : NULL;
	if (at < argc && !about)
		return cli_usage(cli, "unknown command '%s'", argv[at]);
	cli_put_help(stdout, about);
	return cli_finish(CLI_OK);
}

const struct cli_command cli_help = {
    .name = "help",
    .args = "[COMMAND]",
    .help = "tell how a command is used",
    .words = {CLI_WORD_TOPIC, CLI_WORD_OTHER},
    .run = help,
};
