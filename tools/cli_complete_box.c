/* cli_complete_box: boxes and their files, images and templates, for completion. sbxctl; says
 * nothing when the service is not there, as somebody is in the middle of typing. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli_complete.h"
#include "tools/cli_place.h"
#include "tools/cli_view.h"
#include "wire/json.h"

#define ASK_S 2 /* longer nobody waits for a key */
#define ANSWER_MAX (4U * 1024U * 1024U)
#define PATH_MAX_LEN 16000U

/* GET, its object or NULL. */
static json_t *ask(const struct cli *cli, const char *path)
{
	const struct httpc_request req = {.method = "GET", .path = path};
	uint64_t deadline = cli_deadline(ASK_S);
	const struct http_head *head = NULL;
	struct httpc *c = NULL;
	json_t *answer = NULL;
	struct buf body;
	struct err err;

	buf_init(&body, ANSWER_MAX);
	if (cli_connect(cli, &c, &err) == 0 && httpc_send(c, &req, deadline, &head, &err) == 0 &&
	    head->status == 200 && httpc_read_all(c, deadline, &body, &err) == 0)
		answer = json_parse_object(buf_head(&body), body.len, NULL);
	buf_free(&body);
	httpc_close(c);
	return answer;
}

void cli_complete_boxes(const struct cli *cli, const char *typed, const char *suffix)
{
	json_t *answer = ask(cli, "/v1/boxes?all=true");
	json_t *b;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "boxes")), i, b)
	{
		char help[256];
		char word[CLI_BOX_MAX + 8];

		(void)snprintf(help, sizeof(help), "%s, user %s, thread %s",
		    cli_text_at(b, "status"), cli_text_at(b, "user_id"),
		    cli_text_at(b, "thread_id"));
		(void)snprintf(word, sizeof(word), "%s%s", cli_text_at(b, "box_id"), suffix);
		cli_complete_put("", 0, typed, word, help);
		(void)snprintf(word, sizeof(word), "%s%s", cli_text_at(b, "name"), suffix);
		if (json_is_string(json_object_get(b, "name")))
			cli_complete_put("", 0, typed, word, help);
	}
	json_decref(answer);
}

void cli_complete_images(const struct cli *cli, const char *typed)
{
	json_t *answer = ask(cli, "/v1/images?pageSize=1000");
	json_t *image;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "images")), i, image) cli_complete_put(
	    "", 0, typed, cli_text_at(image, "reference"), cli_text_at(image, "id"));
	json_decref(answer);
}

void cli_complete_templates(const struct cli *cli, const char *typed)
{
	json_t *answer = ask(cli, "/v1/templates");
	char help[256];
	json_t *t;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "templates")), i, t)
	{
		(void)snprintf(help, sizeof(help), "%s, %lld MiB, %s", cli_text_at(t, "image"),
		    cli_int_at(t, "memory_mib"), cli_text_at(t, "state"));
		cli_complete_put("", 0, typed, cli_text_at(t, "key"), help);
	}
	json_decref(answer);
}

/* What is in a directory of a box, or NULL. */
static json_t *ask_folder(const struct cli *cli, const char *box, const char *folder)
{
	json_t *answer = NULL;
	struct buf path;

	buf_init(&path, PATH_MAX_LEN);
	if (cli_place_put(&path, box, "/fs/list", folder) == 0)
		answer = ask(cli, (const char *)buf_head(&path));
	buf_free(&path);
	return answer;
}

/* The entries of the directory of `typed`, each behind `prefix` and that directory. */
static void put_paths(const struct cli *cli, const char *box, const char *prefix, const char *typed)
{
	const char *slash = strrchr(typed, '/');
	size_t n = slash ? (size_t)(slash - typed) + 1 : 0;
	char *folder = n > 1 ? strndup(typed, n - 1) : strdup("/");
	json_t *answer = slash && folder ? ask_folder(cli, box, folder) : NULL;
	json_t *e;
	size_t i;

	json_array_foreach(cli_walk(json_object_get(answer, "entries")), i, e)
	{
		bool is_folder = !strcmp(cli_text_at(e, "type"), "directory");
		char *name = cli_name_at(e, "path");
		char *word = NULL;

		if (name && strncmp(name, typed + n, strlen(typed + n)) == 0 &&
		    asprintf(
			&word, "%s%.*s%s%s", prefix, (int)n, typed, name, is_folder ? "/" : "") < 0)
			word = NULL;
		if (word)
			cli_complete_put("", 0, "", word, cli_text_at(e, "type"));
		free(word);
		free(name);
	}
	json_decref(answer);
	free(folder);
}

void cli_complete_paths(const struct cli *cli, const char *box, const char *typed)
{
	struct cli_place place;

	/* Of BOX:/PATH no path follows. */
	if (!cli_place_read(box, &place))
		put_paths(cli, box, "", typed[0] ? typed : "/");
}

void cli_complete_places(const struct cli *cli, const char *typed)
{
	char prefix[CLI_BOX_MAX + 2];
	struct cli_place place;

	if (!cli_place_read(typed, &place))
		return;
	(void)snprintf(prefix, sizeof(prefix), "%s:", place.box);
	put_paths(cli, place.box, prefix, place.path);
}
