/*
 * cli_complete: sbxctl completion and what its scripts call. Holds no state.
 *
 * The scripts know nothing of commands: they ask `sbxctl __complete WORD...`, which answers one
 * candidate a line ("word<TAB>what it is"), or ":files" where the shell knows better.
 */
#include "tools/cli_complete.h"

#include <string.h>

#include "tools/cli_place.h"

/* Files of boxes have names that a terminal would obey, or that no line can hold. */
static bool may_be_shown(const char *value)
{
	const unsigned char *c = (const unsigned char *)value;

	while (*c >= 0x20 && *c != 0x7f)
		c++;
	return *c == '\0';
}

void cli_complete_put(
    const char *prefix, size_t prefix_len, const char *typed, const char *value, const char *help)
{
	if (strncmp(value, typed, strlen(typed)) != 0 || !may_be_shown(value))
		return;
	(void)printf("%.*s", (int)prefix_len, prefix); /* cli_finish() looks for errors */
	(void)printf("%s\t", value);
	cli_put_text(stdout, help);
	(void)fputc('\n', stdout);
}

static void put_plain(const struct cli_asked *a, const char *value, const char *help)
{
	cli_complete_put(a->prefix, (size_t)(a->typed - a->prefix), a->typed, value, help);
}

/* ---- candidates ---- */

/* Of those that have a second word, the first stands for all. */
static void put_commands(const struct cli_asked *a)
{
	const struct cli_command *before = NULL;
	const struct cli_command *c;

	for (size_t i = 0; (c = cli_command_at(i)); i++) {
		if (!c->hidden && (!before || strcmp(before->name, c->name) != 0))
			put_plain(a, c->name, c->help);
		before = c;
	}
}

static void put_seconds(const struct cli_asked *a)
{
	const struct cli_command *c;

	for (size_t i = 0; (c = cli_command_at(i)); i++) {
		if (c->sub && !strcmp(c->name, a->command->name))
			put_plain(a, c->sub, c->help);
	}
}

static void put_option_names(
    const struct cli_asked *a, const struct cli_option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "--%s", options[i].name);
		put_plain(a, name, options[i].help);
		(void)snprintf(name, sizeof(name), "-%c", options[i].letter);
		if (options[i].letter)
			put_plain(a, name, options[i].help);
	}
}

static void put_choices(const struct cli_asked *a)
{
	const char *at = a->command->choices;

	while (*at) {
		char word[32];
		size_t n = strcspn(at, " ");

		(void)snprintf(word, sizeof(word), "%.*s", (int)n, at);
		put_plain(a, word, "");
		at += n + (at[n] == ' ');
	}
}

static void put_words(const struct cli *cli, const struct cli_asked *a)
{
	switch (a->word) {
	case CLI_WORD_OTHER:
		return;
	case CLI_WORD_BOX:
		cli_complete_boxes(cli, a->typed, "");
		return;
	case CLI_WORD_PLACE:
		if (strstr(a->typed, ":/"))
			cli_complete_places(cli, a->typed);
		else
			cli_complete_boxes(cli, a->typed, "");
		return;
	case CLI_WORD_PATH:
		if (a->box)
			cli_complete_paths(cli, a->box, a->typed);
		return;
	case CLI_WORD_FILE:
		(void)printf(":files\n");
		return;
	case CLI_WORD_COPY:
		if (strstr(a->typed, ":/")) {
			cli_complete_places(cli, a->typed);
			return;
		}
		(void)printf(":files\n");
		cli_complete_boxes(cli, a->typed, ":/");
		return;
	case CLI_WORD_CHOICE:
		put_choices(a);
		return;
	case CLI_WORD_TOPIC:
		put_commands(a);
		return;
	case CLI_WORD_IMAGE:
		cli_complete_images(cli, a->typed);
		return;
	case CLI_WORD_TEMPLATE:
		cli_complete_templates(cli, a->typed);
		return;
	}
}

static void put_candidates(const struct cli *cli, const struct cli_asked *a)
{
	if (a->option) {
		if (a->command)
			put_option_names(a, a->command->options, a->command->option_count);
		put_option_names(a, cli_common_options, cli_common_count);
	} else if (a->value) {
		put_words(cli, a);
	} else if (!a->command) {
		put_commands(a);
	} else if (a->second) {
		put_seconds(a);
	} else {
		put_words(cli, a);
	}
}

static int complete_run(struct cli *cli, int argc, char **argv)
{
	struct cli_asked a;

	/* Not cli_parse(): what is being typed is no command line yet. */
	if (cli_complete_read(cli, argc - 1, argv + 1, &a))
		put_candidates(cli, &a);
	return cli_finish(CLI_OK);
}

const struct cli_command cli_complete = {
    .name = "__complete",
    .args = "WORD...",
    .help = "tell a shell what could stand there",
    .hidden = true,
    .run = complete_run,
};
