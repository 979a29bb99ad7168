/* cli_template: sbxctl template ls and rm. */
#include <string.h>
#include <unistd.h>

#include "tools/cli.h"
#include "tools/cli_grid.h"
#include "tools/cli_remove.h"
#include "tools/cli_view.h"

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
	cli_format_time(cli_text_at(t, "made_at"), made);
	cli_format_time(cli_text_at(t, "used_at"), used);
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

static int rm_run(struct cli *cli, int argc, char **argv)
{
	static const struct cli_removal removal = {
	    "template rm", "/v1/templates/", "key", "template"};

	return cli_remove(cli, &removal, argc, argv);
}

const struct cli_command cli_template_rm = {
    .name = "template",
    .sub = "rm",
    .args = "KEY...",
    .help = "remove templates that no box is a copy of",
    .words = {CLI_WORD_TEMPLATE},
    .run = rm_run,
};
