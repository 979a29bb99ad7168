/*
 * grep: lines in which a pattern is found. sbx-files; only reads.
 *
 *     grep path=P pattern=R [glob=G] [literal=1] [case=1] [max=N]
 *
 * A file is read as a whole: it is small, or it is passed over.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files/files.h"
#include "guest/files/ignore.h"
#include "guest/files/lines.h"
#include "guest/files/match.h"
#include "guest/files/regex.h"
#include "guest/files/walk.h"
#include "guest/path.h"
#include "lib/utf8.h"

#define GREP_FILE_MAX 1000000U
#define GREP_BINARY 8192U /* a NUL in so many bytes: no text */
#define GREP_FIRST 65536U /* is read before it is known whether it is text */

struct grep {
	struct regex *regex;
	bool filtered; /* by `glob` */
	struct match glob;
	uint64_t left; /* lines that may still be told */
	bool truncated;
	uint8_t *repaired; /* room for a file of the largest size; NULL: was not needed */
	bool gave_up;	   /* the pattern took too long, on that line */
	uint64_t line;
	int status; /* what it ends with then */
	uint8_t bytes[GREP_FILE_MAX + 1];
};

/* ---- one file ---- */

/* Reads on to the end, or to `size` bytes. How much there is then, or -1 with errno. */
static ssize_t read_up_to(int fd, uint8_t *bytes, size_t have, size_t size)
{
	while (have < size) {
		ssize_t n = read(fd, bytes + have, size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* The file's content; 0 when it is none that is looked at; -1 with errno. */
static ssize_t read_text(int fd, uint8_t bytes[GREP_FILE_MAX + 1])
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0)
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)GREP_FILE_MAX)
		return 0;
	n = read(fd, bytes, GREP_FIRST);
	if (n <= 0 || memchr(bytes, '\0', (size_t)n < GREP_BINARY ? (size_t)n : GREP_BINARY))
		return n < 0 ? -1 : 0;
	if (n == st.st_size) /* or it has grown since: that is for the next search */
		return n;
	n = read_up_to(fd, bytes, (size_t)n, GREP_FILE_MAX + 1);
	return n > (ssize_t)GREP_FILE_MAX ? 0 : n;
}

