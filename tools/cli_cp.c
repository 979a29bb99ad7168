/* cli_cp: sbxctl cp. Which way, and what becomes what; the bytes are cli_cp_out.c's and
 * cli_cp_in.c's. Holds no state. */
#include "tools/cli_cp.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli_place.h"

static int copy(const struct cli_copy *cp, const char *from, const char *to)
{
	struct cli_place place;

	if (cli_place_read(to, &place)) {
		struct cli_place other;

		if (cli_place_read(from, &other))
			return cli_usage(cp->cli, "both are in boxes; copy by way of the host");
		return cli_copy_in(cp, from, &place);
	}
	if (cli_place_read(from, &place))
		return cli_copy_out(cp, &place, to);
	return cli_usage(cp->cli, "neither '%s' nor '%s' is BOX:/PATH", from, to);
}

char *cli_copy_plain(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
		n--;
	return strndup(path, n);
}

int cli_copy_target(const char *source, const char *folder, char out[PATH_MAX])
{
	const char *end = source + strlen(source);
	const char *begin;

	while (end > source && end[-1] == '/')
		end--;
	begin = end;
	while (begin > source && begin[-1] != '/')
		begin--;
	if (begin == end || (end - begin == 1 && *begin == '.'))
		return snprintf(out, PATH_MAX, "%s", folder) < PATH_MAX ? 0 : -ENAMETOOLONG;
	if (end - begin == 2 && begin[0] == '.' && begin[1] == '.')
		return -EINVAL;
	return snprintf(out, PATH_MAX, "%s%s%.*s", folder,
		   folder[strlen(folder) - 1] == '/' ? "" : "/", (int)(end - begin),
		   begin) < PATH_MAX
		   ? 0
		   : -ENAMETOOLONG;
}

struct cp_options {
	bool quiet;
};

static int cp_run(struct cli *cli, int argc, char **argv)
{
	struct cp_options o = {.quiet = false};
	int at = cli_parse(cli, &o, argc, argv);
	const struct cli_copy cp = {.cli = cli, .quiet = o.quiet};
	int status;

	if (at < 0)
		return -at;
	if (argc - at != 2)
		return cli_usage(cli, "a source and a destination are expected");
	if (!*argv[at] || !*argv[at + 1])
		return cli_usage(cli, "an empty name");
	status = cli_prepare(cli);
	return status == CLI_OK ? copy(&cp, argv[at], argv[at + 1]) : status;
}

static const struct cli_option cp_options[] = {
    {"quiet", 'q', CLI_OPTION_FLAG, offsetof(struct cp_options, quiet), NULL,
	"do not tell how far it is", CLI_WORD_OTHER},
};

const struct cli_command cli_cp = {
    .name = "cp",
    .args = "SRC DST",
    .help = "copy a file or a directory into a box or out of it; one of both is BOX:/PATH",
    CLI_OPTIONS(cp_options),
    .words = {CLI_WORD_COPY, CLI_WORD_COPY, CLI_WORD_OTHER},
    .run = cp_run,
};
