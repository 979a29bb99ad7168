/*
 * yaml_file: a file of plain YAML, read entry by entry with libyaml's events.
 *
 * Only plain YAML is taken: one document, mappings and scalars, no anchors, aliases or tags, so
 * that what the file says is what it looks like and its meaning is bounded by its size.
 */
#ifndef SBXD_SUPERVISOR_YAML_FILE_H
#define SBXD_SUPERVISOR_YAML_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "lib/buf.h"
#include "lib/err.h"

/* One file while it is read; embedded in what its reader knows besides. */
struct yaml_file {
	yaml_parser_t parser;
	const char *place; /* the path, cut at the left when long */
	const struct buf *text;
	struct err *err;
};

/* An entry of a mapping: key is a scalar, the rest of value is read with the functions below. 0 or
 * -errno. */
typedef int yaml_entry_fn(
    struct yaml_file *f, const void *ctx, const yaml_event_t *key, const yaml_event_t *value);

/*
 * Reads the file at path, whose document must be a mapping, or nothing, and calls fn for each of
 * its entries. 0, -ENOENT when it is not there, or -errno with *err.
 */
int yaml_file_read(
    struct yaml_file *f, const char *path, yaml_entry_fn *fn, const void *ctx, struct err *err);

/*
 * Calls fn for each entry of the mapping that `value` begins; `name` is whose it is, for messages.
 * An empty value stands for an empty mapping: all its lines may be commented out.
 */
int yaml_file_mapping(struct yaml_file *f, yaml_entry_fn *fn, const void *ctx, const char *name,
    const yaml_event_t *value);

/* Reads past the node that ev begins. */
int yaml_file_skip(struct yaml_file *f, const yaml_event_t *ev);

/* Sets the error "PATH:LINE: ..." and returns -EINVAL. */
int yaml_file_fail(struct yaml_file *f, size_t line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

size_t yaml_file_line(const yaml_event_t *ev);

/* The text of a scalar. */
const char *yaml_file_text(const yaml_event_t *ev);

/* Nothing at all, or YAML's null. */
bool yaml_file_is_null(const yaml_event_t *ev);

#endif
