/*
 * yaml_file: a file of plain YAML, read entry by entry. sbxd, at start and on SIGHUP; holds no
 * state.
 */
#include "supervisor/yaml_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

#define FILE_MAX (1U << 20)
#define SKIP_DEPTH 32
#define PLACE_MAX 80 /* bytes of the path that messages repeat */

int yaml_file_fail(struct yaml_file *f, size_t line, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap); /* a cut message is still a message */
	va_end(ap);
	return err_set(f->err, EINVAL, "%s:%zu: %s", f->place, line, what);
}

size_t yaml_file_line(const yaml_event_t *ev)
{
	return ev->start_mark.line + 1;
}

/* What libyaml refused. Its reader knows only the byte, its scanner and parser the line. */
static int fail_syntax(struct yaml_file *f)
{
	const yaml_parser_t *p = &f->parser;
	size_t line = 1;

	if (p->error == YAML_MEMORY_ERROR)
		return err_sys(f->err, ENOMEM, "%s", f->place);
	if (p->error != YAML_READER_ERROR)
		return yaml_file_fail(f, p->problem_mark.line + 1, "this is no YAML: %s%s%s",
		    p->problem, p->context ? " " : "", p->context ? p->context : "");
	for (size_t i = 0; i < p->problem_offset && i < f->text->len; i++)
		line += buf_head(f->text)[i] == '\n';
	return yaml_file_fail(f, line, "this is no UTF-8 text: %s", p->problem);
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
static int next(struct yaml_file *f, yaml_event_t *ev)
{
	size_t line;
	int rc = 0;

	if (!yaml_parser_parse(&f->parser, ev))
		return fail_syntax(f);
	line = yaml_file_line(ev);
	if (ev->type == YAML_ALIAS_EVENT || anchored(ev))
		rc = yaml_file_fail(f, line, "anchors and aliases are not allowed");
	else if (tag_of(ev))
		rc = yaml_file_fail(f, line, "tags are not allowed: %.40s", tag_of(ev));
	else if (ev->type == YAML_SCALAR_EVENT &&
		 strlen((const char *)ev->data.scalar.value) != ev->data.scalar.length)
		rc = yaml_file_fail(f, line, "a value holds a NUL");
	if (rc < 0)
		yaml_event_delete(ev);
	return rc;
}

const char *yaml_file_text(const yaml_event_t *ev)
{
	return (const char *)ev->data.scalar.value;
}

/* Nothing at all, or YAML's null. */
bool yaml_file_is_null(const yaml_event_t *ev)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (ev->type != YAML_SCALAR_EVENT || ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
		if (strcmp(yaml_file_text(ev), nulls[i]) == 0)
			return true;
	}
	return false;
}

/* Reads past the node that ev begins. */
int yaml_file_skip(struct yaml_file *f, const yaml_event_t *ev)
{
	int depth = ev->type != YAML_SCALAR_EVENT;
	yaml_event_t inner;
	int rc;

	while (depth > 0) {
		rc = next(f, &inner);
		if (rc < 0)
			return rc;
		if (inner.type == YAML_MAPPING_START_EVENT ||
		    inner.type == YAML_SEQUENCE_START_EVENT)
			depth++;
		else if (inner.type == YAML_MAPPING_END_EVENT ||
			 inner.type == YAML_SEQUENCE_END_EVENT)
			depth--;
		if (depth > SKIP_DEPTH)
			rc = yaml_file_fail(f, yaml_file_line(&inner), "nested too deeply");
		yaml_event_delete(&inner);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Calls fn for each entry of the mapping whose start was read. */
static int read_mapping(struct yaml_file *f, yaml_entry_fn *fn, const void *ctx)
{
	yaml_event_t key;
	yaml_event_t value;
	int rc = 0;

	while (rc == 0) {
		rc = next(f, &key);
		if (rc < 0)
			return rc;
		if (key.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&key);
			return 0;
		}
		if (key.type != YAML_SCALAR_EVENT)
			rc = yaml_file_fail(f, yaml_file_line(&key), "a key must be text");
		else
			rc = next(f, &value);
		if (rc == 0) {
			rc = fn(f, ctx, &key, &value);
			yaml_event_delete(&value);
		}
		yaml_event_delete(&key);
	}
	return rc;
}

int yaml_file_mapping(struct yaml_file *f, yaml_entry_fn *fn, const void *ctx, const char *name,
    const yaml_event_t *value)
{
	if (yaml_file_is_null(value))
		return 0;
	if (value->type != YAML_MAPPING_START_EVENT)
		return yaml_file_fail(f, yaml_file_line(value), "%s: must be a mapping", name);
	return read_mapping(f, fn, ctx);
}

/* Reads on to an event of this type; others of the frame around a document are passed over. */
static int expect(struct yaml_file *f, yaml_event_type_t type)
{
	yaml_event_t ev;
	int rc = next(f, &ev);

	if (rc < 0)
		return rc;
	if (ev.type != type)
		rc = type == YAML_STREAM_END_EVENT
			 ? yaml_file_fail(f, yaml_file_line(&ev), "only one document is allowed")
			 : yaml_file_fail(f, yaml_file_line(&ev), "malformed document");
	yaml_event_delete(&ev);
	return rc;
}

static int read_document(struct yaml_file *f, yaml_entry_fn *fn, const void *ctx)
{
	yaml_event_t ev;
	int rc = expect(f, YAML_STREAM_START_EVENT);

	if (rc == 0)
		rc = next(f, &ev);
	if (rc != 0)
		return rc;
	if (ev.type == YAML_STREAM_END_EVENT) { /* nothing but comments */
		yaml_event_delete(&ev);
		return 0;
	}
	yaml_event_delete(&ev);
	rc = next(f, &ev);
	if (rc < 0)
		return rc;
	rc = yaml_file_mapping(f, fn, ctx, "the document", &ev);
	yaml_event_delete(&ev);
	if (rc == 0)
		rc = expect(f, YAML_DOCUMENT_END_EVENT);
	if (rc == 0)
		rc = expect(f, YAML_STREAM_END_EVENT);
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

int yaml_file_read(
    struct yaml_file *f, const char *path, yaml_entry_fn *fn, const void *ctx, struct err *err)
{
	size_t len = strlen(path);
	struct buf text;
	int rc;

	f->place = len > PLACE_MAX ? path + len - PLACE_MAX : path;
	f->text = &text;
	f->err = err;
	buf_init(&text, FILE_MAX + 1);
	rc = read_file(path, &text, err);
	if (rc == 0 && !yaml_parser_initialize(&f->parser))
		rc = err_sys(err, ENOMEM, "%s", path);
	if (rc == 0) {
		yaml_parser_set_encoding(&f->parser, YAML_UTF8_ENCODING);
		yaml_parser_set_input_string(&f->parser, buf_head(&text), text.len);
		rc = read_document(f, fn, ctx);
		yaml_parser_delete(&f->parser);
	}
	buf_free(&text);
	f->text = NULL;
	return rc;
}
