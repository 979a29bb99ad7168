/* http_query: values of a query, checked: the same words for the same mistake everywhere. Any
 * process; holds no state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/http.h"

int http_query_text(const char *query, const char *key, char *out, size_t size, struct err *err)
{
	int n = http_query_get(query, key, out, size);

	if (n > 0)
		return 1;
	if (n == -ENOENT)
		return 0;
	return err_set(err, EINVAL, "\"%s\" %s", key,
	    n == 0		 ? "is empty"
	    : n == -ENAMETOOLONG ? "is too long"
				 : "is given twice or badly escaped");
}

int http_query_flag(const char *query, const char *key, bool *out, struct err *err)
{
	static const char *const words[] = {"0", "false", "1", "true"};
	char text[8];
	int n = http_query_get(query, key, text, sizeof(text));

	if (n == -ENOENT)
		return 0;
	for (size_t i = 0; n > 0 && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		*out = i >= 2;
		return 1;
	}
	return err_set(err, EINVAL, "\"%s\" must be 0, 1, true or false", key);
}

/* -EINVAL, and what a number may be; bounds that are none are not worth a word. */
static int number_refuse(const char *key, int base, uint64_t least, uint64_t most, struct err *err)
{
	const char *kind = base == 8 ? "an octal" : "a decimal";
	unsigned long long from = least;
	unsigned long long to = most;

	if (most < INT64_MAX)
		return err_set(err, EINVAL,
		    base == 8 ? "\"%s\" must be %s number from %llo to %llo"
			      : "\"%s\" must be %s number from %llu to %llu",
		    key, kind, from, to);
	if (least > 0)
		return err_set(
		    err, EINVAL, "\"%s\" must be %s number, at least %llu", key, kind, from);
	return err_set(err, EINVAL, "\"%s\" must be %s number", key, kind);
}

int http_query_number(const char *query, const char *key, int base, uint64_t least, uint64_t most,
    uint64_t *out, struct err *err)
{
	char text[24];
	uint64_t value = 0;
	char *end = text;
	int n = http_query_get(query, key, text, sizeof(text));

	if (n == -ENOENT)
		return 0;
	errno = 0;
	if (n > 0 && text[0] >= '0' && text[0] <= '9')
		value = strtoull(text, &end, base);
	if (n > 0 && end == text + n && errno == 0 && value >= least && value <= most) {
		*out = value;
		return 1;
	}
	return number_refuse(key, base, least, most, err);
}
