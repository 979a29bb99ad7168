/* cli_complete_read: which word of a command line is asked for. sbxctl; holds no state. */
#include <string.h>

#include "tools/cli_complete.h"

/* The option that a word is: "--NAME", "--NAME=...", "-x". NULL: it is none that is known. */
static const struct cli_option *find_in(
    const struct cli_option *options, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(options[i].name);

		if (word[1] == '-' && strncmp(word + 2, options[i].name, n) == 0 &&
		    (word[2 + n] == '\0' || word[2 + n] == '='))
			return &options[i];
		if (word[1] != '-' && options[i].letter && word[1] == options[i].letter)
			return &options[i];
	}
	return NULL;
}

static const struct cli_option *find_option(const struct cli_command *c, const char *word)
{
	const struct cli_option *o = c ? find_in(c->options, c->option_count, word) : NULL;

	return o ? o : find_in(cli_common_options, cli_common_count, word);
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

/* Whether the value of an option is the word behind it: neither "--NAME=VALUE" nor "-xVALUE". */
static bool wants_next(const struct cli_option *o, const char *word)
{
	return o && o->value && (word[1] == '-' ? !strchr(word, '=') : word[2] == '\0');
}

/* Values that say which service is meant count for what it is asked, too. */
static void take_common(struct cli *cli, const struct cli_option *o, const char *value)
{
	bool common = o >= cli_common_options && o < cli_common_options + cli_common_count;

	if (common && o->type == CLI_OPTION_TEXT)
		*(const char **)((char *)cli + o->at) = value;
}

struct reading {
	struct cli *cli;
	struct cli_asked *out;
	bool only_arguments; /* "--" has come, or a command line has begun */
	int arguments;	     /* of the command, so far */
	int names;	     /* words of the command's name, so far */
};

/* The first command of that name; of several the second word tells which, and for completion they
 * are alike until then. */
static const struct cli_command *command_called(const char *name)
{
	const struct cli_command *c;

	for (size_t i = 0; (c = cli_command_at(i)); i++) {
		if (!strcmp(c->name, name))
			return c;
	}
	return NULL;
}

/* A whole word before the one that is asked for. */
static void take_word(struct reading *r, const char *word)
{
	struct cli_asked *a = r->out;

	if (r->names++ == 0) {
		a->command = command_called(word);
		a->second = a->command && a->command->sub;
	} else if (a->second) {
		a->command = cli_command_find(a->command->name, word);
		a->second = false;
	} else if (r->arguments++ == 0) {
		a->box = word;
	}
	/* What follows is a command line of a box, after a box if the command takes one. */
	if (a->command && a->command->command_line &&
	    r->arguments > (a->command->words[0] == CLI_WORD_BOX))
		a->box = NULL;
}

static enum cli_word word_at(const struct cli_command *c, int argument)
{
	return c->words[argument < CLI_WORDS_MAX ? argument : CLI_WORDS_MAX - 1];
}

/* The last word. False: nothing can be offered. */
static bool ask(struct reading *r, const char *word, const struct cli_option *before)
{
	struct cli_asked *a = r->out;
	const char *equals = strchr(word, '=');
	const struct cli_option *o;

	a->prefix = a->typed = word;
	if (before) {
		a->word = before->word;
		a->value = true;
		return true;
	}
	if (r->only_arguments || word[0] != '-') {
		if (r->names == 0 || a->second)
			return true; /* the name of a command */
		a->word = a->command ? word_at(a->command, r->arguments) : CLI_WORD_OTHER;
		return a->command != NULL;
	}
	o = equals ? find_option(a->command, word) : NULL;
	if (o && o->value) {
		a->word = o->word;
		a->value = true;
		a->typed = equals + 1;
		return true;
	}
	a->option = true;
	return !equals;
}

bool cli_complete_read(struct cli *cli, int argc, char *const *argv, struct cli_asked *out)
{
	const struct cli_option *before = NULL;
	struct reading r = {.cli = cli, .out = out};

	*out = (struct cli_asked){.word = CLI_WORD_OTHER};
	for (int i = 0; i + 1 < argc; i++) {
		const struct cli_option *o = NULL;
		const char *equals = strchr(argv[i], '=');

		if (before) {
			take_common(cli, before, argv[i]);
		} else if (!r.only_arguments && !strcmp(argv[i], "--")) {
			r.only_arguments = true;
		} else if (!r.only_arguments && is_option(argv[i])) {
			o = find_option(out->command, argv[i]);
			if (o && o->value && equals)
				take_common(cli, o, equals + 1);
		} else {
			take_word(&r, argv[i]);
			r.only_arguments |=
			    out->command && out->command->command_line && r.arguments > 0;
		}
		before = wants_next(o, argv[i]) ? o : NULL;
	}
	if (r.names > 0 && !out->command)
		return false;
	return argc > 0 && ask(&r, argv[argc - 1], before);
}
