/*
 * http_chunk: the chunked transfer coding (RFC 9112, section 7.1), strictly. Internal to wire/.
 */
#ifndef SBXD_WIRE_HTTP_CHUNK_H
#define SBXD_WIRE_HTTP_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#define HTTP_CHUNK_LINE_MAX 512U      /* a chunk's size with its extensions, or one trailer line */
#define HTTP_CHUNK_TRAILERS_MAX 4096U /* all trailer lines of a body */

enum http_chunk_state {
	CHUNK_SIZE_FIRST,
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER_FIRST,
	CHUNK_TRAILER,
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
	CHUNK_DONE,
};

struct http_chunk {
	enum http_chunk_state state;
	uint32_t line;	   /* bytes of this line so far */
	uint32_t trailers; /* bytes of trailers so far */
	uint64_t left;	   /* of this chunk's data */
};

/* A decoder before its first chunk is all zero. */

/*
 * Reads on and stops after a piece of data or the end. 1: *body and *body_len are data, inside
 * `data`; 0: look at c->state: CHUNK_DONE when the body has ended, else all is used and more is
 * needed; -EBADMSG with *why, a constant text. *used is exact.
 */
int http_chunk_feed(struct http_chunk *c, const uint8_t *data, size_t n, size_t *used,
    const uint8_t **body, size_t *body_len, const char **why);

#endif
