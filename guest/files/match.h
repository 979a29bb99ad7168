/*
 * match: whether a path is like a pattern. sbx-files.
 *
 * Component by component, from the right end of the path: "a/b" is like any path that ends in it.
 * In a component, "*" is any number of characters, "?" one, "[...]" one of a set ("!" or "^" first:
 * one that is not; "a-z": a range; "]" first is itself; without its end a bracket is itself). None
 * of them is a slash. The component "**" is any number of components, none too. Characters are
 * UTF-8; a byte that is not is one character. There is no way to quote but a set of one.
 */
#ifndef SBXD_GUEST_FILES_MATCH_H
#define SBXD_GUEST_FILES_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MATCH_PATTERN_MAX 4095U
#define MATCH_PARTS_MAX 256U

struct match_part {
	const char *s; /* in the pattern; not NUL-terminated */
	size_t len;
	bool any; /* "**" */
};

struct match {
	size_t count;
	struct match_part parts[MATCH_PARTS_MAX];
};

/* Takes a pattern, which must outlive m. 0, or -EINVAL with *why: what is wrong with it. */
int match_compile(struct match *m, const char *pattern, const char **why);

/* The same for the option of that name. 0, or an exit status after saying what is wrong. */
int match_take(struct match *m, const char *option, const char *pattern);

/* Whether the path of len bytes, relative to where the search began, is like it. */
bool match_path(const struct match *m, const char *path, size_t len);

#endif
