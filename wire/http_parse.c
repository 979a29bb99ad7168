/*
 * http_parse: an incremental reader of HTTP messages. Any process; what is read dies with it.
 *
 * A head is collected and checked byte by byte (so that what follows it stays untouched), then
 * taken apart in place by http_engine and http_fields. Bodies are framed here. No memory is
 * allocated after http_in_create_for().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "wire/http.h"
#include "wire/http_chunk.h"
#include "wire/http_engine.h"
#include "wire/http_fields.h"

enum in_stage {
	IN_HEAD,
	IN_LENGTH, /* a body of `left` more bytes */
	IN_CHUNKED,
	IN_UNTIL_CLOSE,
	IN_END,
	IN_FAILED,
};

struct http_in {
	enum http_kind kind;
	enum in_stage stage;
	uint64_t left;
	struct http_chunk chunk;
	struct http_head head;

	/* The head so far: its first line begins at text[start]. */
	size_t start;
	size_t len;
	size_t line_len;
	bool cr;
	size_t max;
	char text[]; /* max bytes and one more */
};

struct http_in *http_in_create_for(enum http_kind kind, size_t head_max)
{
	struct http_in *in;

	INVARIANT(head_max <= HTTP_HEAD_LIMIT);
	in = malloc(sizeof(*in) + head_max + 1); /* not calloc: most of text[] is never touched */
	if (!in)
		return NULL;
	in->kind = kind;
	in->max = head_max;
	http_in_reset(in);
	return in;
}

struct http_in *http_in_create(enum http_kind kind)
{
	return http_in_create_for(kind, HTTP_HEAD_MAX);
}

size_t http_in_head_max(const struct http_in *in)
{
	return in->max;
}

void http_in_free(struct http_in *in)
{
	free(in);
}

void http_in_reset(struct http_in *in)
{
	in->stage = IN_HEAD;
	in->left = 0;
	in->chunk = (struct http_chunk){.left = 0};
	in->head = (struct http_head){.path = ""};
	in->start = 0;
	in->len = 0;
	in->line_len = 0;
	in->cr = false;
}

const struct http_head *http_in_head(const struct http_in *in)
{
	return &in->head;
}

enum byte_class {
	BYTE_TEXT = 0,
	BYTE_BLANK,
	BYTE_CR,
	BYTE_LF,
	BYTE_BAD,
};

static const uint8_t byte_classes[256] = {
    [0x00 ... 0x08] = BYTE_BAD,
    ['\t'] = BYTE_BLANK,
    ['\n'] = BYTE_LF,
    [0x0b ... 0x0c] = BYTE_BAD,
    ['\r'] = BYTE_CR,
    [0x0e ... 0x1f] = BYTE_BAD,
    [' '] = BYTE_BLANK,
    [0x7f] = BYTE_BAD,
};

/* One byte of the head that is not plain text. 1: it was the head's last; 0; -EBADMSG. */
static int in_take_special(struct http_in *in, size_t after, enum byte_class class, struct err *err)
{
	if (in->cr != (class == BYTE_LF))
		return err_set(err, EBADMSG, "a line of the head does not end with CR LF");
	switch (class) {
	case BYTE_CR:
		in->cr = true;
		return 0;
	case BYTE_LF:
		in->cr = false;
		if (in->line_len == 0) {
			if (after - in->start > 2)
				return 1;
			in->start = after; /* empty lines before a message: RFC 9112, 2.2 */
		}
		in->line_len = 0;
		return 0;
	case BYTE_BLANK:
		if (in->line_len == 0)
			return err_set(
			    err, EBADMSG, "a line of the head begins with a blank (folded header)");
		in->line_len++;
		return 0;
	case BYTE_BAD:
		return err_set(err, EBADMSG, "a control character in the head");
	case BYTE_TEXT:
		break;
	}
	in->line_len++;
	return 0;
}

/* Collects head bytes. 1: the head is whole; 0: more is needed; -EBADMSG, -EMSGSIZE. */
static int in_scan_head(
    struct http_in *in, const uint8_t *data, size_t n, size_t *used, struct err *err)
{
	size_t room = in->max - in->len;
	size_t end = n < room ? n : room;
	size_t i = 0;
	int rc = 0;

