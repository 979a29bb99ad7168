/*
 * main: sbx-files. Started by sbx-guest with its arguments, no environment, and its output in
 * pipes. Nothing depends on it: if it dies, one request fails.
 */
#include <string.h>
#include <sys/prctl.h>

#include "guest/files/files.h"

static const struct {
	const char *name;
	files_command *run;
} commands[] = {
    {"version", version_run},
    {"list", list_run},
    {"glob", glob_run},
    {"grep", grep_run},
    {"remove", remove_run},
    {"pack", pack_run},
    {"unpack", unpack_run},
};

/* What nobody has asked for otherwise: whether there is a helper here, and which. */
int version_run(char *const *args)
{
	int rc = options_take(args, NULL, 0);

	return rc != 0 ? rc : emit_done(0, 0);
}

int main(int argc, char **argv)
{
	struct text why;

	(void)prctl(
	    PR_SET_NAME, "sbx-files"); /* it was started by a descriptor, which is no name */
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argv + 2);
	text_clear(&why);
	text_add(&why, "sbx-files has no such command: ");
	text_add_quoted(&why, argc > 1 ? argv[1] : "", 64);
	return emit_failure(AGENT_E_INVALID, &why);
}
