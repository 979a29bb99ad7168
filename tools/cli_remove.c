/* cli_remove: sbxctl image rm and template rm. */
#include "tools/cli_remove.h"

#include "tools/cli.h"
#include "tools/cli_view.h"
#include "wire/http.h"

#define PATH_MAX_BYTES 1024U

void cli_put_removed(const struct cli *cli, const json_t *answer)
{
	char bytes[16];
	json_t *name;
	size_t i;

	if (cli->json) {
		(void)cli_put_json(answer); /* cli_finish() looks for errors */
		return;
	}
	json_array_foreach(cli_walk(json_object_get(answer, "removed")), i, name)
	{
		if (json_is_string(name))
			cli_put_text(stdout, json_string_value(name));
		(void)putchar('\n');
	}
	cli_format_bytes((uint64_t)cli_int_at(answer, "freed_bytes"), bytes, sizeof(bytes));
	(void)printf("%s freed\n", bytes);
}

static int remove_one(const struct cli *cli, const struct cli_removal *r, const char *name)
{
	struct buf path;
	json_t *answer = NULL;
	int status = CLI_FAILED;

	buf_init(&path, PATH_MAX_BYTES);
	if (buf_puts(&path, r->path) == 0 && http_put_escaped(&path, name, false) == 0 &&
	    buf_terminate(&path) == 0)
		status = cli_call(cli, r->command, "DELETE", (const char *)buf_head(&path), NULL,
		    CLI_REMOVE_S, &answer);
	else
		(void)fprintf(stderr, "sbxctl: %s: the %s is too long\n", r->command, r->noun);
	buf_free(&path);
	if (status == CLI_OK)
		cli_put_removed(cli, answer);
	json_decref(answer);
	return status;
}

int cli_remove(struct cli *cli, const struct cli_removal *r, int argc, char **argv)
{
	int first = cli_parse(cli, NULL, argc, argv);
	int status = CLI_OK;

	if (first < 0)
		return -first;
	if (first == argc)
		return cli_usage(cli, "which %s is to be removed?", r->what);
	for (int i = first; i < argc; i++) {
		int one = remove_one(cli, r, argv[i]);

		status = status == CLI_OK ? one : status;
	}
	return cli_finish(status);
}
