/* match: whether a path is like a pattern. sbx-files; pure functions, nothing is lost here. */
#include "guest/files/match.h"

#include <errno.h>
#include <string.h>

#include "guest/files/files.h"

/* ---- one component ---- */

/* The character at s, of n > 0 bytes, and how many it takes; a byte that is no UTF-8 is a character
 * that no UTF-8 is. */
static uint32_t character(const char *s, size_t n, size_t *len)
{
	const uint8_t *p = (const uint8_t *)s;
	size_t more = p[0] >= 0xf0U ? 3 : p[0] >= 0xe0U ? 2 : 1;
	uint32_t c = p[0] & (0x3fU >> more);

	*len = 1;
	if (p[0] < 0x80U)
		return p[0];
	if (p[0] < 0xc2U || p[0] > 0xf4U || more >= n)
		return 0x80000000U | p[0];
	for (size_t i = 1; i <= more; i++) {
		if ((p[i] & 0xc0U) != 0x80U)
			return 0x80000000U | p[0];
		c = c << 6 | (p[i] & 0x3fU);
	}
	*len = more + 1;
	return c;
}

/* Where the set that begins after p (at its bracket) ends, its bracket included; 0: nowhere. */
static size_t set_len(const char *p, size_t n)
{
	size_t at = 1;

	if (at < n && (p[at] == '!' || p[at] == '^'))
		at++;
	if (at < n && p[at] == ']')
		at++;
	while (at < n && p[at] != ']')
		at++;
	return at < n ? at + 1 : 0;
}

/* Whether c is one of the set p, of n bytes with its brackets. */
static bool set_has(const char *p, size_t n, uint32_t c)
{
	bool negated = p[1] == '!' || p[1] == '^';
	size_t at = negated ? 2 : 1;
	bool found = false;

	while (at < n - 1) {
		size_t len;
		uint32_t low = character(p + at, n - 1 - at, &len);
		uint32_t high = low;

		at += len;
		if (at + 1 < n - 1 && p[at] == '-') {
			high = character(p + at + 1, n - 2 - at, &len);
			at += 1 + len;
		}
		found = found || (c >= low && c <= high);
	}
	return found != negated;
}

/* Whether the first character of s, of n > 0 bytes, is like the first thing of p; then how much
 * both take. */
static bool one_matches(
    const char *p, size_t p_len, const char *s, size_t n, size_t *p_used, size_t *used)
{
	uint32_t c = character(s, n, used);
	size_t set = *p == '[' ? set_len(p, p_len) : 0;

	*p_used = set;
	if (set > 0)
		return set_has(p, set, c);
	if (*p == '?') {
		*p_used = 1;
		return true;
	}
	return character(p, p_len, p_used) == c;
}

/* Only the last asterisk is ever tried again: what is before it has taken as little as it can. */
static bool part_matches(const struct match_part *part, const char *s, size_t n)
{
	const char *p = part->s;
	size_t p_len = part->len;
	size_t at = 0;
	size_t p_at = 0;
	size_t star = SIZE_MAX; /* in p, after it */
	size_t retry = 0;	/* in s */

	while (at < n) {
		size_t p_used = 0;
		size_t used = 0;

		if (p_at < p_len && p[p_at] == '*') {
			star = ++p_at;
			retry = at;
		} else if (p_at < p_len &&
			   one_matches(p + p_at, p_len - p_at, s + at, n - at, &p_used, &used)) {
			p_at += p_used;
			at += used;
		} else if (star != SIZE_MAX) {
			(void)character(s + retry, n - retry, &used);
			retry += used;
			at = retry;
			p_at = star;
		} else {
			return false;
		}
	}
	while (p_at < p_len && p[p_at] == '*')
		p_at++;
	return p_at == p_len;
}

/* ---- components ---- */

/* The component that begins at s. */
static size_t component_len(const char *s, size_t n)
{
	const char *slash = memchr(s, '/', n);

	return slash != NULL ? (size_t)(slash - s) : n;
}

/* As part_matches(), of components. A pattern begins with a "**" that is not written. */
bool match_path(const struct match *m, const char *path, size_t len)
{
	size_t at = 0;
	size_t retry = 0; /* in path */
	size_t part = 0;
	size_t star = 0; /* after it */

	while (at < len) {
		size_t n = component_len(path + at, len - at);

		if (part < m->count && m->parts[part].any) {
			star = ++part;
			retry = at;
		} else if (part < m->count && part_matches(&m->parts[part], path + at, n)) {
			part++;
			at += n + 1;
		} else {
			retry += component_len(path + retry, len - retry) + 1;
			at = retry;
			part = star;
		}
	}
	while (part < m->count && m->parts[part].any)
		part++;
	return part == m->count;
}

static bool part_is(const struct match_part *part, const char *s)
{
	return part->len == strlen(s) && memcmp(part->s, s, part->len) == 0;
}

int match_compile(struct match *m, const char *pattern, const char **why)
{
	size_t len = strlen(pattern);

	m->count = 0;
	*why = "it is too long";
	if (len > MATCH_PATTERN_MAX)
		return -EINVAL;
	*why = "it must be relative to the place where the search begins";
	if (*pattern == '/')
		return -EINVAL;
	for (size_t at = 0; at < len;) {
		struct match_part part = {
		    .s = pattern + at,
		    .len = component_len(pattern + at, len - at),
		};

		at += part.len + 1;
		if (part.len == 0 || part_is(&part, "."))
			continue;
		*why = "it must not contain \"..\"";
		if (part_is(&part, ".."))
			return -EINVAL;
		*why = "it has too many components";
		if (m->count == MATCH_PARTS_MAX)
			return -EINVAL;
		part.any = part_is(&part, "**");
		if (!part.any || m->count == 0 || !m->parts[m->count - 1].any)
			m->parts[m->count++] = part;
	}
	*why = "it is empty";
	return m->count > 0 ? 0 : -EINVAL;
}

int match_take(struct match *m, const char *option, const char *pattern)
{
	const char *what;
	struct text why;

	if (match_compile(m, pattern, &what) == 0)
		return 0;
	text_clear(&why);
	text_add(&why, "invalid ");
	text_add(&why, option);
	text_add(&why, ": ");
	text_add(&why, what);
	return emit_failure(AGENT_E_INVALID_PATTERN, &why);
}
