/* answer: what an answer of the service means. sbxctl, sbxbench; holds no state. */
#include "tools/answer.h"

#include <errno.h>

#include "wire/json.h"

int answer_error(unsigned int status, const uint8_t *body, size_t len, struct err *err)
{
	json_t *answer = json_parse_object(body, len, NULL);
	const json_t *error = json_object_get(answer, "error");
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *reason = json_string_value(json_object_get(error, "reason"));

	if (message)
		(void)err_set(err, EIO, "%.180s (%.40s)", message, reason ? reason : "unknown");
	else
		(void)err_set(err, EIO, "the service answered %u", status);
	json_decref(answer);
	return -EIO;
}
