/*
 * json: reading requests with jansson, and writing answers straight into a buf.
 */
#ifndef SBXD_WIRE_JSON_H
#define SBXD_WIRE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/utf8.h"
#include "wire/base64.h"

#define JSON_DEPTH_MAX 128 /* the most that is ever parsed; what clients may send is less */

/*
 * Finds nesting deeper than `max` levels before anything recurses into it; text that is no JSON
 * passes. 0, or -EINVAL with *err: where, by line and column.
 */
int json_check_depth(const uint8_t *data, size_t n, unsigned int max, struct err *err);

/*
 * Parses one JSON object (nothing else counts); n 0 is taken as {}. The caller json_decref()s it.
 * NULL with *err: what is wrong and at which line and column; also for duplicate keys, \u0000
 * anywhere, depth past JSON_DEPTH_MAX, or a top level that is no object.
 */
json_t *json_parse_object(const uint8_t *data, size_t n, struct err *err);

/* One known field of a request object. Fields that are absent or null leave *out as it was. */
enum json_field_type {
	JSON_FIELD_STRING, /* const char ** (inside the object); NUL inside is refused */
	JSON_FIELD_NUMBER, /* double *, finite */
	JSON_FIELD_INT,	   /* int64_t * */
	JSON_FIELD_BOOL,   /* bool * */
	JSON_FIELD_ARRAY,  /* json_t **, borrowed */
	JSON_FIELD_OBJECT, /* json_t **, borrowed */
	JSON_FIELD_OTHER,  /* of any type: looked at elsewhere; `out` is not used */
};

struct json_field {
	const char *name;
	enum json_field_type type;
	void *out;
	double min; /* numbers and ints: the range, checked when min < max */
	double max;
};

/*
 * Takes the fields out of `o`. One that is not among them, and not null, is -EINVAL with *err
 * naming it: what a client asks for is done or refused, and never passed over. So is one of another
 * type or out of range; *err says what was expected.
 */
int json_take(json_t *o, const struct json_field *fields, size_t count, struct err *err);

/* Writing. After the first failure (memory, or the buf's bound) everything is ignored and
 * json_out_error() tells. */
struct json_out {
	struct buf *b;
	int error;
	bool comma;
};

void json_out_init(struct json_out *j, struct buf *b);
int json_out_error(const struct json_out *j);

/* key NULL: an element of an array, or the top level. */
void json_object_begin(struct json_out *j, const char *key);
void json_object_end(struct json_out *j);
void json_array_begin(struct json_out *j, const char *key);
void json_array_end(struct json_out *j);

/* NULL value: null. Bytes that are not UTF-8 become U+FFFD each: a message may name any file. */
void json_put_string(struct json_out *j, const char *key, const char *value);
void json_put_bytes(
    struct json_out *j, const char *key, const void *utf8, size_t n); /* valid UTF-8; NUL allowed */
void json_put_base64(struct json_out *j, const char *key, const void *bytes, size_t n);
void json_put_int(struct json_out *j, const char *key, int64_t value);
void json_put_uint(struct json_out *j, const char *key, uint64_t value);
void json_put_double(struct json_out *j, const char *key, double value); /* three decimals */
void json_put_bool(struct json_out *j, const char *key, bool value);
void json_put_null(struct json_out *j, const char *key);

/* n bytes of JSON that were written before; of an array, elements with commas between them. */
void json_put_written(struct json_out *j, const char *key, const void *json, size_t n);

#endif
