/* cli_stream: takes a command's streamed output apart. sbxctl; what was not yet written is lost
 * with it. */
#include "tools/cli_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"
#include "wire/json.h"

void cli_stream_init(struct cli_stream *s, cli_stream_fn *fn, void *ctx)
{
	*s = (struct cli_stream){.fn = fn, .ctx = ctx, .result = {.exit_code = -1}};
	buf_init(&s->line, CLI_LINE_MAX);
}

void cli_stream_free(struct cli_stream *s)
{
	buf_free(&s->line);
}

/* An integer or null; absent counts as null. 1: *out is set; 0: null; -EBADMSG. */
static int take_int(const json_t *o, const char *key, int min, int max, int *out)
{
	const json_t *v = json_object_get(o, key);
	json_int_t n = json_integer_value(v);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || n < min || n > max)
		return -EBADMSG;
	*out = (int)n;
	return 1;
}

static void take_error(const json_t *error, struct cli_result *r)
{
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *reason = json_string_value(json_object_get(error, "reason"));

	r->failed = true;
	(void)snprintf(r->message, sizeof(r->message), "%s", message ? message : "failed");
	(void)snprintf(r->reason, sizeof(r->reason), "%s", reason ? reason : "unknown");
}

int cli_result_read(const json_t *answer, struct cli_result *out, struct err *err)
{
	struct cli_result r = {.known = true, .exit_code = -1};
	const json_t *error = json_object_get(answer, "error");

	if (json_is_object(error))
		take_error(error, &r);
	else if (take_int(answer, "exit_code", 0, 255, &r.exit_code) < 0 ||
		 take_int(answer, "signal", 1, 127, &r.signal) < 0)
		return err_set(err, EBADMSG, "exit_code or signal is no such number");
	r.timed_out = json_is_true(json_object_get(answer, "timed_out"));
	*out = r;
	return 0;
}

static int take_data(struct cli_stream *s, const json_t *o, const char *stream, struct err *err)
{
	const json_t *data = json_object_get(o, "data");
	const char *encoding = json_string_value(json_object_get(o, "encoding"));
	int number = strcmp(stream, "stderr") == 0 ? 2 : 1;
	const uint8_t *text = (const uint8_t *)json_string_value(data);
	uint8_t *decoded;
	size_t n;
	int rc;

	if (!text || (number == 1 && strcmp(stream, "stdout") != 0))
		return err_set(err, EBADMSG, "a line without data, or of an unknown stream");
	if (!encoding || strcmp(encoding, "utf-8") == 0)
		return s->fn(s->ctx, number, text, json_string_length(data));
	if (strcmp(encoding, "base64") != 0)
		return err_set(err, EBADMSG, "an unknown encoding: %.20s", encoding);
	decoded = base64_decode((const char *)text, json_string_length(data), &n);
	if (!decoded)
		return err_sys(err, errno, "base64");
	rc = s->fn(s->ctx, number, decoded, n);
	free(decoded);
	return rc;
}

static int take_line(struct cli_stream *s, const uint8_t *line, size_t n, struct err *err)
{
	json_error_t wrong;
	/* Not json_parse_object(): output may hold NUL. */
	json_t *o =
	    json_loadb((const char *)line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
	const char *stream = json_string_value(json_object_get(o, "stream"));
	int rc;

	if (!json_is_object(o))
		rc = err_set(err, EBADMSG, "a line that is no JSON object");
	else if (stream)
		rc = take_data(s, o, stream, err);
	else
		rc = cli_result_read(o, &s->result, err);
	json_decref(o);
	return rc;
}

int cli_stream_feed(struct cli_stream *s, const uint8_t *bytes, size_t n, struct err *err)
{
	while (n > 0) {
		const uint8_t *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;
		int rc;

		if (s->line.len == 0 && end) {
			rc = take_line(s, bytes, part, err);
		} else {
			rc = buf_append(&s->line, bytes, part);
			if (rc < 0)
				return err_set(
				    err, EBADMSG, "a line of more than %u bytes", CLI_LINE_MAX);
			if (end) {
				rc = take_line(s, buf_head(&s->line), s->line.len, err);
				buf_clear(&s->line);
			}
		}
		if (rc < 0)
			return rc;
		part += end != NULL;
		bytes += part;
		n -= part;
	}
	return 0;
}

int cli_result_status(const struct cli_result *r)
{
	if (!r->known || r->failed)
		return CLI_FAILED;
	if (r->timed_out)
		return CLI_TIMEOUT;
	if (r->signal)
		return CLI_SIGNAL + r->signal;
	return r->exit_code >= 0 ? r->exit_code : CLI_FAILED;
}
