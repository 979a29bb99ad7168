/* cli_image_pull: sbxctl image pull. If it dies, the pull goes on: it is the service's. */
#include <stdio.h>

#include "tools/cli.h"
#include "tools/cli_follow.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define BODY_BYTES 4096U

static void put_image(const json_t *image)
{
	char bytes[16];

	cli_format_bytes((uint64_t)cli_int_at(image, "size_bytes"), bytes, sizeof(bytes));
	cli_put_text(stdout, cli_text_at(image, "reference"));
	(void)printf("  %s  %s\n", cli_text_at(image, "id"), bytes);
}

static int pull(struct cli *cli, const char *reference)
{
	struct json_out j;
	struct buf body;
	json_t *image = NULL;
	int status;

	buf_init(&body, BODY_BYTES);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	json_put_string(&j, "reference", reference);
	json_object_end(&j);
	if (json_out_error(&j))
		status = cli_usage(cli, "the reference is too long");
	else
		status = cli_follow(cli,
		    &(struct cli_follow){.command = "image pull",
			.subject = reference,
			.path = "/v1/images/pull",
			.body = &body},
		    &image);
	buf_free(&body);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(image); /* cli_finish() looks for errors */
	else if (status == CLI_OK)
		put_image(image);
	json_decref(image);
	return status;
}

static int pull_run(struct cli *cli, int argc, char **argv)
{
	int first = cli_parse(cli, NULL, argc, argv);
	int status;

	if (first < 0)
		return -first;
	if (argc - first != 1)
		return cli_usage(cli, "one image is expected");
	status = cli_prepare(cli);
	if (status == CLI_OK)
		status = pull(cli, argv[first]);
	return cli_finish(status);
}

const struct cli_command cli_image_pull = {
    .name = "image",
    .sub = "pull",
    .args = "REFERENCE",
    .help = "fetch an image from its registry: it is what boxes of that name are made of then",
    .run = pull_run,
};
