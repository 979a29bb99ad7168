/* cli_cat: sbxctl cat. Holds no state. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tools/cli_transfer.h"

#define PATH_MAX_LEN 16000U

/* The body of the answer to stdout. */
static int copy_out(struct cli_transfer *t)
{
	const uint8_t *bytes = NULL;
	struct err err = {0};
	size_t n = 0;
	int rc;

	while ((rc = cli_transfer_read(t, &bytes, &n, &err)) > 0) {
		rc = cli_write(t->cli, STDOUT_FILENO, bytes, n);
		if (rc == -EPIPE)
			return CLI_SIGNAL + SIGPIPE; /* as any other cat */
		if (rc < 0) {
			(void)err_sys(&err, -rc, "cannot write");
			break;
		}
	}
	return rc < 0 ? cli_transfer_fail(t, &err) : CLI_OK;
}

static int cat_one(struct cli_transfer *t, const struct cli_place *place)
{
	const struct err too_long = {.code = ENAMETOOLONG, .text = "the name is too long"};
	struct buf path;
	int status;

	t->what = place->path;
	buf_init(&path, PATH_MAX_LEN);
	if (cli_place_put(&path, place->box, "/fs/read", place->path) < 0)
		status = cli_transfer_fail(t, &too_long);
	else
		status =
		    cli_transfer_get(t, (const char *)buf_head(&path), "application/octet-stream");
	buf_free(&path);
	return status == CLI_OK ? copy_out(t) : status;
}

/* BOX PATH..., or BOX:PATH and no more. */
static int cat_all(const struct cli *cli, struct cli_place *place, int argc, char **argv, int at)
{
	struct cli_transfer t;
	int status = cli_transfer_open(&t, cli, place->box);

	if (status == CLI_OK && place->path)
		status = cat_one(&t, place);
	for (; status == CLI_OK && at < argc; at++) {
		place->path = argv[at];
		status = cat_one(&t, place);
	}
	cli_transfer_close(&t);
	return status;
}

static int cat_run(struct cli *cli, int argc, char **argv)
{
	int at = cli_parse(cli, NULL, argc, argv);
	struct cli_place place;
	int status;

	if (at < 0)
		return -at;
	status = cli_place_take(cli, argc, argv, &at, &place);
	if (status != CLI_OK)
		return status;
	if (!place.path && at == argc)
		return cli_usage(cli, "no path is given");
	for (int i = at; i < argc; i++) {
		if (cli_place_check(cli, argv[i]) != CLI_OK)
			return CLI_USAGE;
	}
	status = cli_prepare(cli);
	return status == CLI_OK ? cat_all(cli, &place, argc, argv, at) : status;
}

const struct cli_command cli_cat = {
    .name = "cat",
    .args = "BOX PATH...",
    .help = "write files of a box to standard output",
    .words = {CLI_WORD_PLACE, CLI_WORD_PATH, CLI_WORD_PATH},
    .run = cat_run,
};