static int open_text(const struct walk_item *item)
{
	return openat(
	    item->dir, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* ---- its lines ---- */

static void tell_line(const struct walk_item *item, uint64_t number, const uint8_t *line, size_t n)
{
	uint8_t text[LINES_PRINTED_MAX];
	struct entry_line e = {
	    .number = number,
	    .path_len = (uint32_t)item->path_len,
	    .text_len = (uint32_t)lines_cut(line, n, text),
	};

	emit_record(ENTRY_LINE, &e, sizeof(e), item->path, item->path_len, text, e.text_len);
}
_Static_assert(LINES_PRINTED_MAX <= ENTRY_LINE_MAX, "a line fits its record");

/* False: nothing more is wanted. */
static bool grep_line(
    struct grep *g, const struct walk_item *item, uint64_t number, const uint8_t *line, size_t n)
{
	int found;

	if (n > 0 && line[n - 1] == '\r')
		n--;
	if (lines_is_longer(line, n, LINES_LONGEST))
		return true;
	found = regex_find(g->regex, line, n);
	if (found == 0)
		return true;
	g->gave_up = found < 0;
	g->line = number;
	g->truncated = found > 0 && g->left == 0;
	if (g->gave_up || g->truncated)
		return false;
	g->left--;
	tell_line(item, number, line, n);
	return true;
}

static bool grep_lines(struct grep *g, const struct walk_item *item, const uint8_t *text, size_t n)
{
	uint64_t number = 1;

	for (size_t at = 0; at < n; number++) {
		const uint8_t *end = memchr(text + at, '\n', n - at);
		size_t len = end != NULL ? (size_t)(end - text) - at : n - at;

		if (!grep_line(g, item, number, text + at, len))
			return false;
		at += len + 1;
	}
	return true;
}

/* The text as UTF-8; NULL: no memory. */
static const uint8_t *as_utf8(struct grep *g, size_t *n)
{
	if (utf8_valid_prefix(g->bytes, *n, NULL) == *n)
		return g->bytes;
	if (g->repaired == NULL)
		g->repaired = malloc(LINES_REPAIRED_MAX(GREP_FILE_MAX));
	if (g->repaired != NULL)
		*n = lines_repair(g->bytes, *n, g->repaired);
	return g->repaired;
}

static enum walk_verdict grep_file(struct grep *g, const struct walk_item *item)
{
	int fd = open_text(item);
	ssize_t got = fd < 0 ? -1 : read_text(fd, g->bytes);
	int err = got < 0 ? errno : 0;
	size_t n = got > 0 ? (size_t)got : 0;
	const uint8_t *text = NULL;

	if (fd >= 0)
		(void)close(fd); /* was only read */
	if (n > 0) {
		text = as_utf8(g, &n);
		err = text == NULL ? ENOMEM : 0;
	}
	if (err != 0 && !path_is_gone(err))
		emit_problem(item->path, item->path_len, err);
	if (text == NULL || grep_lines(g, item, text, n))
		return WALK_ON;
	return WALK_STOP;
}

/* ---- the command ---- */

static enum walk_verdict grep_entry(void *ctx, const struct walk_item *item)
{
	struct grep *g = ctx;
	enum walk_verdict verdict;

	if (ignore_name(item->name, item->name_len))
		return WALK_SKIP;
	if (item->type != DT_REG ||
	    (g->filtered && !match_path(&g->glob, item->path, item->path_len)))
		return WALK_ON;
	verdict = grep_file(g, item);
	if (g->gave_up) {
		struct text why;

		text_clear(&why);
		text_add(&why, "the pattern takes too many steps on line ");
		text_add_uint(&why, g->line);
		text_add(&why, " of ");
		text_add_quoted(&why, item->path, 256);
		g->status = emit_failure(AGENT_E_INVALID_PATTERN, &why);
	}
	return verdict;
}

static void grep_problem(void *ctx, const char *path, size_t len, int err)
{
	(void)ctx;
	emit_problem(path, len, err);
}

static int grep_compile(
    struct grep *g, const char *pattern, const char *glob, bool literal, bool case_sensitive)
{
	struct text why;

	text_clear(&why);
	g->regex = regex_compile(
	    pattern, (literal ? REGEX_LITERAL : 0U) | (case_sensitive ? 0U : REGEX_ANY_CASE), &why);
	if (g->regex == NULL)
		return emit_failure(AGENT_E_INVALID_PATTERN, &why);
	g->filtered = glob != NULL;
	return glob != NULL ? match_take(&g->glob, "glob", glob) : 0;
}

int grep_run(char *const *args)
{
	static const struct walk_ops ops = {
	    .entry = grep_entry,
	    .problem = grep_problem,
	    .step = emit_step,
	    .sorted = true,
	    .deepest = ENTRY_PATH_MAX,
	};
	static struct grep g; /* large, and for the most part never touched */
	const char *path = NULL;
	const char *pattern = "";
	const char *glob = NULL;
	bool literal = false;
	bool case_sensitive = false;
	const struct option_field fields[] = {
	    {"path", OPTION_TEXT, &path},
	    {"pattern", OPTION_TEXT, &pattern},
	    {"glob", OPTION_TEXT, &glob},
	    {"literal", OPTION_FLAG, &literal},
	    {"case", OPTION_FLAG, &case_sensitive},
	    {"max", OPTION_NUMBER, &g.left},
	};
	int status;
	int root;
	int err;

	g.left = UINT64_MAX;
	status = options_take(args, fields, sizeof(fields) / sizeof(fields[0]));
	if (status == 0)
		status = grep_compile(&g, pattern, glob, literal, case_sensitive);
	root = status != 0 ? -1 : root_open(path, &status);
	if (root < 0)
		return status;
	err = walk_tree(root, &ops, &g);
	if (err != 0)
		return emit_errno("cannot read", path, err);
	if (g.status != 0)
		return g.status;
	return emit_done(g.truncated ? ENTRY_DONE_TRUNCATED : 0, emit_problems());
}
