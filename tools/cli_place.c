/* cli_place: files in boxes, as words, queries and answers. sbxctl; holds no state. */
#include "tools/cli_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli_view.h"
#include "wire/http.h"
#include "wire/json.h"

bool cli_place_read(const char *word, struct cli_place *out)
{
	const char *colon = strstr(word, ":/");
	size_t n = colon ? (size_t)(colon - word) : 0;

	if (n == 0 || n >= sizeof(out->box) || memchr(word, '/', n) || word[0] == '.')
		return false;
	memcpy(out->box, word, n);
	out->box[n] = '\0';
	out->path = colon + 1;
	return true;
}

int cli_place_check(const struct cli *cli, const char *path)
{
	return path[0] == '/' ? CLI_OK
			      : cli_usage(cli, "'%s': a path in a box begins with a slash", path);
}

int cli_place_take(const struct cli *cli, int argc, char **argv, int *at, struct cli_place *out)
{
	const char *word = *at < argc ? argv[*at] : NULL;

	if (!word)
		return cli_usage(cli, "no box is given");
	++*at;
	if (cli_place_read(word, out))
		return CLI_OK;
	if (strlen(word) >= sizeof(out->box))
		return cli_usage(cli, "no box can have this name");
	(void)snprintf(out->box, sizeof(out->box), "%s", word);
	out->path = NULL;
	return CLI_OK;
}

int cli_query_put(struct buf *out, const char *key, const char *text)
{
	int rc = buf_printf(out, "&%s=", key);

	if (rc == 0)
		rc = http_put_escaped(out, text, true);
	return rc < 0 ? rc : buf_terminate(out);
}

int cli_place_put(struct buf *out, const char *box, const char *what, const char *path)
{
	int rc = cli_put_box_path(out, box, what);

	if (rc == 0)
		rc = buf_puts(out, "?path=");
	if (rc == 0)
		rc = http_put_escaped(out, path, true);
	return rc < 0 ? rc : buf_terminate(out);
}

int cli_place_call(const struct cli *cli, const char *method, struct buf *path, int rc,
    const struct cli_place *place, json_t **out)
{
	const struct err err = {.code = ENAMETOOLONG, .text = "the name is too long"};
	char what[512];
	int status;

	(void)snprintf(what, sizeof(what), "%s:%s", place->box, place->path ? place->path : "");
	if (rc < 0)
		status = cli_fail(what, &err);
	else
		status = cli_call(
		    cli, what, method, (const char *)buf_head(path), NULL, CLI_WAIT_S, out);
	buf_free(path);
	return status;
}

char *cli_name_at(const json_t *o, const char *key)
{
	char exact[64];
	const json_t *encoded;
	const json_t *plain = json_object_get(o, key);
	char *text = NULL;
	uint8_t *bytes;
	size_t n;

	(void)snprintf(exact, sizeof(exact), "%s_base64", key);
	encoded = json_object_get(o, exact);
	if (!encoded)
		return json_is_string(plain) ? strdup(json_string_value(plain)) : NULL;
	if (!json_is_string(encoded))
		return NULL;
	bytes = base64_decode(json_string_value(encoded), json_string_length(encoded), &n);
	if (bytes)
		text = strndup((const char *)bytes, n);
	free(bytes);
	return text;
}

void cli_put_name(FILE *f, const struct cli_screen *s, enum cli_style style, const char *name)
{
	if (s->columns == 0)
		(void)fputs(name, f); /* cli_finish() looks for errors */
	else
		cli_put_styled(f, s, style, name);
}

int cli_put_problems(const char *what, const json_t *answer)
{
	const json_t *errors = json_object_get(answer, "errors");
	long long all = cli_int_at(answer, "error_count");
	json_t *e;
	size_t i;

	json_array_foreach(cli_walk(errors), i, e)
	{
		struct err err;

		(void)err_set(&err, EIO, "%.100s: %.100s (%.40s)", cli_text_at(e, "path"),
		    cli_text_at(e, "message"), cli_text_at(e, "reason"));
		(void)cli_fail(what, &err);
	}
	if (all > (long long)json_array_size(errors))
		(void)fprintf(stderr, "sbxctl: %s: and %lld more\n", what,
		    all - (long long)json_array_size(errors));
	if (json_is_true(json_object_get(answer, "truncated")))
		(void)fprintf(
		    stderr, "sbxctl: %s: there is more; --max says how much is shown\n", what);
	return json_array_size(errors) ? CLI_FAILED : CLI_OK;
}
