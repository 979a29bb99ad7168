/* cli_table: the commands of sbxctl, in the order in which they are told. Holds no state. */
#include <string.h>

#include "tools/cli.h"

static const struct cli_command *const commands[] = {
    &cli_run,
    &cli_acquire,
    &cli_exec,
    &cli_release,
    &cli_ps,
    &cli_inspect,
    &cli_rm,
    &cli_cp,
    &cli_ls,
    &cli_cat,
    &cli_stat,
    &cli_glob,
    &cli_grep,
    &cli_image_pull,
    &cli_image_ls,
    &cli_image_rm,
    &cli_image_prune,
    &cli_template_ls,
    &cli_template_build,
    &cli_template_rm,
    &cli_pool,
    &cli_events,
    &cli_token,
    &cli_shm_dump,
    &cli_doctor,
    &cli_gc,
    &cli_reset,
    &cli_shutdown,
    &cli_completion,
    &cli_help,
    &cli_complete,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct cli_command *cli_command_at(size_t n)
{
	return n < COMMANDS ? commands[n] : NULL;
}

const struct cli_command *cli_command_find(const char *name, const char *second)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		const struct cli_command *c = commands[i];

		if (strcmp(c->name, name) == 0 &&
		    (!c->sub || (second && strcmp(c->sub, second) == 0)))
			return c;
	}
	return NULL;
}
