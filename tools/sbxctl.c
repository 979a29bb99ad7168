/* sbxctl: the command line of sbxd: one table of commands. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/cli.h"

static const struct cli_command commands[] = {
    {"run", NULL, "[-u USER] [-t THREAD] [-e K=V] [-w DIR] [--timeout S] [-i] [--tty] -- CMD...",
	"take a box, run a command in it, give it back", cli_run},
    {"acquire", NULL, "[-u USER] [-t THREAD] [--image REF] [--lease S] [--wait S]",
	"take a box and print its name", cli_acquire},
    {"exec", NULL, "[-e K=V] [-w DIR] [--timeout S] [-i] [--tty] BOX -- CMD...",
	"run a command in a box", cli_exec},
    {"release", NULL, "[--lease ID] BOX", "give a box back: it stays warm", cli_release},
    {"ps", NULL, "", "list boxes", cli_ps},
    {"inspect", NULL, "BOX", "show all about a box", cli_inspect},
    {"rm", NULL, "[-f] BOX", "close a box; -f: also one in use", cli_rm},
    {"pool", NULL, "", "show counts, counters and latencies", cli_pool},
    {"events", NULL, "[-f]", "show what the flight recorder holds, newest last; -f: and go on",
	cli_events},
    {"token", NULL, "[--no-user] [USER] THREAD", "print the scope token of a user and thread",
	cli_token},
    {"shm", "dump", "[NAME]", "print and validate a shared table, live or dead", cli_shm_dump},
    {"doctor", NULL, "", "find what is wrong with this host and how to mend it", cli_doctor},
    {"shutdown", NULL, "", "close every box and end sbxd", cli_shutdown},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void put_help(FILE *f)
{
	(void)fprintf(f, "usage: sbxctl COMMAND [OPTION...] [ARGUMENT...]\n\n");
	for (size_t i = 0; i < COMMANDS; i++) {
		const struct cli_command *c = &commands[i];

		(void)fprintf(f, "  %s%s%s %s\n      %s\n", c->name, c->sub ? " " : "",
		    c->sub ? c->sub : "", c->args, c->help);
	}
	(void)fprintf(f, "\nEverywhere: --json (data as JSON), --socket PATH (or SBXD_SOCKET), "
			 "--instance NAME.\n"
			 "Exit status: the command's own; 128+N when signal N ended it; 124 "
			 "timeout; 125 sbxctl\n"
			 "or the service failed; 2 usage.\n");
}

static const struct cli_command *find_command(int argc, char **argv)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i].name, argv[0]) != 0)
			continue;
		if (!commands[i].sub || (argc > 1 && strcmp(commands[i].sub, argv[1]) == 0))
			return &commands[i];
	}
	return NULL;
}

/* The common options may also stand before the command: the index of the first word after them. */
static int skip_leading_options(int argc, char **argv)
{
	static const char *const with_value[] = {"--socket", "--instance"};
	int n = 1;

	while (n < argc && strncmp(argv[n], "--", 2) == 0) {
		for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++)
			n += strcmp(argv[n], with_value[i]) == 0;
		n++;
	}
	return n < argc ? n : 1;
}

/* Moves the command's words in front of the options, where every command reads its own. */
static void move_words_first(char **argv, int at, int words)
{
	for (int k = 0; k < words; k++) {
		char *word = argv[at + k];

		memmove(argv + 2 + k, argv + 1 + k, (size_t)(at - 1) * sizeof(argv[0]));
		argv[1 + k] = word;
	}
}

/* Descriptors 0 to 2 must not become something of ours. */
static int open_standard(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct cli cli = {.socket = getenv("SBXD_SOCKET"), .env = environ, .signal_fd = -1};
	int words;
	int status;
	int at;

	if (cli.socket && *cli.socket == '\0')
		cli.socket = NULL;
	if (open_standard() < 0)
		return CLI_FAILED;
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
		put_help(stdout);
		return cli_finish(CLI_OK);
	}
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		(void)printf("sbxctl %s\n", SBX_VERSION);
		return cli_finish(CLI_OK);
	}
	at = skip_leading_options(argc, argv);
	cli.command = argc > 1 ? find_command(argc - at, argv + at) : NULL;
	if (!cli.command) {
		if (argc > 1)
			(void)fprintf(stderr, "sbxctl: unknown command '%s'\n", argv[at]);
		put_help(stderr);
		return CLI_USAGE;
	}
	words = cli.command->sub ? 2 : 1;
	move_words_first(argv, at, words);
	status = cli.command->run(&cli, argc - words, argv + words);
	fd_close(&cli.signal_fd);
	return status;
}
