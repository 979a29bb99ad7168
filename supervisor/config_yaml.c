/*
 * config_yaml: reads the configuration file with libyaml's events. sbxd, at start and on SIGHUP.
 *
 * Only plain YAML is taken: one document, mappings and scalars, no anchors, aliases or tags, so
 * that what the file says is what it looks like and its meaning is bounded by its size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "supervisor/config_table.h"

#define FILE_MAX (1U << 20)
#define SKIP_DEPTH 32
#define PLACE_MAX 80 /* bytes of the path that messages repeat */

struct reader {
	yaml_parser_t parser;
	const char *place; /* the path, cut at the left when long */
	const struct buf *text;
	char *const *env;
	struct config *c;
	struct config_origins *origins;
	size_t lines[CONFIG_KEYS]; /* 0: not given in this file */
	size_t sandbox_line;
	struct err *err;
};

static int fail(struct reader *r, size_t line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct reader *r, size_t line, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap); /* a cut message is still a message */
	va_end(ap);
	return err_set(r->err, EINVAL, "%s:%zu: %s", r->place, line, what);
}

static size_t line_of(const yaml_event_t *ev)
{
	return ev->start_mark.line + 1;
}

/* What libyaml refused. Its reader knows only the byte, its scanner and parser the line. */
static int fail_syntax(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	size_t line = 1;

	if (p->error == YAML_MEMORY_ERROR)
		return err_sys(r->err, ENOMEM, "%s", r->place);
	if (p->error != YAML_READER_ERROR)
		return fail(r, p->problem_mark.line + 1, "this is no YAML: %s%s%s", p->problem,
		    p->context ? " " : "", p->context ? p->context : "");
	for (size_t i = 0; i < p->problem_offset && i < r->text->len; i++)
		line += buf_head(r->text)[i] == '\n';
	return fail(r, line, "this is no UTF-8 text: %s", p->problem);
}

static const char *tag_of(const yaml_event_t *ev)
{
	const yaml_char_t *tag = ev->type == YAML_SCALAR_EVENT		? ev->data.scalar.tag
				 : ev->type == YAML_MAPPING_START_EVENT ? ev->data.mapping_start.tag
				 : ev->type == YAML_SEQUENCE_START_EVENT
				     ? ev->data.sequence_start.tag
				     : NULL;
	return (const char *)tag;
}

static bool anchored(const yaml_event_t *ev)
{
	return (ev->type == YAML_SCALAR_EVENT && ev->data.scalar.anchor) ||
	       (ev->type == YAML_MAPPING_START_EVENT && ev->data.mapping_start.anchor) ||
	       (ev->type == YAML_SEQUENCE_START_EVENT && ev->data.sequence_start.anchor);
}

/* The next event, which the caller yaml_event_delete()s. 0 or -errno. */
static int next(struct reader *r, yaml_event_t *ev)
{
	size_t line;
	int rc = 0;

	if (!yaml_parser_parse(&r->parser, ev))
		return fail_syntax(r);
	line = line_of(ev);
	if (ev->type == YAML_ALIAS_EVENT || anchored(ev))
		rc = fail(r, line, "anchors and aliases are not allowed");
	else if (tag_of(ev))
		rc = fail(r, line, "tags are not allowed: %.40s", tag_of(ev));
	else if (ev->type == YAML_SCALAR_EVENT &&
		 strlen((const char *)ev->data.scalar.value) != ev->data.scalar.length)
		rc = fail(r, line, "a value holds a NUL");
	if (rc < 0)
		yaml_event_delete(ev);
	return rc;
}

static const char *scalar_text(const yaml_event_t *ev)
{
	return (const char *)ev->data.scalar.value;
}

/* Nothing at all, or YAML's null. */
static bool is_null(const yaml_event_t *ev)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (ev->type != YAML_SCALAR_EVENT || ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
		if (strcmp(scalar_text(ev), nulls[i]) == 0)
			return true;
	}
	return false;
}

