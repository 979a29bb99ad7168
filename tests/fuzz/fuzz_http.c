/*
 * Fuzz target of the HTTP reader. However a stream is cut into pieces, it must tell the same story:
 * the same heads, bodies, ends and errors at the same bytes. And what it lets through keeps the
 * rules that its users rely on.
 *
 * Input: one byte for the kind of message, one for the size of pieces, then the stream.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/http.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))

/* The story as text: heads, then body bytes as they come, then how it ended. */
struct story {
	struct buf text;
	size_t used;
	int last;
	struct err err;
};

static void tell(struct story *s, const void *bytes, size_t n)
{
	REQUIRE(buf_append(&s->text, bytes, n) == 0);
}

static void check_text(const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		REQUIRE(c >= 0x20 || c == '\t');
		REQUIRE(c != 0x7f);
	}
}

/* What is decoded must survive being encoded again. */
static void check_uri(const struct http_head *h)
{
	const char *segments[16];
	char storage[8192];
	char value[4096];
	char again[4096];
	struct buf b;
	int count = http_split_path(h->path, storage, sizeof(storage), segments, 16);

	buf_init(&b, 1u << 20);
	for (int i = 0; i < count; i++) {
		REQUIRE(segments[i][0] != '\0');
		REQUIRE(strcmp(segments[i], ".") != 0 && strcmp(segments[i], "..") != 0);
	}
	if (http_query_get(h->query, "path", value, sizeof(value)) >= 0) {
		REQUIRE(buf_puts(&b, "x=1&path=") == 0);
		REQUIRE(http_put_escaped(&b, value, true) == 0);
		REQUIRE(buf_terminate(&b) == 0);
		REQUIRE(http_query_get((const char *)buf_head(&b), "path", again, sizeof(again)) ==
			(int)strlen(value));
		REQUIRE(strcmp(value, again) == 0);
	}
	buf_free(&b);
}

static void tell_head(struct story *s, enum http_kind kind, const struct http_head *h)
{
	const char *const texts[] = {h->path, h->query, h->content_type, h->authorization,
	    h->request_id, h->traceparent, h->websocket_key, h->websocket_version,
	    h->idempotency_key, h->retry_after, h->last_event_id};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		check_text(texts[i]);
		tell(s, texts[i], strlen(texts[i]) + 1);
	}
	REQUIRE(buf_printf(&s->text, "%d %d %d %d %d %d %d %llu\n", (int)h->method, h->status,
		    h->keep_alive, h->chunked, h->upgrade_websocket, h->expect_continue,
		    h->wants_ndjson, (unsigned long long)h->content_length) == 0);
	REQUIRE(strlen(h->request_id) < HTTP_ID_MAX && strlen(h->traceparent) < HTTP_ID_MAX);
	if (kind != HTTP_REQUEST)
		return;
	REQUIRE(h->path[0] == '/');
	REQUIRE(h->chunked == (h->content_length == UINT64_MAX));
	check_uri(h);
}

static void read_all(
    struct story *s, enum http_kind kind, const uint8_t *data, size_t n, size_t step)
{
	struct http_in *in = http_in_create(kind);

	REQUIRE(in != NULL);
	buf_init(&s->text, 64u << 20);
	for (;;) {
		size_t left = n - s->used;
		size_t give = left < step ? left : step;
		const uint8_t *at = data + s->used;
		const uint8_t *body = NULL;
		size_t body_len = 0;
		size_t used = SIZE_MAX;

		s->last = http_in_feed(in, at, give, &used, &body, &body_len, &s->err);
		REQUIRE(used <= give);
		s->used += used;
		if (s->last == HTTP_HEAD_DONE)
			tell_head(s, kind, http_in_head(in));
		if (s->last == HTTP_BODY) {
			REQUIRE(body >= at && body_len > 0 && body + body_len <= at + used);
			tell(s, body, body_len);
		}
		if (s->last == HTTP_END) {
			tell(s, "\nend\n", 5);
			http_in_reset(in);
			if (s->used == n)
				break;
		}
		if (s->last < 0 || (s->last == HTTP_MORE && s->used == n))
			break;
		REQUIRE(s->last != HTTP_MORE || used == give);
	}
	http_in_free(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct story whole = {.used = 0};
	enum http_kind kind;

	if (n < 2)
		return 0;
	kind = data[0] & 1 ? HTTP_RESPONSE : HTTP_REQUEST;
	read_all(&whole, kind, data + 2, n - 2, SIZE_MAX);
	for (int round = 0; round < 2; round++) {
		struct story cut = {.used = 0};

		read_all(&cut, kind, data + 2, n - 2, round == 0 ? 1 : data[1] + 2u);
		REQUIRE(cut.last == whole.last);
		REQUIRE(cut.used == whole.used);
		REQUIRE(cut.text.len == whole.text.len);
		REQUIRE(cut.text.len == 0 ||
			memcmp(buf_head(&cut.text), buf_head(&whole.text), cut.text.len) == 0);
		REQUIRE(whole.last >= 0 || !strcmp(cut.err.text, whole.err.text));
		buf_free(&cut.text);
	}
	buf_free(&whole.text);
	return 0;
}
