/*
 * http_fields: what the header lines of a head mean, and which heads are refused. Any process;
 * holds no state.
 */
#include "wire/http_fields.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum field_id {
	FIELD_HOST,
	FIELD_CONTENT_LENGTH,
	FIELD_TRANSFER_ENCODING,
	FIELD_EXPECT,
	FIELD_UPGRADE,
	FIELD_CONTENT_TYPE,
	FIELD_AUTHORIZATION,
	FIELD_WEBSOCKET_KEY,
	FIELD_WEBSOCKET_VERSION,
	FIELD_WEBSOCKET_ACCEPT,
	FIELD_IDEMPOTENCY_KEY,
	FIELD_RETRY_AFTER,
	FIELD_LAST_EVENT_ID,
	FIELD_BOX_GENERATION,
	FIELD_REQUEST_ID,
	FIELD_TRACEPARENT,
	FIELD_ACCEPT,
	FIELDS,
};

enum field_rule {
	RULE_ONCE,  /* given twice: refused, for the two might mean different things to others */
	RULE_TRACE, /* given twice: as if absent; tracing never fails a request */
	RULE_LIST,  /* may be given many times */
};

static const struct {
	const char *name;
	size_t len;
	enum field_rule rule;
} fields[] = {
#define FIELD(name, rule)                    \
	{                                    \
		name, sizeof(name) - 1, rule \
	}
    [FIELD_HOST] = FIELD("Host", RULE_ONCE),
    [FIELD_CONTENT_LENGTH] = FIELD("Content-Length", RULE_ONCE),
    [FIELD_TRANSFER_ENCODING] = FIELD("Transfer-Encoding", RULE_ONCE),
    [FIELD_EXPECT] = FIELD("Expect", RULE_ONCE),
    [FIELD_UPGRADE] = FIELD("Upgrade", RULE_ONCE),
    [FIELD_CONTENT_TYPE] = FIELD("Content-Type", RULE_ONCE),
    [FIELD_AUTHORIZATION] = FIELD("Authorization", RULE_ONCE),
    [FIELD_WEBSOCKET_KEY] = FIELD("Sec-WebSocket-Key", RULE_ONCE),
    [FIELD_WEBSOCKET_VERSION] = FIELD("Sec-WebSocket-Version", RULE_ONCE),
    [FIELD_WEBSOCKET_ACCEPT] = FIELD("Sec-WebSocket-Accept", RULE_ONCE),
    [FIELD_IDEMPOTENCY_KEY] = FIELD("Idempotency-Key", RULE_ONCE),
    [FIELD_RETRY_AFTER] = FIELD("Retry-After", RULE_ONCE),
    [FIELD_LAST_EVENT_ID] = FIELD("Last-Event-ID", RULE_ONCE),
    [FIELD_BOX_GENERATION] = FIELD("X-Box-Generation", RULE_ONCE),
    [FIELD_REQUEST_ID] = FIELD("X-Request-Id", RULE_TRACE),
    [FIELD_TRACEPARENT] = FIELD("traceparent", RULE_TRACE),
    [FIELD_ACCEPT] = FIELD("Accept", RULE_LIST),
#undef FIELD
};
_Static_assert(sizeof(fields) / sizeof(fields[0]) == FIELDS, "every field has its row");

static const struct {
	const char *name;
	enum http_method method;
} methods[] = {
    {"GET ", HTTP_GET},
    {"HEAD ", HTTP_HEAD},
    {"POST ", HTTP_POST},
    {"PUT ", HTTP_PUT},
    {"DELETE ", HTTP_DELETE},
};

struct fields_seen {
	const char *text[FIELDS]; /* NULL: absent */
	bool dropped[FIELDS];
	bool ndjson;
};

/* Ends a value, without the blanks around it, with a NUL. */
static const char *fields_end_value(char *text, struct http_span span)
{
	char *begin = text + span.off;
	size_t len = span.len;

	while (len > 0 && (begin[len - 1] == ' ' || begin[len - 1] == '\t'))
		len--;
	if (len == 0)
		return "";
	begin[len] = '\0'; /* over the blank or the line end that follows */
	return begin;
}

