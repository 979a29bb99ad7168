/* cli_boxes: sbxctl acquire, release, inspect and rm. */
#include <errno.h>

#include "tools/cli.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define ACQUIRE_S 600
#define PATH_MAX_LEN 8192

/* The one argument that names a box, after the options; NULL after it has said what is wrong. */
static const char *only_box(
    struct cli *cli, const struct cli_option *options, size_t count, int argc, char **argv, int *rc)
{
	int at = cli_parse(cli, options, count, false, argc, argv);

	*rc = at < 0 ? -at : CLI_OK;
	if (at >= 0 && at != argc - 1)
		*rc = cli_usage(cli, at == argc ? "no box is given" : "one box at a time");
	return *rc == CLI_OK ? argv[at] : NULL;
}

/* One request about a box. body NULL: none. */
static int call_box(const struct cli *cli, const char *method, const char *id, const char *rest,
    const struct buf *body, json_t **out)
{
	struct err err;
	struct buf path;
	int status;

	buf_init(&path, PATH_MAX_LEN);
	if (cli_put_box_path(&path, id, rest) < 0) {
		(void)err_set(&err, EINVAL, "no box can have this name");
		status = cli_fail(id, &err);
	} else {
		status =
		    cli_call(cli, id, method, (const char *)buf_head(&path), body, CLI_WAIT_S, out);
	}
	buf_free(&path);
	return status;
}

int cli_acquire(struct cli *cli, int argc, char **argv)
{
	const char *user = NULL;
	const char *thread = NULL;
	const char *image = NULL;
	double lease = 0;
	double wait = 0;
	const struct cli_option options[] = {
	    {"user", 'u', CLI_OPTION_TEXT, &user},
	    {"thread", 't', CLI_OPTION_TEXT, &thread},
	    {"image", 0, CLI_OPTION_TEXT, &image},
	    {"lease", 0, CLI_OPTION_SECONDS, &lease},
	    {"wait", 0, CLI_OPTION_SECONDS, &wait},
	};
	int at = cli_parse(cli, options, sizeof(options) / sizeof(options[0]), false, argc, argv);
	json_t *box = NULL;
	struct json_out j;
	struct buf body;
	int status;

	if (at < 0)
		return -at;
	if (at != argc)
		return cli_usage(cli, "unexpected argument '%s'", argv[at]);
	buf_init(&body, 65536);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	json_put_string(&j, "user_id", user);
	json_put_string(&j, "thread_id", thread);
	if (image)
		json_put_string(&j, "image", image);
	if (lease > 0)
		json_put_double(&j, "lease_seconds", lease);
	if (wait > 0)
		json_put_double(&j, "wait_seconds", wait);
	json_object_end(&j);
	if (json_out_error(&j))
		status = cli_usage(cli, "an option is too long");
	else
		status = cli_call(cli, "acquire", "POST", "/v1/acquire", &body, ACQUIRE_S, &box);
	buf_free(&body);
	if (status != CLI_OK)
		return status;
	if (cli->json) {
		(void)cli_put_json(box); /* cli_finish() looks for errors */
	} else {
		const char *id = json_string_value(json_object_get(box, "box_id"));

		cli_put_text(stdout, id ? id : "?");
		(void)fputc('\n', stdout);
	}
	json_decref(box);
	return cli_finish(status);
}

int cli_release(struct cli *cli, int argc, char **argv)
{
	const char *lease = NULL;
	const struct cli_option options[] = {{"lease", 0, CLI_OPTION_TEXT, &lease}};
	json_t *answer = NULL;
	struct json_out j;
	struct buf body;
	int status;
	const char *id = only_box(cli, options, 1, argc, argv, &status);

	if (!id)
		return status;
	buf_init(&body, 65536);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	if (lease)
		json_put_string(&j, "lease_id", lease);
	json_object_end(&j);
	if (json_out_error(&j))
		status = cli_usage(cli, "--lease is too long");
	else
		status = call_box(cli, "POST", id, "/release", &body, &answer);
	buf_free(&body);
	if (status == CLI_OK && cli->json) {
		(void)cli_put_json(answer);
	} else if (status == CLI_OK) {
		const char *now = json_string_value(json_object_get(answer, "status"));

		cli_put_text(stdout, now ? now : "?");
		(void)fputc('\n', stdout);
	}
	json_decref(answer);
	return cli_finish(status);
}

/* "key  value", one a line; what is nested stays JSON. */
static void put_members(const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(cli_walk(object), key, value)
	{
		(void)printf("%-16s ", key);
		if (json_is_string(value))
			cli_put_text(stdout, json_string_value(value));
		else if (json_is_null(value))
			(void)fputc('-', stdout);
		else
			(void)json_dumpf(value, stdout,
			    JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
		(void)fputc('\n', stdout);
	}
}

int cli_inspect(struct cli *cli, int argc, char **argv)
{
	json_t *box = NULL;
	int status;
	const char *id = only_box(cli, NULL, 0, argc, argv, &status);

	if (!id)
		return status;
	status = call_box(cli, "GET", id, "", NULL, &box);
	if (status == CLI_OK && cli->json)
		(void)cli_put_json(box);
	else if (status == CLI_OK)
		put_members(box);
	json_decref(box);
	return cli_finish(status);
}

int cli_rm(struct cli *cli, int argc, char **argv)
{
	bool force = false;
	const struct cli_option options[] = {{"force", 'f', CLI_OPTION_FLAG, &force}};
	int status;
	const char *id = only_box(cli, options, 1, argc, argv, &status);

	if (!id)
		return status;
	status = call_box(cli, "DELETE", id, force ? "?force=true" : "", NULL, NULL);
	if (status == CLI_OK && cli->json)
		(void)printf("{\n  \"removed\": true\n}\n");
	return cli_finish(status);
}
