/*
 * http_engine: the only file that knows llhttp (Debian 13) or http_parser (Debian 12). Any process;
 * holds no state between heads.
 *
 * The library is given a whole head at once and stopped where the body begins. Bodies are framed in
 * http_parse.c: the count of used bytes has to be exact there, and Debian builds http_parser
 * without its strict checks, so it lets malformed chunks pass.
 */
#include "wire/http_engine.h"

#include <errno.h>

#ifdef HAVE_LLHTTP
#include <llhttp.h>
typedef llhttp_t engine_parser;
typedef llhttp_settings_t engine_settings;
#else
#include <http_parser.h>
typedef http_parser engine_parser;
typedef http_parser_settings engine_settings;
#endif

struct engine_run {
	const char *head;
	struct http_raw *raw;
	bool in_value;
	bool too_many;
	bool complete;
};

/* Extends `span` when the library gives a piece in parts; parts are contiguous. */
static int engine_add(
    const struct engine_run *run, struct http_span *span, const char *at, size_t n)
{
	size_t off = (size_t)(at - run->head);

	if (n == 0)
		return 0;
	if (span->len == 0)
		span->off = (uint16_t)off;
	else if (span->off + span->len != off)
		return -1;
	span->len = (uint16_t)(span->len + n);
	return 0;
}

static int engine_on_url(engine_parser *p, const char *at, size_t n)
{
	struct engine_run *run = p->data;

	return engine_add(run, &run->raw->target, at, n);
}

static int engine_on_field(engine_parser *p, const char *at, size_t n)
{
	struct engine_run *run = p->data;
	struct http_raw *raw = run->raw;

	if (raw->count == 0 || run->in_value) {
		if (raw->count == HTTP_FIELDS_MAX) {
			run->too_many = true;
			return -1;
		}
		raw->fields[raw->count++] = (struct http_field){.name.len = 0};
		run->in_value = false;
	}
	return engine_add(run, &raw->fields[raw->count - 1].name, at, n);
}

static int engine_on_value(engine_parser *p, const char *at, size_t n)
{
	struct engine_run *run = p->data;

	if (run->raw->count == 0)
		return -1;
	run->in_value = true;
	return engine_add(run, &run->raw->fields[run->raw->count - 1].value, at, n);
}

static int engine_on_complete(engine_parser *p)
{
	struct engine_run *run = p->data;
	struct http_raw *raw = run->raw;

	raw->major = (uint8_t)p->http_major;
	raw->minor = (uint8_t)p->http_minor;
	raw->status = (uint16_t)p->status_code;
	raw->upgrade = p->upgrade != 0;
#ifdef HAVE_LLHTTP
	raw->keep_alive = llhttp_should_keep_alive(p) != 0;
#else
	raw->keep_alive = http_should_keep_alive(p) != 0;
#endif
	run->complete = true;
	return -1; /* what follows is not the library's */
}

static const engine_settings settings = {
    .on_url = engine_on_url,
    .on_header_field = engine_on_field,
    .on_header_value = engine_on_value,
    .on_headers_complete = engine_on_complete,
};

/* Names that both libraries have; their own texts differ. */
static const struct {
	int code;
	const char *text;
} engine_errors[] = {
    {HPE_INVALID_METHOD, "unknown request method"},
    {HPE_INVALID_URL, "malformed request target"},
    {HPE_INVALID_VERSION, "malformed HTTP version"},
    {HPE_INVALID_CONSTANT, "malformed request line"},
    {HPE_INVALID_STATUS, "malformed status"},
    {HPE_INVALID_HEADER_TOKEN, "invalid character in a header"},
    {HPE_INVALID_CONTENT_LENGTH, "Content-Length is no number or contradicts Transfer-Encoding"},
    {HPE_UNEXPECTED_CONTENT_LENGTH, "Content-Length is repeated or contradicts Transfer-Encoding"},
    {HPE_INVALID_TRANSFER_ENCODING, "unsupported Transfer-Encoding"},
};

static const char *engine_why(int code)
{
	for (size_t i = 0; i < sizeof(engine_errors) / sizeof(engine_errors[0]); i++) {
		if (engine_errors[i].code == code)
			return engine_errors[i].text;
	}
	return "malformed head";
}

int http_engine_parse(
    bool response, const char *head, size_t n, struct http_raw *raw, const char **why)
{
	struct engine_run run = {.head = head, .raw = raw};
	engine_parser p;
	int code;

	raw->target = (struct http_span){.len = 0};
	raw->count = 0;
#ifdef HAVE_LLHTTP
	llhttp_init(&p, response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
	p.data = &run;
	code = llhttp_execute(&p, head, n);
#else
	http_parser_init(&p, response ? HTTP_RESPONSE : HTTP_REQUEST);
	p.data = &run;
	(void)http_parser_execute(&p, &settings, head, n); /* its errno says it */
	code = (int)HTTP_PARSER_ERRNO(&p);
#endif
	if (run.complete)
		return 0;
	*why = run.too_many ? "too many header lines" : engine_why(code);
	return run.too_many ? -EMSGSIZE : -EBADMSG;
}
