/* sbxctl: the command line of sbxd. Finds the command among the words and runs it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/cli.h"

/* The common options may also stand before the command: the index of the first word after them. */
static int skip_leading_options(int argc, char **argv)
{
	int n = 1;

	while (n < argc && strncmp(argv[n], "--", 2) == 0) {
		for (size_t i = 0; i < cli_common_count; i++)
			n += cli_common_options[i].value &&
			     strcmp(argv[n] + 2, cli_common_options[i].name) == 0;
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
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		cli_put_help(stdout, NULL);
		return cli_finish(CLI_OK);
	}
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		(void)printf("sbxctl %s\n", SBX_VERSION);
		return cli_finish(CLI_OK);
	}
	at = skip_leading_options(argc, argv);
	cli.command = argc > 1 ? cli_command_find(argv[at], argv[at + 1]) : NULL;
	if (!cli.command) {
		if (argc > 1)
			(void)fprintf(stderr, "sbxctl: unknown command '%s'\n", argv[at]);
		cli_put_help(stderr, NULL);
		return CLI_USAGE;
	}
	words = cli.command->sub ? 2 : 1;
	move_words_first(argv, at, words);
	status = cli.command->run(&cli, argc - words, argv + words);
	fd_close(&cli.signal_fd);
	return status == CLI_HELPED ? CLI_OK : status;
}
