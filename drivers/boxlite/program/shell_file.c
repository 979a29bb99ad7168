/*
 * shell_file: what the worker asks of files, as lines for the box's sh. sbx-boxlite; the loop.
 *
 * Names come as arguments and are never part of a line. How a line ended says what went wrong: see
 * `failures`.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/shell.h"

#define STAT "stat -c '%s %Y %f %u %g'"
#define ARG_LEN 24 /* of a number */

static const struct {
	int status;
	enum agent_code code;
	const char *text;
} failures[] = {
    {10, AGENT_E_NOT_FOUND, "no such file or directory"},
    {11, AGENT_E_PERMISSION, "permission denied"},
    {12, AGENT_E_IS_DIRECTORY, "is a directory"},
    {13, AGENT_E_NOT_A_DIRECTORY, "not a directory"},
    {14, AGENT_E_EXISTS, "exists already"},
    {15, AGENT_E_NOT_EMPTY, "directory not empty"},
    {16, AGENT_E_NO_SPACE, "cannot be written"},
    {18, AGENT_E_SHORT, "fewer bytes came than were announced"},
};

void shell_file_failed(struct shell_chan *c)
{
	char why[SHELL_TEXT_MAX];
	size_t n = c->output[AGENT_STDERR].len;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].status == c->status) {
			shell_chan_fail(c, failures[i].code, failures[i].text);
			return;
		}
	}
	if (n >= sizeof(why))
		n = sizeof(why) - 1;
	if (n)
		memcpy(why, buf_head(&c->output[AGENT_STDERR]), n);
	why[n] = '\0';
	why[strcspn(why, "\n")] = '\0';
	shell_chan_fail(c, AGENT_E_IO, n ? why : "the box's programs failed");
}

/* ---- what they say ---- */

/* "SIZE MTIME MODE UID GID", mode in hex. */
static int parse_stat(const char *line, struct agent_stat *out)
{
	struct agent_stat st = {0};
	uint64_t seconds;

	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNx32 " %" SCNu32 " %" SCNu32, &st.size,
		&seconds, &st.mode, &st.uid, &st.gid) != 5)
		return -EBADMSG;
	st.mtime_ns = seconds * 1000000000ULL;
	*out = st;
	return 0;
}

static int keep_text(struct shell_chan *c, const char *text, size_t n)
{
	return buf_append(&c->text, text, n);
}

static int no_more(struct shell_chan *c)
{
	(void)c;
	return 0;
}

