/* cli_files: sbxctl ls and stat. Hold no state. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli_place.h"
#include "tools/cli_view.h"

#define PATH_MAX_LEN 16000U

/* ---- how a file is told ---- */

static const struct {
	const char *type;
	char letter;
	enum cli_style style;
} types[] = {
    {"file", '-', CLI_PLAIN},
    {"directory", 'd', CLI_FOLDER},
    {"symlink", 'l', CLI_LINK},
    {"fifo", 'p', CLI_WARN},
    {"socket", 's', CLI_WARN},
    {"char_device", 'c', CLI_WARN},
    {"block_device", 'b', CLI_WARN},
};

static size_t type_of(const json_t *file)
{
	const char *type = cli_text_at(file, "type");

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcmp(types[i].type, type))
			return i;
	}
	return 0;
}

/* "drwxr-xr-x", with s and t as ls(1) has them. */
static void put_mode(const json_t *file, char out[11])
{
	static const char letters[] = "rwxrwxrwx";
	static const struct {
		unsigned int bit;
		int at;
		char with_x;
		char without;
	} more[] = {{04000, 3, 's', 'S'}, {02000, 6, 's', 'S'}, {01000, 9, 't', 'T'}};
	unsigned long mode = strtoul(cli_text_at(file, "mode"), NULL, 8);

	out[0] = types[type_of(file)].letter;
	for (int i = 0; i < 9; i++)
		out[1 + i] = mode >> (8 - i) & 1 ? letters[i] : '-';
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		if (mode & more[i].bit)
			out[more[i].at] = out[more[i].at] == 'x' ? more[i].with_x : more[i].without;
	}
	out[10] = '\0';
}

static const struct cli_column long_columns[] = {
    {"MODE", 0, 0, false},
    {"OWNER", 0, 3, true},
    {"GROUP", 0, 4, true},
    {"SIZE", 0, 1, true},
    {"MODIFIED", 10, 2, false},
    {"NAME", 4, 0, false},
};

#define LONG_COLUMNS (sizeof(long_columns) / sizeof(long_columns[0]))

/* "NAME -> TARGET". The caller's; NULL without memory. */
static char *name_of(const json_t *file)
{
	char *name = cli_name_at(file, "path");
	char *target = cli_name_at(file, "link_target");
	char *both = NULL;

	if (name && target && asprintf(&both, "%s -> %s", name, target) < 0)
		both = NULL;
	if (target)
		free(name);
	free(target);
	return target ? both : name;
}

static void add_long(struct cli_grid *g, const json_t *file, bool digits)
{
	char *name = name_of(file);
	char mode[11];
	char owner[24];
	char group[24];
	char size[24];
	char when[20];
	const struct cli_cell cells[LONG_COLUMNS] = {
	    {mode, CLI_PLAIN},
	    {owner, CLI_PLAIN},
	    {group, CLI_PLAIN},
	    {size, CLI_PLAIN},
	    {when, CLI_PLAIN},
	    {name ? name : "?", types[type_of(file)].style},
	};

	put_mode(file, mode);
	(void)snprintf(owner, sizeof(owner), "%lld", cli_int_at(file, "uid"));
	(void)snprintf(group, sizeof(group), "%lld", cli_int_at(file, "gid"));
	if (digits)
		(void)snprintf(size, sizeof(size), "%lld", cli_int_at(file, "size"));
	else
		cli_format_bytes((uint64_t)cli_int_at(file, "size"), size, sizeof(size));
	(void)snprintf(when, sizeof(when), "%.19s", cli_text_at(file, "modified_at"));
	if (strlen(when) == 19)
		when[10] = ' ';
	cli_grid_add(g, cells);
	free(name);
}

static void put_long(const json_t *files)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	struct cli_grid g;
	json_t *file;
	size_t i;

	cli_grid_init(&g, long_columns, LONG_COLUMNS);
	json_array_foreach(cli_walk(files), i, file)
	{
		add_long(&g, file, screen.columns == 0);
	}
	cli_grid_put(&g, stdout, &screen);
	cli_grid_free(&g);
}

static void put_short(const json_t *files)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	json_t *file;
	size_t i;

	json_array_foreach(cli_walk(files), i, file)
	{
		char *name = cli_name_at(file, "path");

		cli_put_name(stdout, &screen, types[type_of(file)].style, name ? name : "?");
		(void)fputc('\n', stdout);
		free(name);
	}
}

/* ---- ls ---- */

struct ls_options {
	bool details;
	uint32_t depth;
	uint32_t max;
};

