/* cli_image: sbxctl image ls, rm and prune. */
#include <unistd.h>

#include "tools/cli.h"
#include "tools/cli_grid.h"
#include "tools/cli_remove.h"
#include "tools/cli_view.h"

#define SHORT_ID 19 /* "sha256:" and 12 digits, as others show them */
#define PAGE_MAX "1000"

/* ---- ls ---- */

static const struct cli_column columns[] = {
    {.title = "REFERENCE", .least = 12},
    {.title = "ID", .least = 8, .drop = 1},
    {.title = "SIZE", .right = true},
    {.title = "PULLED", .drop = 2},
    {.title = "USED"},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void add_row(struct cli_grid *g, const json_t *image)
{
	const json_t *size = json_object_get(image, "size_bytes");
	char id[SHORT_ID + 1];
	char bytes[16] = "-";
	char pulled[20];
	char used[20];

	(void)snprintf(id, sizeof(id), "%s", cli_text_at(image, "id"));
	if (json_is_integer(size))
		cli_format_bytes((uint64_t)json_integer_value(size), bytes, sizeof(bytes));
	cli_format_time(cli_text_at(image, "cached_at"), pulled);
	cli_format_time(cli_text_at(image, "used_at"), used);
	cli_grid_add(
	    g, (const struct cli_cell[COLUMNS]){
		   {cli_text_at(image, "reference"), CLI_PLAIN},
		   {id, CLI_QUIET},
		   {bytes, CLI_PLAIN},
		   {pulled, CLI_PLAIN},
		   {json_is_true(json_object_get(image, "in_use")) ? "now" : used, CLI_PLAIN},
	       });
}

static void put_images(const json_t *images)
{
	const struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	struct cli_grid g;
	json_t *image;
	size_t i;

	cli_grid_init(&g, columns, COLUMNS);
	json_array_foreach(images, i, image) add_row(&g, image);
	cli_grid_put(&g, stdout, &screen);
	cli_grid_free(&g);
}

/* All pages, one after the other. */
static int read_images(const struct cli *cli, json_t *all)
{
	char path[96];
	char token[32] = "";
	json_t *page;
	int status;

	do {
		(void)snprintf(path, sizeof(path), "/v1/images?pageSize=" PAGE_MAX "%s%s",
		    *token ? "&pageToken=" : "", token);
		page = NULL;
		status = cli_call(cli, "image ls", "GET", path, NULL, CLI_WAIT_S, &page);
		if (status == CLI_OK)
			(void)json_array_extend(all, json_object_get(page, "images"));
		(void)snprintf(token, sizeof(token), "%s", cli_text_at(page, "next_page_token"));
		json_decref(page);
	} while (status == CLI_OK && token[0] == 'i');
	return status;
}

static int ls_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *images;

	if (status != CLI_OK)
		return status;
	images = json_array();
	status = read_images(cli, images);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(images); /* cli_finish() looks for errors */
	else if (status == CLI_OK)
		put_images(images);
	json_decref(images);
	return cli_finish(status);
}

const struct cli_command cli_image_ls = {
    .name = "image",
    .sub = "ls",
    .args = "",
    .help = "list the images that boxes can be made of at once",
    .run = ls_run,
};

/* ---- rm and prune ---- */

static int rm_run(struct cli *cli, int argc, char **argv)
{
	static const struct cli_removal removal = {"image rm", "/v1/images/", "name", "image"};

	return cli_remove(cli, &removal, argc, argv);
}

const struct cli_command cli_image_rm = {
    .name = "image",
    .sub = "rm",
    .args = "IMAGE...",
    .help = "remove images that no box is made of, by reference or digest",
    .run = rm_run,
};

static int prune_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *answer = NULL;

	if (status != CLI_OK)
		return status;
	status =
	    cli_call(cli, "image prune", "POST", "/v1/images/prune", NULL, CLI_REMOVE_S, &answer);
	if (status == CLI_OK)
		cli_put_removed(cli, answer);
	json_decref(answer);
	return cli_finish(status);
}

const struct cli_command cli_image_prune = {
    .name = "image",
    .sub = "prune",
    .args = "",
    .help = "remove every image that no box is made of",
    .run = prune_run,
};
