/* cli_token: sbxctl token, the scope token of a user and thread. Needs no service. */
#include <errno.h>

#include "lib/identity.h"
#include "tools/cli.h"

static int token_run(struct cli *cli, int argc, char **argv)
{
	bool no_user = false;
	int at = cli_parse(cli, &no_user, argc, argv);
	const struct err failed = {.code = EIO, .text = "SHA-256 failed"};
	struct identity id;
	int wanted;

	if (at < 0)
		return -at;
	wanted = no_user ? 1 : 2;
	if (argc - at != wanted)
		return cli_usage(cli, "%s",
		    no_user ? "with --no-user only a thread is expected"
			    : "a user and a thread are expected (--no-user: no user at all)");
	if (identity_scope(no_user ? NULL : argv[at], argv[argc - 1], &id) < 0)
		return cli_fail("token", &failed);
	if (cli->json)
		(void)printf("{\n  \"token\": \"%s\"\n}\n", id.token);
	else
		(void)printf("%s\n", id.token);
	return cli_finish(CLI_OK);
}

static const struct cli_option options[] = {
    {"no-user", 0, CLI_OPTION_FLAG, 0, NULL, "of a thread without a user", CLI_WORD_OTHER},
};

const struct cli_command cli_token = {
    .name = "token",
    .args = "[USER] THREAD",
    .help = "print the scope token of a user and thread",
    CLI_OPTIONS(options),
    .run = token_run,
};
