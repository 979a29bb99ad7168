/* http_reply: response heads and chunks, written into a buf. Any process; holds no state. */
#include <errno.h>
#include <string.h>

#include "wire/http.h"

static const struct {
	unsigned int status;
	const char *text;
} statuses[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {507, "Insufficient Storage"},
};

const char *http_status_text(unsigned int status)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].status == status)
			return statuses[i].text;
	}
	return "Unknown";
}

/* Writes the digits of `value` so that they end before `end`; returns where they begin. */
static char *reply_digits(char *end, uint64_t value, unsigned int base)
{
	static const char digits[] = "0123456789abcdef";

	do {
		*--end = digits[value % base];
		value /= base;
	} while (value);
	return end;
}

#define REPLY_PARTS 20

/* A head is a list of pieces, measured and then copied at once: it is appended whole or not. */
struct reply_parts {
	struct {
		const char *text;
		size_t len;
	} part[REPLY_PARTS];
	size_t count;
	size_t total;
};

static void reply_add(struct reply_parts *p, const char *text, size_t len)
{
	p->part[p->count].text = text;
	p->part[p->count].len = len;
	p->count++;
	p->total += len;
}

#define REPLY_ADD(p, literal) reply_add(p, literal, sizeof(literal) - 1)

static void reply_add_field(struct reply_parts *p, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	reply_add(p, name, strlen(name));
	reply_add(p, value, strlen(value));
	REPLY_ADD(p, "\r\n");
}

static int reply_append(struct buf *out, const struct reply_parts *p)
{
	uint8_t *to;

	if (p->total > buf_room(out))
		return -ENOBUFS;
	to = buf_reserve(out, p->total);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < p->count; i++) {
		memcpy(to, p->part[i].text, p->part[i].len);
		to += p->part[i].len;
	}
	buf_commit(out, p->total);
	return 0;
}

static void reply_add_framing(
    struct reply_parts *p, const struct http_reply *r, char *digits, size_t size)
{
	uint64_t length = r->content_type ? r->content_length : 0;
	const char *begin;

	if (r->status < 200 || r->status == 204 || r->status == 304 || r->until_close)
		return;
	if (length == UINT64_MAX) {
		REPLY_ADD(p, "Transfer-Encoding: chunked\r\n");
		return;
	}
	begin = reply_digits(digits + size, length, 10);
	REPLY_ADD(p, "Content-Length: ");
	reply_add(p, begin, (size_t)(digits + size - begin));
	REPLY_ADD(p, "\r\n");
}

int http_put_reply(struct buf *out, const struct http_reply *r)
{
	struct reply_parts p = {.count = 0};
	const char *text = http_status_text(r->status);
	char length[20];
	char status[10];
	const char *begin = reply_digits(status + sizeof(status), r->status, 10);

	REPLY_ADD(&p, "HTTP/1.1 ");
	reply_add(&p, begin, (size_t)(status + sizeof(status) - begin));
	REPLY_ADD(&p, " ");
	reply_add(&p, text, strlen(text));
	REPLY_ADD(&p, "\r\n");
	reply_add_field(&p, "Content-Type: ", r->content_type);
	reply_add_framing(&p, r, length, sizeof(length));
	if (!r->keep_alive && r->status >= 200)
		REPLY_ADD(&p, "Connection: close\r\n");
	reply_add_field(&p, "X-Request-Id: ", r->request_id);
	reply_add_field(&p, "traceparent: ", r->traceparent);
	if (r->extra)
		reply_add(&p, r->extra, strlen(r->extra));
	REPLY_ADD(&p, "\r\n");
	return reply_append(out, &p);
}

int http_put_chunk(struct buf *out, const void *data, size_t n)
{
	struct reply_parts p = {.count = 0};
	char size[16];
	const char *begin;

	if (n == 0) {
		REPLY_ADD(&p, "0\r\n\r\n");
		return reply_append(out, &p);
	}
	begin = reply_digits(size + sizeof(size), n, 16);
	reply_add(&p, begin, (size_t)(size + sizeof(size) - begin));
	REPLY_ADD(&p, "\r\n");
	reply_add(&p, data, n);
	REPLY_ADD(&p, "\r\n");
	return reply_append(out, &p);
}