/* Whether a comma-separated list of media types names `type`. */
static bool fields_list_has(const char *list, const char *type)
{
	size_t len = strlen(type);

	while (*list) {
		list += strspn(list, ", \t");
		if (!strncasecmp(list, type, len) && strchr(",; \t", list[len]))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

static int fields_note(
    struct fields_seen *seen, enum field_id id, const char *value, struct err *err)
{
	if (fields[id].rule == RULE_LIST) {
		seen->ndjson |= fields_list_has(value, "application/x-ndjson");
		return 0;
	}
	if (!seen->text[id]) {
		seen->text[id] = value;
		return 0;
	}
	if (fields[id].rule == RULE_ONCE)
		return err_set(err, EBADMSG, "header %s is given twice", fields[id].name);
	seen->dropped[id] = true;
	return 0;
}

static int fields_collect(
    char *text, const struct http_raw *raw, struct fields_seen *seen, struct err *err)
{
	for (size_t i = 0; i < raw->count; i++) {
		const struct http_field *f = &raw->fields[i];
		const char *name = text + f->name.off;

		if (f->name.len == 0 || memchr(name, ' ', f->name.len))
			return err_set(err, EBADMSG, "a header name is empty or has a blank");
		for (enum field_id id = 0; id < FIELDS; id++) {
			if (fields[id].len != f->name.len ||
			    strncasecmp(fields[id].name, name, f->name.len) != 0)
				continue;
			if (fields_note(seen, id, fields_end_value(text, f->value), err) < 0)
				return -EBADMSG;
			break;
		}
	}
	return 0;
}

/* Digits only, below 2^63. */
static int fields_parse_number(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > (INT64_MAX - 9) / 10)
			return -EINVAL;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	*out = value;
	return 0;
}

static int fields_read_framing(enum http_kind kind, const struct http_raw *raw,
    const struct fields_seen *seen, struct http_head *head, struct err *err)
{
	const char *length = seen->text[FIELD_CONTENT_LENGTH];
	const char *coding = seen->text[FIELD_TRANSFER_ENCODING];
	bool no_body = kind == HTTP_RESPONSE &&
		       (raw->status < 200 || raw->status == 204 || raw->status == 304);

	if (length && coding)
		return err_set(err, EBADMSG, "both Content-Length and Transfer-Encoding are given");
	if (length && fields_parse_number(length, &head->content_length) < 0)
		return err_set(err, EBADMSG, "Content-Length is not a number, or too large");
	if (coding && strcasecmp(coding, "chunked") != 0)
		return err_set(err, EBADMSG, "unsupported Transfer-Encoding; only chunked is");
	if (coding && raw->minor == 0)
		return err_set(err, EBADMSG, "Transfer-Encoding in HTTP/1.0");
	head->chunked = coding != NULL && !no_body;
	if (no_body)
		head->content_length = 0;
	else if (coding || (kind == HTTP_RESPONSE && !length))
		head->content_length = UINT64_MAX;
	return 0;
}

static int fields_read_target(
    char *text, const struct http_raw *raw, struct http_head *head, struct err *err)
{
	char *target = text + raw->target.off;
	char *query;

	/* Debian's http_parser takes any four letters for HTTP, and many blanks for one. */
	if (raw->target.off < 2 || target[-1] != ' ' || target[-2] == ' ' ||
	    strncmp(target + raw->target.len, " HTTP/", 6) != 0)
		return err_set(err, EBADMSG, "malformed request line");
	if (raw->target.len == 0 || target[0] != '/')
		return err_set(err, EBADMSG, "the request target is not a path that begins with /");
	for (size_t i = 0; i < raw->target.len; i++) {
		unsigned char c = (unsigned char)target[i];

		if (c <= 0x20 || c >= 0x7f || c == '#')
			return err_set(err, EBADMSG,
			    "invalid character in the request target; it is to be %%-encoded");
	}
	target[raw->target.len] = '\0'; /* over the blank that follows */
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	head->path = target;
	head->query = query ? query : "";
	return 0;
}

static const char *fields_check_request_id(const char *id)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._:/+=-";
	size_t len = strspn(id, allowed);

	return id[len] == '\0' && len < HTTP_ID_MAX ? id : "";
}

