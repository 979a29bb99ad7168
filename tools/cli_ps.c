/*
 * cli_ps: sbxctl ps. Reads the shared table, so that it works when sbxd hangs or is dead; asks the
 * service when the table is not ours to read.
 */
#include "lib/clock.h"
#include "shm/reader.h"
#include "tools/cli.h"
#include "tools/cli_show.h"
#include "tools/cli_view.h"

/* All boxes of the table, and whether its supervisor lives. */
static json_t *read_table(const char *shm_name, bool *alive, struct err *err)
{
	uint64_t now = clock_now_ns();
	struct reader_summary sum;
	struct reader_box box;
	struct reader r;
	json_t *boxes;

	if (reader_open(&r, shm_name, err) < 0)
		return NULL;
	reader_summarize(&r, &sum);
	*alive = sum.alive;
	boxes = json_array();
	for (uint32_t i = 0; i < sum.slots; i++) {
		if (reader_box(&r, i, &box) == 0)
			(void)json_array_append_new(boxes, cli_box_json(&box, now));
	}
	reader_close(&r);
	return boxes;
}

static int ask_service(const struct cli *cli, json_t **boxes)
{
	json_t *answer = NULL;
	int status = cli_call(cli, "ps", "GET", "/v1/boxes?all=true", NULL, CLI_WAIT_S, &answer);

	if (status == CLI_OK)
		*boxes = json_incref(json_object_get(answer, "boxes"));
	json_decref(answer);
	return status;
}

static int ps_run(struct cli *cli, int argc, char **argv)
{
	int status = cli_parse_all(cli, NULL, argc, argv);
	json_t *boxes = NULL;
	bool alive = true;
	struct paths p;
	struct err err;

	if (status != CLI_OK)
		return status;
	/* A socket alone does not say which table belongs to it. */
	if ((!cli->socket || cli->instance) && cli_paths(cli, &p, &err) == 0)
		boxes = read_table(p.shm_name, &alive, &err);
	if (!boxes)
		status = ask_service(cli, &boxes);
	if (status == CLI_OK && !alive)
		(void)fprintf(stderr, "sbxctl: ps: sbxd is not running; this is what it left\n");
	if (status == CLI_OK && cli->json) {
		json_t *all = json_pack("{s:O}", "boxes", boxes);

		(void)cli_put_json(all); /* cli_finish() looks for errors */
		json_decref(all);
	} else if (status == CLI_OK) {
		cli_put_boxes(boxes);
	}
	json_decref(boxes);
	return cli_finish(status);
}

const struct cli_command cli_ps = {
    .name = "ps",
    .args = "",
    .help = "list boxes",
    .run = ps_run,
};