/* First a line of stat's, then the file as base64. */
static int read_output(struct shell_chan *c, const char *text, size_t n)
{
	const char *end = c->told ? NULL : memchr(text, '\n', n);
	size_t before = c->output[AGENT_STDOUT].len;
	struct agent_stat st;
	int rc;

	if (!c->told && !end)
		return keep_text(c, text, n);
	if (!c->told) {
		rc = keep_text(c, text, (size_t)(end - text));
		if (rc == 0)
			rc = buf_terminate(&c->text);
		if (rc == 0)
			rc = parse_stat((const char *)buf_head(&c->text), &st);
		if (rc < 0)
			return rc;
		shell_send(c->s, AGENT_STARTED, 0, c->id, &st, sizeof(st));
		c->told = true;
		n -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	rc = text64_decode(&c->decoder, text, n, &c->output[AGENT_STDOUT]);
	c->bytes += c->output[AGENT_STDOUT].len - before;
	return rc;
}

/* A line of stat's; of a link another with what it says. */
static int stat_done(struct shell_chan *c)
{
	struct {
		struct agent_stat st;
		char link[SHELL_TEXT_MAX];
	} out;
	const char *text;
	const char *end;
	size_t len;

	if (buf_terminate(&c->text) < 0 ||
	    parse_stat((const char *)buf_head(&c->text), &out.st) < 0)
		return -EBADMSG;
	text = (const char *)buf_head(&c->text);
	end = strchr(text, '\n');
	len = end ? strlen(end + 1) : 0;
	if (len && end[len] == '\n')
		len--;
	out.st.link_len = (uint32_t)len;
	if (len)
		memcpy(out.link, end + 1, len);
	shell_send(c->s, AGENT_STARTED, 0, c->id, &out, sizeof(out.st) + len);
	return 0;
}

static int count_done(struct shell_chan *c)
{
	if (buf_terminate(&c->text) < 0)
		return -EBADMSG;
	c->bytes = strtoull((const char *)buf_head(&c->text), NULL, 10);
	return 0;
}

/* ---- the lines ---- */

/* $1 path, $2 `lines` or `bytes`, $3 first, $4 last or how many, or `end` */
static const struct shell_script script_read = {
    .text = "[ -e \"$1\" ] || exit 10; [ -d \"$1\" ] && exit 12; [ -r \"$1\" ] || exit 11; " STAT
	    " -L \"$1\" || exit 11; if [ $2 = lines ]; then "
	    "if [ $4 = end ]; then tail -n +$3 \"$1\"; else sed -n \"$3,$4p;$4q\" \"$1\"; fi; "
	    "elif [ $4 = end ]; then tail -c +$3 \"$1\"; else tail -c +$3 \"$1\" | head -c $4; fi "
	    "| base64",
    .output = read_output,
    .done = no_more,
};

/* $1 path, $2 bytes or `any`, $3 mode, $4 `append` or `new`, $5 `set` or `keep` the mode */
static const struct shell_script script_write = {
    .text = "d=$(dirname \"$1\"); [ -d \"$1\" ] && exit 12; [ -e \"$d\" ] || exit 10; "
	    "[ -d \"$d\" ] || exit 13; t=\"$d/.sbx-$$.new\"; trap 'rm -f \"$t\"' EXIT; "
	    ": >\"$t\" || exit 11; cat >\"$t\" || exit 16; "
	    "[ $2 = any ] || [ $(wc -c <\"$t\") -eq $2 ] || exit 18; "
	    "m=$3; if [ -e \"$1\" ] && [ $5 = keep ]; then m=$(stat -L -c %a \"$1\"); fi; "
	    "if [ $4 = append ]; then cat \"$t\" >>\"$1\" || exit 16; chmod $m \"$1\"; "
	    "else chmod $m \"$t\" && sync && mv -f \"$t\" \"$1\" || exit 11; fi",
    .input = true,
    .output = keep_text,
    .done = no_more,
};

/* $1 path, $2 `follow` or `itself` */
static const struct shell_script script_stat = {
    .text = "[ -e \"$1\" ] || [ $2 = itself -a -L \"$1\" ] || exit 10; "
	    "if [ $2 = follow ]; then " STAT " -L \"$1\" || exit 11; else " STAT
	    " \"$1\" || exit 11; [ -L \"$1\" ] && readlink \"$1\"; fi; exit 0",
    .output = keep_text,
    .done = stat_done,
};

/* $1 path, $2 mode or `any`, $3 `parents` or `one` */
static const struct shell_script script_mkdir = {
    .text = "if [ -d \"$1\" ]; then [ $3 = parents ] || exit 14; echo 0; exit 0; fi; "
	    "[ -e \"$1\" ] && exit 14; n=0; q=$1; "
	    "while [ ! -e \"$q\" ]; do n=$((n+1)); q=$(dirname \"$q\"); done; "
	    "[ -d \"$q\" ] || exit 13; [ $3 = parents ] || [ $n -eq 1 ] || exit 10; "
	    "mkdir -p \"$1\" || exit 11; [ $2 = any ] || chmod $2 \"$1\"; echo $n",
    .output = keep_text,
    .done = count_done,
};

/* $1 path */
static const struct shell_script script_remove = {
    .text = "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 10; "
	    "if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then [ -z \"$(ls -A \"$1\")\" ] || exit 15; "
	    "rmdir \"$1\" || exit 11; else rm -f \"$1\" || exit 11; fi; echo 1",
    .output = keep_text,
    .done = count_done,
};

/* $1 from, $2 to, $3 `over` or `new` */
static const struct shell_script script_rename = {
    .text = "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 10; [ -d \"$(dirname \"$2\")\" ] || exit 10; "
	    "if [ -e \"$2\" ]; then [ $3 = over ] || exit 14; [ -d \"$2\" ] && exit 12; fi; "
	    "mv -f \"$1\" \"$2\" || exit 11; echo 0",
    .output = keep_text,
    .done = count_done,
};

static const struct shell_script *const path_scripts[AGENT_PATH_OPS] = {
    [AGENT_PATH_STAT] = &script_stat,
    [AGENT_PATH_MKDIR] = &script_mkdir,
    [AGENT_PATH_REMOVE] = &script_remove,
    [AGENT_PATH_RENAME] = &script_rename,
};

/* ---- requests ---- */

/* Room for the paths and the numbers. */
static enum agent_code file_room(struct shell_chan *c, size_t paths)
{
	c->paths = calloc(1, paths + SHELL_ARGS * (ARG_LEN + 1));
	return c->paths ? AGENT_OK : AGENT_E_RESOURCES;
}

/* A path: absolute, without a NUL. `at` is where it goes, and behind it the next. */
static const char *file_path(
    struct agent_cursor *cursor, size_t len, char **at, char **arg, enum agent_code *code)
{
	if (agent_get_bytes(cursor, *at, len) < 0 || len == 0 || (*at)[0] != '/' ||
	    memchr(*at, '\0', len)) {
		*code = AGENT_E_INVALID_PATH;
		return NULL;
	}
	*arg = *at;
	*at += len + 1;
	return *arg;
}

static char *file_number(char **at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static char *file_number(char **at, const char *fmt, ...)
{
	char *arg = *at;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(arg, ARG_LEN, fmt, ap);
	va_end(ap);
	*at += strlen(arg) + 1;
	return arg;
}

static enum agent_code file_read(struct shell_chan *c, struct agent_cursor *cursor)
{
	struct agent_read r;
	enum agent_code code = AGENT_OK;
	bool lines;
	char *at;

	if (agent_get_bytes(cursor, &r, sizeof(r)) < 0 || r.path_len != cursor->left)
		return AGENT_E_INVALID;
	if (file_room(c, r.path_len) != AGENT_OK)
		return AGENT_E_RESOURCES;
	at = c->paths;
	if (!file_path(cursor, r.path_len, &at, &c->args[0], &code))
		return code;
	lines = (r.flags & AGENT_READ_LINES) != 0;
	c->script = &script_read;
	c->args[1] = file_number(&at, "%s", lines ? "lines" : "bytes");
	c->args[2] = file_number(&at, "%" PRIu64, lines ? r.offset : r.offset + 1);
	c->args[3] =
	    r.limit == UINT64_MAX ? file_number(&at, "end") : file_number(&at, "%" PRIu64, r.limit);
	return AGENT_OK;
}

static enum agent_code file_write(struct shell_chan *c, struct agent_cursor *cursor)
{
	struct agent_write w;
	enum agent_code code = AGENT_OK;
	char *at;

	if (agent_get_bytes(cursor, &w, sizeof(w)) < 0 || w.path_len != cursor->left)
		return AGENT_E_INVALID;
	if (file_room(c, w.path_len) != AGENT_OK)
		return AGENT_E_RESOURCES;
	at = c->paths;
	if (!file_path(cursor, w.path_len, &at, &c->args[0], &code))
		return code;
	c->script = &script_write;
	c->args[1] =
	    w.size == UINT64_MAX ? file_number(&at, "any") : file_number(&at, "%" PRIu64, w.size);
	c->args[2] = file_number(&at, "%o", w.mode & 07777U);
	c->args[3] = file_number(&at, "%s", w.flags & AGENT_WRITE_APPEND ? "append" : "new");
	c->args[4] = file_number(&at, "%s", w.flags & AGENT_WRITE_MODE ? "set" : "keep");
	return AGENT_OK;
}

static void path_words(struct shell_chan *c, const struct agent_path *p, char *at)
{
	if (p->op == AGENT_PATH_STAT)
		c->args[1] =
		    file_number(&at, "%s", p->flags & AGENT_PATH_FOLLOW ? "follow" : "itself");
	if (p->op == AGENT_PATH_MKDIR) {
		c->args[1] = p->flags & AGENT_PATH_MODE ? file_number(&at, "%o", p->mode & 07777U)
							: file_number(&at, "any");
		c->args[2] =
		    file_number(&at, "%s", p->flags & AGENT_PATH_PARENTS ? "parents" : "one");
	}
	if (p->op == AGENT_PATH_RENAME)
		c->args[2] =
		    file_number(&at, "%s", p->flags & AGENT_PATH_OVERWRITE ? "over" : "new");
}

static enum agent_code file_names(struct shell_chan *c, struct agent_cursor *cursor)
{
	struct agent_path p;
	enum agent_code code = AGENT_OK;
	char *at;

	if (agent_get_bytes(cursor, &p, sizeof(p)) < 0 || p.op <= AGENT_PATH_NONE ||
	    p.op >= AGENT_PATH_OPS || (uint64_t)p.path_len + p.other_len != cursor->left ||
	    (p.other_len != 0) != (p.op == AGENT_PATH_RENAME))
		return AGENT_E_INVALID;
	if (file_room(c, cursor->left + 2) != AGENT_OK)
		return AGENT_E_RESOURCES;
	at = c->paths;
	if (!file_path(cursor, p.path_len, &at, &c->args[0], &code))
		return code;
	if (p.other_len && !file_path(cursor, p.other_len, &at, &c->args[1], &code))
		return code;
	c->script = path_scripts[p.op];
	path_words(c, &p, at);
	return AGENT_OK;
}

enum agent_code shell_file_open(struct shell_chan *c, const uint8_t *request, size_t n)
{
	struct agent_cursor cursor = {.p = request, .left = n};

	if (c->type == AGENT_READ)
		return file_read(c, &cursor);
	if (c->type == AGENT_WRITE)
		return file_write(c, &cursor);
	return file_names(c, &cursor);
}
