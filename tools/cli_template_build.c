/* cli_template_build: sbxctl template build. If it dies, the template is made all the same: it is
 * the service's. */
#include <stddef.h>
#include <stdio.h>

#include "tools/cli.h"
#include "tools/cli_follow.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define BODY_BYTES 4096U

struct options {
	uint32_t memory; /* 0: as configured, as the next two */
	uint32_t cpus;
	uint32_t disk;
};

#define AT(member) offsetof(struct options, member)

static const struct cli_option options[] = {
    {"memory", 'm', CLI_OPTION_NUMBER, AT(memory), "MIB", "memory of the boxes that it is for",
	CLI_WORD_OTHER},
    {"cpus", 'c', CLI_OPTION_NUMBER, AT(cpus), "N", "processors of these boxes", CLI_WORD_OTHER},
    {"disk", 'd', CLI_OPTION_NUMBER, AT(disk), "MIB", "what they may write", CLI_WORD_OTHER},
};

static void put_number(struct json_out *j, const char *key, uint32_t value)
{
	if (value)
		json_put_uint(j, key, value);
}

static int put_body(const struct options *o, const char *image, struct buf *body)
{
	struct json_out j;

	json_out_init(&j, body);
	json_object_begin(&j, NULL);
	if (image)
		json_put_string(&j, "image", image);
	put_number(&j, "memory_mib", o->memory);
	put_number(&j, "cpus", o->cpus);
	put_number(&j, "disk_mib", o->disk);
	json_object_end(&j);
	return json_out_error(&j);
}

static void put_template(const json_t *t)
{
	char bytes[16];

	cli_format_bytes((uint64_t)cli_int_at(t, "size_bytes"), bytes, sizeof(bytes));
	cli_put_text(stdout, cli_text_at(t, "key"));
	(void)printf("  ");
	cli_put_text(stdout, cli_text_at(t, "image"));
	(void)printf("  %s  %s\n", bytes,
	    json_is_true(json_object_get(t, "built")) ? "built" : "was there already");
}

static int build(struct cli *cli, const struct options *o, const char *image)
{
	struct buf body;
	json_t *t = NULL;
	int status;

	buf_init(&body, BODY_BYTES);
	if (put_body(o, image, &body))
		status = cli_usage(cli, "the name of the image is too long");
	else
		status = cli_follow(cli,
		    &(struct cli_follow){.command = "template build",
			.subject = image ? image : "the configured image",
			.path = "/v1/templates",
			.body = &body},
		    &t);
	buf_free(&body);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(t); /* cli_finish() looks for errors */
	else if (status == CLI_OK)
		put_template(t);
	json_decref(t);
	return status;
}

static int build_run(struct cli *cli, int argc, char **argv)
{
	struct options o = {0};
	int first = cli_parse(cli, &o, argc, argv);
	int status;

	if (first < 0)
		return -first;
	if (argc - first > 1)
		return cli_usage(cli, "one image is expected, or none");
	status = cli_prepare(cli);
	if (status == CLI_OK)
		status = build(cli, &o, first < argc ? argv[first] : NULL);
	return cli_finish(status);
}

const struct cli_command cli_template_build = {
    .name = "template",
    .sub = "build",
    .args = "[IMAGE]",
    .help = "make the template that boxes of an image begin with, before the first of them",
    CLI_OPTIONS(options),
    .words = {CLI_WORD_IMAGE, CLI_WORD_OTHER},
    .run = build_run,
};
