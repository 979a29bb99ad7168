/*
 * websocket: frames in and out, RFC 6455, 5. Any process; holds no state but the caller's.
 *
 * Every rule that a client can break is checked here, and each with the byte that breaks it: what
 * comes after that byte is never looked at.
 */
#include "wire/websocket.h"

#include <errno.h>
#include <string.h>

#include "lib/utf8.h"

#define WS_FIN 0x80U
#define WS_RSV 0x70U
#define WS_OPCODE 0x0fU
#define WS_MASK 0x80U
#define WS_LENGTH 0x7fU
#define WS_LENGTH_16 126U /* the next two bytes are the length */
#define WS_LENGTH_64 127U /* the next eight are */

static bool ws_is_control(unsigned int opcode)
{
	return (opcode & 8) != 0;
}

static uint64_t ws_get_number(const uint8_t *p, size_t n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | *p++;
	return value;
}

static void ws_put_number(uint8_t *p, size_t n, uint64_t value)
{
	while (n--) {
		p[n] = (uint8_t)value;
		value >>= 8;
	}
}

size_t ws_put_head(uint8_t out[WS_HEAD_MAX], enum ws_opcode opcode, uint64_t n)
{
	out[0] = (uint8_t)(WS_FIN | opcode);
	if (n < WS_LENGTH_16) {
		out[1] = (uint8_t)n;
		return 2;
	}
	if (n <= UINT16_MAX) {
		out[1] = WS_LENGTH_16;
		ws_put_number(out + 2, 2, n);
		return 4;
	}
	out[1] = WS_LENGTH_64;
	ws_put_number(out + 2, 8, n);
	return 10;
}

size_t ws_put_close(uint8_t out[WS_CONTROL_MAX], enum ws_code code, const char *reason)
{
	size_t n = strlen(reason);

	if (n > WS_CONTROL_MAX - 2)
		n = utf8_valid_prefix((const uint8_t *)reason, WS_CONTROL_MAX - 2, NULL);
	ws_put_number(out, 2, code);
	memcpy(out + 2, reason, n);
	return 2 + n;
}

static int ws_fail(struct ws_in *in, enum ws_code code, const char *why)
{
	in->code = code;
	in->why = why;
	return -EBADMSG;
}

/* The first byte of a head. */
static int ws_check_opcode(struct ws_in *in)
{
	unsigned int opcode = in->head[0] & WS_OPCODE;

	in->opcode = (uint8_t)opcode;
	in->fin = (in->head[0] & WS_FIN) != 0;
	if (in->head[0] & WS_RSV)
		return ws_fail(in, WS_PROTOCOL_ERROR, "a reserved bit is set");
	if ((opcode > WS_BINARY && opcode < WS_CLOSE) || opcode > WS_PONG)
		return ws_fail(in, WS_PROTOCOL_ERROR, "a frame of an unknown kind");
	if (ws_is_control(opcode)) {
		if (!in->fin)
			return ws_fail(in, WS_PROTOCOL_ERROR, "a control frame is fragmented");
	} else if (opcode == WS_CONTINUATION && !in->message) {
		return ws_fail(in, WS_PROTOCOL_ERROR, "there is no message to continue");
	} else if (opcode != WS_CONTINUATION && in->message) {
		return ws_fail(in, WS_PROTOCOL_ERROR, "a message begins within another");
	}
	return 0;
}

/* The second. Returns how many bytes the head has, or -EBADMSG. */
static int ws_check_size(struct ws_in *in)
{
	unsigned int length = in->head[1] & WS_LENGTH;

	if (!(in->head[1] & WS_MASK))
		return ws_fail(in, WS_PROTOCOL_ERROR, "a frame is not masked");
	if (ws_is_control(in->opcode) && length > WS_CONTROL_MAX)
		return ws_fail(in, WS_PROTOCOL_ERROR, "a control frame is too long");
	return 2 + (length == WS_LENGTH_64 ? 8 : length == WS_LENGTH_16 ? 2 : 0) + 4;
}

/* The bytes of a longer length, all of which have come. */
static int ws_check_length(struct ws_in *in, size_t extra)
{
	uint64_t length = ws_get_number(in->head + 2, extra);

	if (length > INT64_MAX)
		return ws_fail(in, WS_PROTOCOL_ERROR, "the length of a frame is not a length");
	if (length <= (extra == 2 ? WS_LENGTH_16 - 1 : UINT16_MAX))
		return ws_fail(in, WS_PROTOCOL_ERROR, "a length is longer than it need be");
	return 0;
}

/* The head is whole. */
static void ws_begin_payload(struct ws_in *in)
{
	size_t extra = in->head_len - 6U;

	in->left = extra ? ws_get_number(in->head + 2, extra) : in->head[1] & WS_LENGTH;
	memcpy(in->mask, in->head + 2 + extra, 4);
	in->at = 0;
	in->head_len = 0;
	in->control_len = 0;
	in->in_payload = true;
	if (in->opcode == WS_TEXT || in->opcode == WS_BINARY)
		in->message = in->opcode;
}

