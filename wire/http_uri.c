/* http_uri: percent-encoding, paths and queries (RFC 3986). Any process; holds no state. */
#include <errno.h>
#include <string.h>

#include "wire/http.h"

static int uri_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes one character at *p (not past end) and moves on. The byte, or -EINVAL; NUL is refused. */
static int uri_next(const char **p, const char *end, bool plus_is_space)
{
	unsigned char c = (unsigned char)*(*p)++;
	int hi;
	int lo;

	if (c == '+' && plus_is_space)
		return ' ';
	if (c != '%')
		return c ? c : -EINVAL;
	if (end - *p < 2)
		return -EINVAL;
	hi = uri_hex((*p)[0]);
	lo = uri_hex((*p)[1]);
	if (hi < 0 || lo < 0 || (hi | lo) == 0)
		return -EINVAL;
	*p += 2;
	return hi << 4 | lo;
}

/*
 * Decodes begin..end into out[size], NUL-terminated; out NULL only measures. The length, -EINVAL or
 * -ENAMETOOLONG.
 */
static int uri_decode(
    const char *begin, const char *end, bool plus_is_space, char *out, size_t size)
{
	size_t len = 0;

	while (begin < end) {
		int c = uri_next(&begin, end, plus_is_space);

		if (c < 0)
			return c;
		if (len + 1 >= size)
			return -ENAMETOOLONG;
		if (out)
			out[len] = (char)c;
		len++;
	}
	if (size == 0)
		return -ENAMETOOLONG;
	if (out)
		out[len] = '\0';
	return (int)len;
}

int http_split_path(const char *path, char *storage, size_t size, const char **segments, int max)
{
	int count = 0;

	if (*path != '/')
		return -EINVAL;
	if (path[1] == '\0')
		return 0;
	while (*path == '/') {
		const char *begin = path + 1;
		const char *end = begin + strcspn(begin, "/");
		int len;

		if (count == max)
			return -EINVAL;
		len = uri_decode(begin, end, false, storage, size);
		if (len <= 0 || !strcmp(storage, ".") || !strcmp(storage, ".."))
			return -EINVAL;
		segments[count++] = storage;
		storage += len + 1;
		size -= (size_t)len + 1;
		path = end;
	}
	return count;
}

/* Whether begin..end, decoded, is `key`. */
static bool uri_is_key(const char *begin, const char *end, const char *key)
{
	while (begin < end) {
		int c = uri_next(&begin, end, true);

		if (c < 0 || c != (unsigned char)*key++)
			return false;
	}
	return *key == '\0';
}

int http_query_get(const char *query, const char *key, char *out, size_t size)
{
	const char *value = NULL;
	const char *value_end = NULL;
	int rc;

	while (*query) {
		const char *end = query + strcspn(query, "&");
		const char *name_end = query + strcspn(query, "&=");

		if (uri_is_key(query, name_end, key)) {
			if (value)
				return -EINVAL;
			value = name_end < end ? name_end + 1 : end;
			value_end = end;
		}
		query = *end ? end + 1 : end;
	}
	if (!value)
		return -ENOENT;
	rc = uri_decode(value, value_end, true, NULL, size);
	if (rc < 0)
		return rc;
	return uri_decode(value, value_end, true, out, size);
}

static bool uri_is_plain(unsigned char c, bool keep_slash)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
}

int http_put_escaped(struct buf *out, const char *text, bool keep_slash)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t need = 0;
	uint8_t *to;

	for (const char *p = text; *p; p++)
		need += uri_is_plain((unsigned char)*p, keep_slash) ? 1 : 3;
	if (need == 0)
		return 0;
	if (need > buf_room(out))
		return -ENOBUFS;
	to = buf_reserve(out, need);
	if (!to)
		return -ENOMEM;
	for (const char *p = text; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (uri_is_plain(c, keep_slash)) {
			*to++ = c;
			continue;
		}
		*to++ = '%';
		*to++ = (uint8_t)hex[c >> 4];
		*to++ = (uint8_t)hex[c & 15];
	}
	buf_commit(out, need);
	return 0;
}
