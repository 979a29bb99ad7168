/* cli_boxes: sbxctl acquire, release, inspect and rm. */
#include <errno.h>
#include <stddef.h>

#include "tools/cli.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define ACQUIRE_S 600
#define PATH_MAX_LEN 8192

/* The one argument that names a box, after the options; NULL after it has said what is wrong. */
static const char *only_box(struct cli *cli, void *out, int argc, char **argv, int *rc)
{
	int at = cli_parse(cli, out, argc, argv);

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

struct acquire_options {
	const char *user;
	const char *thread;
	const char *image;
	double lease;
	double wait;
};

static void put_acquire(struct json_out *j, const struct acquire_options *o)
{
	json_object_begin(j, NULL);
	json_put_string(j, "user_id", o->user);
	json_put_string(j, "thread_id", o->thread);
	if (o->image)
		json_put_string(j, "image", o->image);
	if (o->lease > 0)
		json_put_double(j, "lease_seconds", o->lease);
	if (o->wait > 0)
		json_put_double(j, "wait_seconds", o->wait);
	json_object_end(j);
}

static int acquire_run(struct cli *cli, int argc, char **argv)
{
	struct acquire_options o = {.user = NULL};
	int status = cli_parse_all(cli, &o, argc, argv);
	json_t *box = NULL;
	struct json_out j;
	struct buf body;

	if (status != CLI_OK)
		return status;
	buf_init(&body, 65536);
	json_out_init(&j, &body);
	put_acquire(&j, &o);
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

#define AT(member) offsetof(struct acquire_options, member)

static const struct cli_option acquire_options[] = {
    {"user", 'u', CLI_OPTION_TEXT, AT(user), "USER", "whose box", CLI_WORD_OTHER},
    {"thread", 't', CLI_OPTION_TEXT, AT(thread), "THREAD",
	"of which of the user's threads; without it a new box", CLI_WORD_OTHER},
    {"image", 0, CLI_OPTION_TEXT, AT(image), "REF", "what a new box is made of", CLI_WORD_OTHER},
    {"lease", 0, CLI_OPTION_SECONDS, AT(lease), "S",
	"seconds after which it is given back by itself", CLI_WORD_OTHER},
    {"wait", 0, CLI_OPTION_SECONDS, AT(wait), "S", "seconds to wait for room", CLI_WORD_OTHER},
};

const struct cli_command cli_acquire = {
    .name = "acquire",
    .args = "",
    .help = "take a box and print its name",
    CLI_OPTIONS(acquire_options),
    .run = acquire_run,
};

static int release_run(struct cli *cli, int argc, char **argv)
{
	const char *lease = NULL;
	json_t *answer = NULL;
	struct json_out j;
	struct buf body;
	int status;
	const char *id = only_box(cli, &lease, argc, argv, &status);

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

static const struct cli_option release_options[] = {
    {"lease", 0, CLI_OPTION_TEXT, 0, "ID", "give back this lease only", CLI_WORD_OTHER},
};

const struct cli_command cli_release = {
    .name = "release",
    .args = "BOX",
    .help = "give a box back: it stays warm",
    CLI_OPTIONS(release_options),
    .words = {CLI_WORD_BOX, CLI_WORD_OTHER},
    .run = release_run,
};

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

static int inspect_run(struct cli *cli, int argc, char **argv)
{
	json_t *box = NULL;
	int status;
	const char *id = only_box(cli, NULL, argc, argv, &status);

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

const struct cli_command cli_inspect = {
    .name = "inspect",
    .args = "BOX",
    .help = "show all about a box",
    .words = {CLI_WORD_BOX, CLI_WORD_OTHER},
    .run = inspect_run,
};

static int rm_run(struct cli *cli, int argc, char **argv)
{
	bool force = false;
	int status;
	const char *id = only_box(cli, &force, argc, argv, &status);

	if (!id)
		return status;
	status = call_box(cli, "DELETE", id, force ? "?force=true" : "", NULL, NULL);
	if (status == CLI_OK && cli->json)
		(void)printf("{\n  \"removed\": true\n}\n");
	return cli_finish(status);
}

static const struct cli_option rm_options[] = {
    {"force", 'f', CLI_OPTION_FLAG, 0, NULL, "also one that is in use", CLI_WORD_OTHER},
};

const struct cli_command cli_rm = {
    .name = "rm",
    .args = "BOX",
    .help = "close a box; -f: also one in use",
    CLI_OPTIONS(rm_options),
    .words = {CLI_WORD_BOX, CLI_WORD_OTHER},
    .run = rm_run,
};
