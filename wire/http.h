/*
 * http: HTTP/1.1 messages, read incrementally and written into a buf. llhttp or http_parser behind
 * http_engine.c.
 *
 * Used by sbxd (request heads, small bodies), by workers (handed-over connections) and by sbxctl
 * (responses).
 */
#ifndef SBXD_WIRE_HTTP_H
#define SBXD_WIRE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"

#define HTTP_HEAD_MAX 16384U   /* request or status line and headers, where nothing else is said */
#define HTTP_HEAD_LIMIT 65535U /* the most that a reader can be told to take */
#define HTTP_ID_MAX 64U	       /* X-Request-Id and traceparent that are taken over, NUL included */

enum http_method {
	HTTP_OTHER = 0, /* well-formed, but none that is served: 405 */
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_METHODS,
};

enum http_kind {
	HTTP_REQUEST,
	HTTP_RESPONSE,
};

/* A complete head. All text is NUL-terminated, owned by the reader, valid until http_in_reset() or
 * the next head. */
struct http_head {
	enum http_method method;
	uint16_t status;   /* responses */
	bool keep_alive;   /* the connection may be used again; never after an HTTP/1.0 request */
	bool takes_chunks; /* an answer to this request may be chunked: it is HTTP/1.1 */
	bool chunked;
	bool upgrade_websocket;
	bool expect_continue;
	bool wants_ndjson;	 /* Accept names application/x-ndjson */
	uint64_t content_length; /* 0 when there is none; UINT64_MAX when the length is not known
				    beforehand */
	const char *path;	 /* still percent-encoded, without the query; begins with / */
	const char *query;	 /* still percent-encoded, without '?'; "" when absent */
	const char *content_type;
	const char *authorization;
	size_t authorization_at; /* how many bytes of the message came before its value */
	const char
	    *request_id; /* X-Request-Id if it is 1-63 characters of [A-Za-z0-9._:/+=-], else "" */
	const char *traceparent; /* if well-formed (W3C trace context), else "" */
	const char *websocket_key;
	const char *websocket_version;
	const char *websocket_accept; /* of a 101 */
	const char *idempotency_key;
	const char *retry_after;
	const char *last_event_id;
	uint64_t box_generation; /* X-Box-Generation: the box that is meant; 0: whichever it is */
};

enum http_event {
	HTTP_MORE, /* all bytes used; feed more */
	HTTP_HEAD_DONE,
	HTTP_BODY,
	HTTP_END, /* message complete; http_in_reset() before the next */
};

struct http_in; /* an incremental reader of messages of one kind */

/* NULL when there is no memory. */
struct http_in *http_in_create(enum http_kind kind);

/* The same for heads of at most head_max bytes, itself at most HTTP_HEAD_LIMIT. */
struct http_in *http_in_create_for(enum http_kind kind, size_t head_max);
size_t http_in_head_max(const struct http_in *in);

void http_in_free(struct http_in *in);
void http_in_reset(struct http_in *in);

/*
 * Reads on from `data` and stops after the first event. *used says how many bytes it took: at
 * HTTP_HEAD_DONE exactly the head, so that what follows can be passed on unread. For HTTP_BODY,
 * *body and *body_len are the decoded bytes, inside `data`. May be called with n 0 to learn whether
 * an event is due (HTTP_END after a head without body). Returns an enum http_event, -EMSGSIZE (head
 * longer than it may be, or of too many lines: *err says which), or -EBADMSG with *err saying what
 * is malformed (conflicting lengths, bad chunk, bare control characters, missing or repeated Host
 * or Content-Length, ...); the connection is then of no further use.
 */
int http_in_feed(struct http_in *in, const uint8_t *data, size_t n, size_t *used,
    const uint8_t **body, size_t *body_len, struct err *err);

/* n bytes of a body of known length, at most what is left of it, were read by somebody else. */
void http_in_skip(struct http_in *in, size_t n);

/* The head after HTTP_HEAD_DONE. */
const struct http_head *http_in_head(const struct http_in *in);

/* What every response carries. */
struct http_reply {
	unsigned int status;
	const char *content_type; /* NULL: no body */
	uint64_t content_length;  /* UINT64_MAX: chunked */
	bool until_close;	  /* the end of the connection ends the body; for HTTP/1.0 */
	bool keep_alive;
	const char *request_id;	 /* answered back; NULL or "" is left out */
	const char *traceparent; /* likewise */
	const char *extra;	 /* complete header lines, each ending in \r\n; NULL none */
};

/* Appends a response head. 0, -ENOBUFS, -ENOMEM. */
int http_put_reply(struct buf *out, const struct http_reply *r) __attribute__((warn_unused_result));

/* Appends one chunk of a chunked body; n 0 appends the last one. */
int http_put_chunk(struct buf *out, const void *data, size_t n) __attribute__((warn_unused_result));

const char *http_status_text(unsigned int status);

/*
 * Splits a path into percent-decoded segments (at most max), into storage of `size` bytes. Returns
 * their number (0 for "/"), or -EINVAL: no slash at the start, bad escape, NUL, empty segment, "."
 * or "..", too many or too long. A decoded segment may hold a slash.
 */
int http_split_path(const char *path, char *storage, size_t size, const char **segments, int max);

/*
 * Finds `key` in a query string and decodes its value ('+' is a space) into out. Bytes that are not
 * UTF-8 survive. Returns the length (>= 0), -ENOENT when it is not there, -EINVAL (bad escape, NUL,
 * or given twice), -ENAMETOOLONG.
 */
int http_query_get(const char *query, const char *key, char *out, size_t size);

/*
 * Values of a query by what they are: a text that is not empty; 0, 1, true or false; a number of
 * base 8 or 10 within bounds. 1: *out is set; 0: it is not there; -EINVAL with *err.
 */
int http_query_text(const char *query, const char *key, char *out, size_t size, struct err *err);
int http_query_flag(const char *query, const char *key, bool *out, struct err *err);
int http_query_number(const char *query, const char *key, int base, uint64_t least, uint64_t most,
    uint64_t *out, struct err *err);

/* Appends `text` percent-encoded (everything but unreserved characters and, if keep_slash, '/'). */
int http_put_escaped(struct buf *out, const char *text, bool keep_slash)
    __attribute__((warn_unused_result));

#endif