/* Reads past the node that ev begins. */
static int skip_node(struct reader *r, const yaml_event_t *ev)
{
	int depth = ev->type != YAML_SCALAR_EVENT;
	yaml_event_t inner;
	int rc;

	while (depth > 0) {
		rc = next(r, &inner);
		if (rc < 0)
			return rc;
		if (inner.type == YAML_MAPPING_START_EVENT ||
		    inner.type == YAML_SEQUENCE_START_EVENT)
			depth++;
		else if (inner.type == YAML_MAPPING_END_EVENT ||
			 inner.type == YAML_SEQUENCE_END_EVENT)
			depth--;
		if (depth > SKIP_DEPTH)
			rc = fail(r, line_of(&inner), "nested too deeply");
		yaml_event_delete(&inner);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int set_scalar(struct reader *r, const struct config_key *key, const yaml_event_t *ev)
{
	struct err inner;
	char allowed[120];
	char *text = NULL;
	int rc;

	config_value_allowed(key, allowed, sizeof(allowed));
	if (ev->type != YAML_SCALAR_EVENT)
		return fail(r, line_of(ev), "%s: a list or mapping is not allowed; give %s",
		    key->name, allowed);
	if (is_null(ev))
		return fail(r, line_of(ev), "%s: has no value; give %s", key->name, allowed);
	if (config_env_expand(scalar_text(ev), r->env, &text, &inner) < 0)
		return fail(r, line_of(ev), "%s: %s", key->name, inner.text);
	rc = config_value_parse(key, text, r->c, &inner);
	free(text);
	return rc < 0 ? fail(r, line_of(ev), "%s", inner.text) : 0;
}

static int set_variable(
    struct reader *r, const void *ctx, const yaml_event_t *key, const yaml_event_t *ev)
{
	const char *name = scalar_text(key);
	struct err inner;
	char *text = NULL;
	int rc;

	(void)ctx;
	if (ev->type != YAML_SCALAR_EVENT || is_null(ev))
		return fail(
		    r, line_of(ev), "environment: %.40s: give text (\"\" for empty text)", name);
	if (config_env_expand(scalar_text(ev), r->env, &text, &inner) < 0)
		return fail(r, line_of(ev), "environment: %.40s: %s", name, inner.text);
	rc = config_environment_add(&r->c->environment, name, text, &inner);
	free(text);
	return rc < 0 ? fail(r, line_of(key), "environment: %s", inner.text) : 0;
}

typedef int entry_fn(
    struct reader *r, const void *ctx, const yaml_event_t *key, const yaml_event_t *value);

/* Calls fn for each entry of the mapping whose start was read. */
static int read_mapping(struct reader *r, entry_fn *fn, const void *ctx)
{
	yaml_event_t key;
	yaml_event_t value;
	int rc = 0;

	while (rc == 0) {
		rc = next(r, &key);
		if (rc < 0)
			return rc;
		if (key.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&key);
			return 0;
		}
		if (key.type != YAML_SCALAR_EVENT)
			rc = fail(r, line_of(&key), "a key must be text");
		else
			rc = next(r, &value);
		if (rc == 0) {
			rc = fn(r, ctx, &key, &value);
			yaml_event_delete(&value);
		}
		yaml_event_delete(&key);
	}
	return rc;
}

/* An empty value stands for an empty mapping: all its lines may be commented out. */
static int read_mapping_at(
    struct reader *r, entry_fn *fn, const void *ctx, const char *name, const yaml_event_t *value)
{
	if (is_null(value))
		return 0;
	if (value->type != YAML_MAPPING_START_EVENT)
		return fail(r, line_of(value), "%s: must be a mapping", name);
	return read_mapping(r, fn, ctx);
}

static int set_key(struct reader *r, int i, const yaml_event_t *key, const yaml_event_t *value)
{
	const struct config_key *row = &config_keys[i];

	if (r->lines[i])
		return fail(r, line_of(key), "%s: is given twice, first in line %zu", row->name,
		    r->lines[i]);
	r->lines[i] = line_of(key);
	(void)snprintf(
	    r->origins->place[i], sizeof(r->origins->place[i]), "%s:%zu", r->place, line_of(key));
	if (row->type == CONFIG_ENVIRONMENT)
		return read_mapping_at(r, set_variable, NULL, row->name, value);
	return set_scalar(r, row, value);
}

static int fail_unknown(struct reader *r, const char *section, const yaml_event_t *key)
{
	const char *name = scalar_text(key);
	const char *guess = config_key_guess(section, name);
	const char *dot = *section ? "." : "";

	if (guess)
		return fail(r, line_of(key), "unknown key '%s%s%.40s'; did you mean '%s%s%s'?",
		    section, dot, name, section, dot, guess);
	return fail(r, line_of(key),
	    "unknown key '%s%s%.40s'; sbxd --check-config without a file prints all keys", section,
	    dot, name);
}

static int section_entry(
    struct reader *r, const void *ctx, const yaml_event_t *key, const yaml_event_t *value)
{
	const char *section = ctx;
	int i = config_key_find(section, scalar_text(key));

	return i < 0 ? fail_unknown(r, section, key) : set_key(r, i, key, value);
}

static int sandbox_entry(
    struct reader *r, const void *ctx, const yaml_event_t *key, const yaml_event_t *value)
{
	const char *name = scalar_text(key);
	int i = config_key_find("", name);

	if (i >= 0)
		return set_key(r, i, key, value);
	if (config_section_known(name))
		return read_mapping_at(r, section_entry, name, name, value);
	if (ctx && config_key_ignored(name))
		return skip_node(r, value);
	return fail_unknown(r, "", key);
}

static int top_entry(
    struct reader *r, const void *ctx, const yaml_event_t *key, const yaml_event_t *value)
{
	if (strcmp(scalar_text(key), "sandbox") != 0)
		return sandbox_entry(r, ctx, key, value);
	if (r->sandbox_line)
		return fail(
		    r, line_of(key), "sandbox: is given twice, first in line %zu", r->sandbox_line);
	r->sandbox_line = line_of(key);
	return read_mapping_at(r, sandbox_entry, "sandbox", "sandbox", value);
}

/* Reads on to an event of this type; others of the frame around a document are passed over. */
static int expect(struct reader *r, yaml_event_type_t type)
{
	yaml_event_t ev;
	int rc = next(r, &ev);

	if (rc < 0)
		return rc;
	if (ev.type != type)
		rc = type == YAML_STREAM_END_EVENT
			 ? fail(r, line_of(&ev), "only one document is allowed")
			 : fail(r, line_of(&ev), "malformed document");
	yaml_event_delete(&ev);
	return rc;
}

static int read_document(struct reader *r)
{
	yaml_event_t ev;
	int rc = expect(r, YAML_STREAM_START_EVENT);

	if (rc == 0)
		rc = next(r, &ev);
	if (rc != 0)
		return rc;
	if (ev.type == YAML_STREAM_END_EVENT) { /* nothing but comments */
		yaml_event_delete(&ev);
		return 0;
	}
	yaml_event_delete(&ev);
	rc = next(r, &ev);
	if (rc < 0)
		return rc;
	rc = read_mapping_at(r, top_entry, NULL, "the document", &ev);
	yaml_event_delete(&ev);
	if (rc == 0)
		rc = expect(r, YAML_DOCUMENT_END_EVENT);
	if (rc == 0)
		rc = expect(r, YAML_STREAM_END_EVENT);
	return rc;
}

/* The whole file, which must be a regular one: a pipe could stop sbxd when it reloads. */
static int read_file(const char *path, struct buf *out, struct err *err)
{
	FD_SCOPED int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return err_sys(err, errno, "%s: cannot open the configuration", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s: the configuration must be a regular file", path);
	do {
		n = buf_read_fd(out, fd, 65536);
	} while (n > 0);
	if (n == -ENOBUFS || out->len > FILE_MAX)
		return err_set(err, EFBIG, "%s: larger than %u bytes", path, FILE_MAX);
	return n < 0 ? err_sys(err, (int)-n, "%s: cannot read", path) : 0;
}

int config_yaml_read(const char *path, char *const *env, struct config *c,
    struct config_origins *origins, struct err *err)
{
	size_t len = strlen(path);
	struct buf text;
	struct reader r = {.place = len > PLACE_MAX ? path + len - PLACE_MAX : path,
	    .text = &text,
	    .env = env,
	    .c = c,
	    .origins = origins,
	    .err = err};
	int rc;

	buf_init(&text, FILE_MAX + 1);
	rc = read_file(path, &text, err);
	if (rc == 0 && !yaml_parser_initialize(&r.parser))
		rc = err_sys(err, ENOMEM, "%s", path);
	if (rc == 0) {
		yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
		yaml_parser_set_input_string(&r.parser, buf_head(&text), text.len);
		rc = read_document(&r);
		yaml_parser_delete(&r.parser);
	}
	buf_free(&text);
	return rc;
}