/* One path at most may follow a box. CLI_OK or CLI_USAGE. */
static int take_path(const struct cli *cli, int argc, char **argv, int at, struct cli_place *place)
{
	if (at < argc && place->path)
		return cli_usage(cli, "unexpected argument '%s'", argv[at]);
	if (at < argc - 1)
		return cli_usage(cli, "unexpected argument '%s'", argv[at + 1]);
	if (at < argc)
		place->path = argv[at];
	if (!place->path)
		place->path = CLI_PLACE_DEFAULT;
	return cli_place_check(cli, place->path);
}

static int ls_ask(
    const struct cli *cli, const struct ls_options *o, const struct cli_place *place, json_t **out)
{
	struct buf path;
	int rc;

	buf_init(&path, PATH_MAX_LEN);
	rc = cli_place_put(&path, place->box, "/fs/list", place->path);
	if (rc == 0 && o->depth)
		rc = buf_printf(&path, "&depth=%u", o->depth);
	if (rc == 0 && o->max)
		rc = buf_printf(&path, "&max_results=%u", o->max);
	if (rc == 0)
		rc = buf_terminate(&path);
	return cli_place_call(cli, "GET", &path, rc, place, out);
}

static int ls_run(struct cli *cli, int argc, char **argv)
{
	struct ls_options o = {.depth = 0};
	int at = cli_parse(cli, &o, argc, argv);
	struct cli_place place;
	json_t *answer = NULL;
	int status;

	if (at < 0)
		return -at;
	status = cli_place_take(cli, argc, argv, &at, &place);
	if (status == CLI_OK)
		status = take_path(cli, argc, argv, at, &place);
	if (status == CLI_OK)
		status = ls_ask(cli, &o, &place, &answer);
	if (status != CLI_OK)
		return status;
	if (cli->json)
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
	else if (o.details)
		put_long(json_object_get(answer, "entries"));
	else
		put_short(json_object_get(answer, "entries"));
	status = cli_put_problems("ls", answer);
	json_decref(answer);
	return cli_finish(status);
}

#define AT(member) offsetof(struct ls_options, member)

static const struct cli_option ls_options[] = {
    {"long", 'l', CLI_OPTION_FLAG, AT(details), NULL, "also type, mode, owner, size and time",
	CLI_WORD_OTHER},
    {"depth", 0, CLI_OPTION_NUMBER, AT(depth), "N", "so many levels of directories; 1 if absent",
	CLI_WORD_OTHER},
    {"max", 0, CLI_OPTION_NUMBER, AT(max), "N", "at most so many names; 10000 if absent",
	CLI_WORD_OTHER},
};

const struct cli_command cli_ls = {
    .name = "ls",
    .args = "BOX [PATH]",
    .help = "list a directory of a box",
    CLI_OPTIONS(ls_options),
    .words = {CLI_WORD_PLACE, CLI_WORD_PATH},
    .run = ls_run,
};

/* ---- stat ---- */

static int stat_run(struct cli *cli, int argc, char **argv)
{
	bool follow = false;
	int at = cli_parse(cli, &follow, argc, argv);
	struct cli_place place;
	json_t *file = NULL;
	json_t *files;
	struct buf path;
	int status;
	int rc;

	if (at < 0)
		return -at;
	status = cli_place_take(cli, argc, argv, &at, &place);
	if (status == CLI_OK)
		status = take_path(cli, argc, argv, at, &place);
	if (status != CLI_OK)
		return status;
	buf_init(&path, PATH_MAX_LEN);
	rc = cli_place_put(&path, place.box, "/fs/stat", place.path);
	if (rc == 0 && follow)
		rc = cli_query_put(&path, "follow", "1");
	status = cli_place_call(cli, "GET", &path, rc, &place, &file);
	if (status != CLI_OK)
		return status;
	files = json_pack("[O]", file);
	if (cli->json)
		(void)cli_put_json(file); /* cli_finish() looks for errors */
	else
		put_long(files);
	json_decref(files);
	json_decref(file);
	return cli_finish(CLI_OK);
}

static const struct cli_option stat_options[] = {
    {"follow", 'L', CLI_OPTION_FLAG, 0, NULL, "of a link, what it leads to", CLI_WORD_OTHER},
};

const struct cli_command cli_stat = {
    .name = "stat",
    .args = "BOX PATH",
    .help = "tell what is at a path of a box",
    CLI_OPTIONS(stat_options),
    .words = {CLI_WORD_PLACE, CLI_WORD_PATH},
    .run = stat_run,
};
