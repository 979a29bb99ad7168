/* cli_search: sbxctl glob and grep. Hold no state. */
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli_place.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define PATH_MAX_LEN 16000U

/* BOX PATTERN [PATH], or BOX:PATH PATTERN. CLI_OK or CLI_USAGE. */
static int take_search(const struct cli *cli, int argc, char **argv, int at,
    struct cli_place *place, const char **pattern)
{
	int status = cli_place_take(cli, argc, argv, &at, place);

	if (status != CLI_OK)
		return status;
	if (at == argc)
		return cli_usage(cli, "no pattern is given");
	*pattern = argv[at++];
	if (at < argc && !place->path)
		place->path = argv[at++];
	if (at < argc)
		return cli_usage(cli, "unexpected argument '%s'", argv[at]);
	if (!place->path)
		place->path = CLI_PLACE_DEFAULT;
	return cli_place_check(cli, place->path);
}

static int put_search(struct buf *path, const struct cli_place *place, const char *what,
    const char *pattern, uint32_t max)
{
	int rc = cli_place_put(path, place->box, what, place->path);

	if (rc == 0)
		rc = cli_query_put(path, "pattern", pattern);
	if (rc == 0 && max)
		rc = buf_printf(path, "&max_results=%u", max);
	return rc < 0 ? rc : buf_terminate(path);
}

/* ---- glob ---- */

struct glob_options {
	bool dirs;
	uint32_t max;
};

/* The exact bytes of a match that is no UTF-8. The caller's; NULL: it is, or there is no memory. */
static char *encoded_match(const json_t *answer, size_t index)
{
	json_t *e;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "encoded")), i, e)
	{
		if (cli_int_at(e, "index") == (long long)index)
			return cli_name_at(e, "path");
	}
	return NULL;
}

static void put_matches(const json_t *answer)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	json_t *match;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "matches")), i, match)
	{
		char *exact = encoded_match(answer, i);
		const char *text = json_string_value(match);

		cli_put_name(stdout, &screen, CLI_PLAIN, exact ? exact : text ? text : "?");
		(void)fputc('\n', stdout);
		free(exact);
	}
}

static int glob_run(struct cli *cli, int argc, char **argv)
{
	struct glob_options o = {.max = 0};
	int at = cli_parse(cli, &o, argc, argv);
	const char *pattern = NULL;
	struct cli_place place;
	json_t *answer = NULL;
	struct buf path;
	int status;
	int rc;

	if (at < 0)
		return -at;
	status = take_search(cli, argc, argv, at, &place, &pattern);
	if (status != CLI_OK)
		return status;
	buf_init(&path, PATH_MAX_LEN);
	rc = put_search(&path, &place, "/fs/glob", pattern, o.max);
	if (rc == 0 && o.dirs)
		rc = cli_query_put(&path, "include_dirs", "1");
	status = cli_place_call(cli, "GET", &path, rc, &place, &answer);
	if (status != CLI_OK)
		return status;
	if (cli->json)
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
	else
		put_matches(answer);
	status = cli_put_problems("glob", answer);
	json_decref(answer);
	return cli_finish(status);
}

#define GLOB_AT(member) offsetof(struct glob_options, member)

static const struct cli_option glob_options[] = {
    {"dirs", 'd', CLI_OPTION_FLAG, GLOB_AT(dirs), NULL, "directories, too", CLI_WORD_OTHER},
    {"max", 0, CLI_OPTION_NUMBER, GLOB_AT(max), "N", "at most so many; 200 if absent",
	CLI_WORD_OTHER},
};

const struct cli_command cli_glob = {
    .name = "glob",
    .args = "BOX PATTERN [PATH]",
    .help = "find files of a box by name",
    CLI_OPTIONS(glob_options),
    .words = {CLI_WORD_PLACE, CLI_WORD_OTHER, CLI_WORD_PATH},
    .run = glob_run,
};

/* ---- grep ---- */

struct grep_options {
	bool literal;
	bool exact_case;
	const char *glob;
	uint32_t max;
};

static void put_lines(const json_t *answer)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	json_t *match;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "matches")), i, match)
	{
		char *name = cli_name_at(match, "path");

		cli_put_name(stdout, &screen, CLI_FOLDER, name ? name : "?");
		(void)printf(":%lld:", cli_int_at(match, "line_number"));
		cli_put_name(stdout, &screen, CLI_PLAIN, cli_text_at(match, "line"));
		(void)fputc('\n', stdout);
		free(name);
	}
}

static int grep_put(struct buf *path, const struct grep_options *o, const struct cli_place *place,
    const char *pattern)
{
	int rc = put_search(path, place, "/fs/grep", pattern, o->max);

	if (rc == 0 && o->literal)
		rc = cli_query_put(path, "literal", "1");
	if (rc == 0 && o->exact_case)
		rc = cli_query_put(path, "case_sensitive", "1");
	if (rc == 0 && o->glob)
		rc = cli_query_put(path, "glob", o->glob);
	return rc;
}

static int grep_run(struct cli *cli, int argc, char **argv)
{
	struct grep_options o = {.max = 0};
	int at = cli_parse(cli, &o, argc, argv);
	const char *pattern = NULL;
	struct cli_place place;
	json_t *answer = NULL;
	struct buf path;
	bool found;
	int status;
	int rc;

	if (at < 0)
		return -at;
	status = take_search(cli, argc, argv, at, &place, &pattern);
	if (status != CLI_OK)
		return status;
	buf_init(&path, PATH_MAX_LEN);
	rc = grep_put(&path, &o, &place, pattern);
	status = cli_place_call(cli, "GET", &path, rc, &place, &answer);
	if (status != CLI_OK)
		return status;
	if (cli->json)
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
	else
		put_lines(answer);
	found = json_array_size(json_object_get(answer, "matches")) > 0;
	status = cli_put_problems("grep", answer);
	json_decref(answer);
	return cli_finish(status == CLI_OK && !found ? CLI_WRONG : status);
}

#define GREP_AT(member) offsetof(struct grep_options, member)

static const struct cli_option grep_options[] = {
    {"fixed", 'F', CLI_OPTION_FLAG, GREP_AT(literal), NULL, "the pattern is plain text",
	CLI_WORD_OTHER},
    {"case", 's', CLI_OPTION_FLAG, GREP_AT(exact_case), NULL, "upper and lower case differ",
	CLI_WORD_OTHER},
    {"glob", 'g', CLI_OPTION_TEXT, GREP_AT(glob), "GLOB", "only files whose path is like this",
	CLI_WORD_OTHER},
    {"max", 0, CLI_OPTION_NUMBER, GREP_AT(max), "N", "at most so many lines; 100 if absent",
	CLI_WORD_OTHER},
};

const struct cli_command cli_grep = {
    .name = "grep",
    .args = "BOX PATTERN [PATH]",
    .help = "find lines in the files of a box",
    CLI_OPTIONS(grep_options),
    .words = {CLI_WORD_PLACE, CLI_WORD_OTHER, CLI_WORD_PATH},
    .run = grep_run,
};
