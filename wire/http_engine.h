/*
 * http_engine: the parser library of the distribution (llhttp or http_parser), seen as one
 * function: a whole head in, where its parts are out. Internal to wire/.
 */
#ifndef SBXD_WIRE_HTTP_ENGINE_H
#define SBXD_WIRE_HTTP_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_FIELDS_MAX 100U /* header lines in one head */

/* A piece of the head; len 0 may have any offset. */
struct http_span {
	uint16_t off;
	uint16_t len;
};

struct http_field {
	struct http_span name;
	struct http_span value;
};

struct http_raw {
	uint8_t major;
	uint8_t minor;
	uint16_t status; /* responses */
	bool keep_alive;
	bool upgrade; /* Upgrade is there and Connection names it */
	struct http_span target;
	size_t count;
	struct http_field fields[HTTP_FIELDS_MAX];
};

/*
 * Takes apart a head of n bytes (n <= UINT16_MAX) that ends with its empty line. 0; -EBADMSG or
 * -EMSGSIZE (too many header lines) with *why, a constant text. Not checked here: control
 * characters, line ends, field values.
 */
int http_engine_parse(
    bool response, const char *head, size_t n, struct http_raw *raw, const char **why);

#endif
