/* http_chunk: the chunked transfer coding, strictly. Any process; holds no state of its own. */
#include "wire/http_chunk.h"

#include <errno.h>
#include <stdbool.h>

static int chunk_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static const char *chunk_take_size(struct http_chunk *c, uint8_t byte)
{
	int digit = chunk_digit(byte);

	if (digit >= 0) {
		if (c->left >> 59) /* and never 2^63 or more */
			return "a chunk's size is too large";
		c->left = c->left << 4 | (uint64_t)digit;
		c->state = CHUNK_SIZE;
		return NULL;
	}
	if (c->state == CHUNK_SIZE_FIRST || (byte != '\r' && byte != ';'))
		return "a chunk's size is not a hexadecimal number";
	c->state = byte == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
	return NULL;
}

/* Text of an extension or a trailer: it is not looked at, but may not break the line. */
static const char *chunk_take_text(
    struct http_chunk *c, uint8_t byte, enum http_chunk_state at_cr, enum http_chunk_state inside)
{
	if (byte == '\r') {
		c->state = at_cr;
		return NULL;
	}
	if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
		return "a control character in a chunk extension or trailer";
	c->state = inside;
	return NULL;
}

static const char *chunk_expect(
    struct http_chunk *c, uint8_t byte, uint8_t want, enum http_chunk_state next)
{
	if (byte != want)
		return want == '\r' ? "a chunk is longer than its size"
				    : "a carriage return without line feed in a chunked body";
	c->state = next;
	c->line = 0;
	return NULL;
}

static const char *chunk_take(struct http_chunk *c, uint8_t byte)
{
	if (++c->line > HTTP_CHUNK_LINE_MAX)
		return "a line of a chunked body is too long";
	switch (c->state) {
	case CHUNK_SIZE_FIRST:
	case CHUNK_SIZE:
		return chunk_take_size(c, byte);
	case CHUNK_EXTENSION:
		return chunk_take_text(c, byte, CHUNK_SIZE_LF, CHUNK_EXTENSION);
	case CHUNK_SIZE_LF:
		return chunk_expect(c, byte, '\n', c->left ? CHUNK_DATA : CHUNK_TRAILER_FIRST);
	case CHUNK_DATA_CR:
		return chunk_expect(c, byte, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return chunk_expect(c, byte, '\n', CHUNK_SIZE_FIRST);
	case CHUNK_TRAILER_FIRST:
	case CHUNK_TRAILER:
		if (++c->trailers > HTTP_CHUNK_TRAILERS_MAX)
			return "the trailers of a chunked body are too long";
		return chunk_take_text(c, byte,
		    c->state == CHUNK_TRAILER_FIRST ? CHUNK_LAST_LF : CHUNK_TRAILER_LF,
		    CHUNK_TRAILER);
	case CHUNK_TRAILER_LF:
		return chunk_expect(c, byte, '\n', CHUNK_TRAILER_FIRST);
	case CHUNK_LAST_LF:
		return chunk_expect(c, byte, '\n', CHUNK_DONE);
	case CHUNK_DATA: /* both are handled by the caller */
	case CHUNK_DONE:
		break;
	}
	return "a chunked body is in no known state";
}

int http_chunk_feed(struct http_chunk *c, const uint8_t *data, size_t n, size_t *used,
    const uint8_t **body, size_t *body_len, const char **why)
{
	size_t i = 0;
	size_t take;

	while (i < n && c->state != CHUNK_DATA && c->state != CHUNK_DONE) {
		const char *wrong = chunk_take(c, data[i++]);

		if (wrong) {
			*why = wrong;
			*used = i;
			return -EBADMSG;
		}
	}
	if (i == n || c->state == CHUNK_DONE) {
		*used = i;
		return 0;
	}
	take = n - i < c->left ? n - i : (size_t)c->left;
	*body = data + i;
	*body_len = take;
	*used = i + take;
	c->left -= take;
	if (c->left == 0)
		c->state = CHUNK_DATA_CR;
	return 1;
}