/* https://www.w3.org/TR/trace-context/: version-trace_id-parent_id-flags, lowercase hex. */
static const char *fields_check_traceparent(const char *text)
{
	static const char shape[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";

	if (strlen(text) != sizeof(shape) - 1 || !strncmp(text, "ff", 2))
		return "";
	for (size_t i = 0; i < sizeof(shape) - 1; i++) {
		bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');

		if (shape[i] == '-' ? text[i] != '-' : !hex)
			return "";
	}
	if (strspn(text + 3, "0") == 32 || strspn(text + 36, "0") == 16)
		return "";
	return text;
}

static const char *fields_text(const struct fields_seen *seen, enum field_id id)
{
	return seen->text[id] && !seen->dropped[id] ? seen->text[id] : "";
}

static enum http_method fields_method(const char *text)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (!strncmp(text, methods[i].name, strlen(methods[i].name)))
			return methods[i].method;
	}
	return HTTP_OTHER;
}

int http_fields_read(enum http_kind kind, char *text, const struct http_raw *raw,
    struct http_head *head, struct err *err)
{
	struct fields_seen seen = {.ndjson = false};
	struct http_head h = {.path = "", .query = "", .status = raw->status};
	bool http11 = raw->minor == 1;

	if (raw->major != 1 || raw->minor > 1)
		return err_set(err, EBADMSG, "HTTP/%u.%u is not supported; HTTP/1.1 is",
		    (unsigned int)raw->major, (unsigned int)raw->minor);
	if (kind == HTTP_REQUEST) {
		h.method = fields_method(text);
		if (fields_read_target(text, raw, &h, err) < 0)
			return -EBADMSG;
	} else if (strncmp(text, "HTTP/", 5) != 0) {
		return err_set(err, EBADMSG, "malformed status line");
	}
	if (fields_collect(text, raw, &seen, err) < 0 ||
	    fields_read_framing(kind, raw, &seen, &h, err) < 0)
		return -EBADMSG;
	if (kind == HTTP_REQUEST && http11 && !seen.text[FIELD_HOST])
		return err_set(err, EBADMSG, "header Host is missing");

	if (seen.text[FIELD_BOX_GENERATION] &&
	    (fields_parse_number(seen.text[FIELD_BOX_GENERATION], &h.box_generation) < 0 ||
		h.box_generation == 0))
		return err_set(err, EBADMSG, "X-Box-Generation is not a number from 1 on");

	/* An HTTP/1.0 client that asks to stay wants an answer that says so; it gets a close. */
	h.keep_alive = raw->keep_alive && (http11 || kind == HTTP_RESPONSE);
	h.takes_chunks = http11;
	h.upgrade_websocket = raw->upgrade && http11 && h.method == HTTP_GET &&
			      !strcasecmp(fields_text(&seen, FIELD_UPGRADE), "websocket");
	h.expect_continue = http11 && h.content_length > 0 &&
			    !strcasecmp(fields_text(&seen, FIELD_EXPECT), "100-continue");
	h.wants_ndjson = seen.ndjson;
	h.content_type = fields_text(&seen, FIELD_CONTENT_TYPE);
	h.authorization = fields_text(&seen, FIELD_AUTHORIZATION);
	h.request_id = fields_check_request_id(fields_text(&seen, FIELD_REQUEST_ID));
	h.traceparent = fields_check_traceparent(fields_text(&seen, FIELD_TRACEPARENT));
	h.websocket_key = fields_text(&seen, FIELD_WEBSOCKET_KEY);
	h.websocket_version = fields_text(&seen, FIELD_WEBSOCKET_VERSION);
	h.websocket_accept = fields_text(&seen, FIELD_WEBSOCKET_ACCEPT);
	h.idempotency_key = fields_text(&seen, FIELD_IDEMPOTENCY_KEY);
	h.retry_after = fields_text(&seen, FIELD_RETRY_AFTER);
	h.last_event_id = fields_text(&seen, FIELD_LAST_EVENT_ID);
	*head = h;
	return 0;
}