	while (rc == 0 && i < end) {
		size_t run = i;

		if (!in->cr) {
			while (i < end && byte_classes[data[i]] == BYTE_TEXT)
				i++;
			in->line_len += i - run;
			if (i == end)
				break;
		}
		rc = in_take_special(in, in->len + i + 1, byte_classes[data[i]], err);
		i++;
	}
	if (i > 0)
		memcpy(in->text + in->len, data, i);
	in->len += i;
	*used = i;
	if (rc == 0 && in->len == in->max)
		return err_set(err, EMSGSIZE, "the head is longer than %zu bytes", in->max);
	return rc;
}

static enum in_stage in_body_stage(const struct http_head *h)
{
	if (h->chunked)
		return IN_CHUNKED;
	if (h->content_length == UINT64_MAX)
		return IN_UNTIL_CLOSE;
	return h->content_length > 0 ? IN_LENGTH : IN_END;
}

static int in_feed_head(
    struct http_in *in, const uint8_t *data, size_t n, size_t *used, struct err *err)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n";
	struct http_raw raw;
	const char *why = "";
	char *text;
	int rc = in_scan_head(in, data, n, used, err);

	if (rc <= 0)
		return rc < 0 ? rc : HTTP_MORE;
	text = in->text + in->start;
	if (in->kind == HTTP_REQUEST && !strncmp(text, preface, sizeof(preface) - 1))
		return err_set(err, EBADMSG, "HTTP/2 is not spoken here; HTTP/1.1 is");
	rc = http_engine_parse(in->kind == HTTP_RESPONSE, text, in->len - in->start, &raw, &why);
	if (rc < 0)
		return err_set(err, -rc, "%s", why);
	rc = http_fields_read(in->kind, text, &raw, &in->head, err);
	if (rc < 0)
		return rc;
	if (*in->head.authorization)
		in->head.authorization_at = (size_t)(in->head.authorization - in->text);
	in->left = in->head.content_length;
	in->stage = in_body_stage(&in->head);
	return HTTP_HEAD_DONE;
}

static int in_feed_chunked(struct http_in *in, const uint8_t *data, size_t n, size_t *used,
    const uint8_t **body, size_t *body_len, struct err *err)
{
	const char *why = "";
	int rc = http_chunk_feed(&in->chunk, data, n, used, body, body_len, &why);

	if (rc < 0)
		return err_set(err, EBADMSG, "%s", why);
	if (rc == 1)
		return HTTP_BODY;
	if (in->chunk.state != CHUNK_DONE)
		return HTTP_MORE;
	in->stage = IN_END;
	return HTTP_END;
}

void http_in_skip(struct http_in *in, size_t n)
{
	INVARIANT(in->stage == IN_LENGTH && n <= in->left);
	in->left -= n;
	if (in->left == 0)
		in->stage = IN_END;
}

static int in_feed_plain(struct http_in *in, const uint8_t *data, size_t n, size_t *used,
    const uint8_t **body, size_t *body_len)
{
	size_t take = n;

	if (n == 0)
		return HTTP_MORE;
	if (in->stage == IN_LENGTH) {
		take = n < in->left ? n : (size_t)in->left;
		http_in_skip(in, take);
	}
	*body = data;
	*body_len = take;
	*used = take;
	return HTTP_BODY;
}

int http_in_feed(struct http_in *in, const uint8_t *data, size_t n, size_t *used,
    const uint8_t **body, size_t *body_len, struct err *err)
{
	int rc = -EBADMSG;

	*used = 0;
	switch (in->stage) {
	case IN_HEAD:
		rc = in_feed_head(in, data, n, used, err);
		break;
	case IN_LENGTH:
	case IN_UNTIL_CLOSE:
		rc = in_feed_plain(in, data, n, used, body, body_len);
		break;
	case IN_CHUNKED:
		rc = in_feed_chunked(in, data, n, used, body, body_len, err);
		break;
	case IN_END:
		rc = HTTP_END;
		break;
	case IN_FAILED:
		rc = err_set(err, EBADMSG, "the connection already broke the protocol");
		break;
	}
	if (rc < 0)
		in->stage = IN_FAILED;
	return rc;
}