/* Takes bytes of a head. 1: it is whole; 0: more is needed; -EBADMSG. */
static int ws_take_head(struct ws_in *in, const uint8_t *p, size_t n, size_t *used)
{
	int want = in->head_len < 2 ? 2 : ws_check_size(in);
	int rc = 0;

	while (in->head_len < want) {
		if (n == 0)
			return 0;
		in->head[in->head_len++] = *p++;
		n--;
		++*used;
		if (in->head_len == 1)
			rc = ws_check_opcode(in);
		else if (in->head_len == 2)
			rc = want = ws_check_size(in);
		else if (in->head_len == want - 4)
			rc = ws_check_length(in, (size_t)want - 6);
		if (rc < 0)
			return rc;
	}
	ws_begin_payload(in);
	return 1;
}

static void ws_unmask(struct ws_in *in, uint8_t *p, size_t n)
{
	uint8_t turned[8];
	uint64_t mask;
	uint64_t word;
	size_t i = 0;

	for (size_t k = 0; k < sizeof(turned); k++)
		turned[k] = in->mask[(in->at + k) % 4];
	memcpy(&mask, turned, sizeof(mask));
	for (; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		word ^= mask;
		memcpy(p + i, &word, sizeof(word));
	}
	for (size_t k = 0; i < n; i++, k++)
		p[i] ^= turned[k];
	in->at += n;
	in->left -= n;
}

/* Whether a text goes on as UTF-8: characters may be cut by frames and by whoever reads. */
static bool ws_text_goes_on(struct ws_in *in, const uint8_t *p, size_t n)
{
	bool incomplete = false;
	size_t valid;

	while (in->tail_len && n) {
		in->tail[in->tail_len++] = *p++;
		n--;
		if (utf8_valid_prefix(in->tail, in->tail_len, &incomplete) == in->tail_len)
			in->tail_len = 0;
		else if (!incomplete)
			return false;
	}
	if (n == 0)
		return true;
	valid = utf8_valid_prefix(p, n, &incomplete);
	if (valid == n)
		return true;
	if (!incomplete)
		return false;
	in->tail_len = (uint8_t)(n - valid);
	memcpy(in->tail, p + valid, n - valid);
	return true;
}

/* A control frame: kept until it is whole. */
static int ws_take_control(struct ws_in *in, const uint8_t *p, size_t n, struct ws_part *part)
{
	memcpy(in->control + in->control_len, p, n);
	in->control_len = (uint8_t)(in->control_len + n);
	if (in->left)
		return WS_MORE;
	in->in_payload = false;
	*part = (struct ws_part){(enum ws_opcode)in->opcode, in->control, in->control_len, true};
	return WS_CONTROL;
}

/* Payload of a message; WS_MORE: there is nothing in it. */
static int ws_take_data(struct ws_in *in, const uint8_t *p, size_t n, struct ws_part *part)
{
	enum ws_opcode message = (enum ws_opcode)in->message;
	bool end = in->left == 0 && in->fin;

	if (message == WS_TEXT && (!ws_text_goes_on(in, p, n) || (end && in->tail_len)))
		return ws_fail(in, WS_BAD_DATA, "a text is not UTF-8");
	in->in_payload = in->left != 0;
	if (end)
		in->message = 0;
	if (n == 0 && !end)
		return WS_MORE;
	*part = (struct ws_part){message, p, n, end};
	return WS_DATA;
}

int ws_in_feed(struct ws_in *in, uint8_t *data, size_t n, size_t *used, struct ws_part *part)
{
	int rc = WS_MORE;

	*used = 0;
	while (rc == WS_MORE) {
		uint8_t *p;
		size_t take;

		if (!in->in_payload) {
			rc = ws_take_head(in, data + *used, n - *used, used);
			if (rc <= 0)
				return rc < 0 ? rc : WS_MORE;
		}
		p = data + *used;
		take = n - *used < in->left ? n - *used : (size_t)in->left;
		if (take == 0 && in->left)
			return WS_MORE;
		ws_unmask(in, p, take);
		*used += take;
		rc = ws_is_control(in->opcode) ? ws_take_control(in, p, take, part)
					       : ws_take_data(in, p, take, part);
	}
	return rc;
}

/* The codes that may be sent: RFC 6455, 7.4, and what was registered since. */
static bool ws_code_is_sendable(uint64_t code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

int ws_read_close(const uint8_t *p, size_t n, enum ws_code *code)
{
	uint64_t number = n >= 2 ? ws_get_number(p, 2) : WS_NO_STATUS;

	*code = WS_PROTOCOL_ERROR;
	if (n == 1 || (n >= 2 && !ws_code_is_sendable(number)))
		return -EBADMSG;
	*code = WS_BAD_DATA;
	if (n > 2 && utf8_valid_prefix(p + 2, n - 2, NULL) != n - 2)
		return -EBADMSG;
	*code = (enum ws_code)number;
	return 0;
}
