/* cli_template: sbxctl template ls and rm. */
#include <string.h>
#include <unistd.h>

#include "tools/cli.h"
#include "tools/cli_grid.h"
#include "tools/cli_view.h"
#include "wire/http.h"

#define DELETE_S 300 /* as long as the service takes at most */
#define PATH_MAX_BYTES 1024U

/* ---- ls ---- */

static const struct cli_column columns[] = {
    {.title = "KEY", .least = 8},
    {.title = "IMAGE", .least = 8},
    {.title = "MEMORY", .right = true},
    {.title = "CPUS", .right = true},
    {.title = "ACCEL", .drop = 4},
    {.title = "SIZE", .right = true, .drop = 3},
    {.title = "BOXES", .right = true},
    {.title = "MADE", .drop = 2},
    {.title = "USED", .drop = 1},
    {.title = "STATE"},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* "2026-11-30 18:32" of a time of the service's. */
static void format_time(const char *time, char out[20])
{
	(void)snprintf(out, 20, "%.16s", time);
	if (strlen(out) > 10)
		out[10] = ' ';
}

static enum cli_style style_of(const char *state)
{
	return !strcmp(state, "current") ? CLI_GOOD : !strcmp(state, "stale") ? CLI_WARN : CLI_BAD;
}

static void add_row(struct cli_grid *g, const json_t *t)
{
	const char *state = cli_text_at(t, "state");
	char memory[24];
	char cpus[24];
	char boxes[24];
	char size[16];
	char made[20];
	char used[20];

	(void)snprintf(memory, sizeof(memory), "%lldM", cli_int_at(t, "memory_mib"));
	(void)snprintf(cpus, sizeof(cpus), "%lld", cli_int_at(t, "cpus"));
	(void)snprintf(boxes, sizeof(boxes), "%lld", cli_int_at(t, "boxes"));
	cli_format_bytes((uint64_t)cli_int_at(t, "size_bytes"), size, sizeof(size));
	format_time(cli_text_at(t, "made_at"), made);
	format_time(cli_text_at(t, "used_at"), used);
	cli_grid_add(g, (const struct cli_cell[COLUMNS]){
			    {cli_text_at(t, "key"), CLI_PLAIN},
			    {cli_text_at(t, "image"), CLI_PLAIN},
			    {memory, CLI_PLAIN},
			    {cpus, CLI_PLAIN},
			    {cli_text_at(t, "accelerator"), CLI_PLAIN},
			    {size, CLI_PLAIN},
			    {boxes, CLI_PLAIN},
			    {made, CLI_QUIET},
			    {used, CLI_QUIET},
			    {state, style_of(state)},
			});
}

/* Below the table, for it is longer than a column. */
static void put_why(const json_t *t)
{
	if (!json_is_string(json_object_get(t, "why")))
		return;
	cli_put_text(stdout, cli_text_at(t, "key"));
	(void)printf(": ");
	cli_put_text(stdout, cli_text_at(t, "why"));
	(void)putchar('\n');
}

static void put_templates(const json_t *templates)
{
	const struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	struct cli_grid g;
	json_t *t;
	size_t i;

	cli_grid_init(&g, columns, COLUMNS);
	json_array_foreach(cli_walk(templates), i, t) add_row(&g, t);
	cli_grid_put(&g, stdout, &screen);
	cli_grid_free(&g);
	json_array_foreach(cli_walk(templates), i, t) put_why(t);
}

static int ls_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *answer = NULL;

	if (status != CLI_OK)
		return status;
	status = cli_call(cli, "template ls", "GET", "/v1/templates", NULL, CLI_WAIT_S, &answer);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(json_object_get(answer, "templates")); /* cli_finish() looks */
	else if (status == CLI_OK)
		put_templates(json_object_get(answer, "templates"));
	json_decref(answer);
	return cli_finish(status);
}

const struct cli_command cli_template_ls = {
    .name = "template",
    .sub = "ls",
    .args = "",
    .help = "list the templates that micro-VMs begin as copies of",
    .run = ls_run,
};

/* ---- rm ---- */

static void put_removed(const struct cli *cli, const json_t *answer)
{
	char bytes[16];
	json_t *key;
	size_t i;

	if (cli->json) {
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
		return;
	}
	json_array_foreach(cli_walk(json_object_get(answer, "removed")), i, key)
	{
		if (json_is_string(key))
			cli_put_text(stdout, json_string_value(key));
		(void)putchar('\n');
	}
	cli_format_bytes((uint64_t)cli_int_at(answer, "freed_bytes"), bytes, sizeof(bytes));
	(void)printf("%s freed\n", bytes);
}

static int remove_one(const struct cli *cli, const char *key)
{
	struct buf path;
	json_t *answer = NULL;
	int status = CLI_FAILED;

	buf_init(&path, PATH_MAX_BYTES);
	if (buf_puts(&path, "/v1/templates/") == 0 && http_put_escaped(&path, key, false) == 0 &&
	    buf_terminate(&path) == 0)
		status = cli_call(cli, "template rm", "DELETE", (const char *)buf_head(&path), NULL,
		    DELETE_S, &answer);
	else
		(void)fprintf(stderr, "sbxctl: template rm: the key is too long\n");
	buf_free(&path);
	if (status == CLI_OK)
		put_removed(cli, answer);
	json_decref(answer);
	return status;
}

static int rm_run(struct cli *cli, int argc, char **argv)
{
	int first = cli_parse(cli, NULL, argc, argv);
	int status = CLI_OK;

	if (first < 0)
		return -first;
	if (first == argc)
		return cli_usage(cli, "which template is to be removed?");
	for (int i = first; i < argc; i++) {
		int one = remove_one(cli, argv[i]);

		status = status == CLI_OK ? one : status;
	}
	return cli_finish(status);
}

const struct cli_command cli_template_rm = {
    .name = "template",
    .sub = "rm",
    .args = "KEY...",
    .help = "remove templates that no box is a copy of",
    .words = {CLI_WORD_TEMPLATE},
    .run = rm_run,
};
