/* ws_client: frames of a WebSocket client. sbxctl; holds no state. */
#include "tools/ws_client.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "wire/json.h"

#define KEY_BYTES 16U
#define MASK_LEN 4U
#define HEAD_FIN 0x80U
#define HEAD_RESERVED 0x70U
#define HEAD_OPCODE 0x0fU
#define HEAD_MASKED 0x80U
#define LEN_16 126U
#define LEN_64 127U

int ws_client_key(char key[WS_CLIENT_KEY_LEN])
{
	uint8_t bytes[KEY_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	base64_encode(bytes, sizeof(bytes), key);
	key[WS_CLIENT_KEY_LEN - 1] = '\0';
	return 0;
}

int ws_client_check(const char *key, const char *accept, struct err *err)
{
	char expected[WS_ACCEPT_LEN];

	ws_put_accept(key, expected);
	return strcmp(accept, expected) == 0
		   ? 0
		   : err_set(err, EBADMSG, "the service did not answer the WebSocket's key");
}

int ws_client_put(struct buf *out, enum ws_opcode opcode, const void *payload, size_t n)
{
	const uint8_t *bytes = payload;
	uint8_t head[WS_HEAD_MAX];
	size_t len = ws_put_head(head, opcode, n);
	uint8_t mask[MASK_LEN];
	uint8_t *at;

	if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
		return -EIO;
	at = buf_reserve(out, len + MASK_LEN + n);
	if (!at)
		return -ENOBUFS;
	head[1] |= HEAD_MASKED;
	memcpy(at, head, len);
	memcpy(at + len, mask, MASK_LEN);
	at += len + MASK_LEN;
	for (size_t i = 0; i < n; i++)
		at[i] = bytes[i] ^ mask[i % MASK_LEN];
	buf_commit(out, len + MASK_LEN + n);
	return 0;
}

static bool may_come(uint8_t opcode)
{
	return opcode == WS_TEXT || opcode == WS_BINARY || opcode == WS_CLOSE ||
	       opcode == WS_PING || opcode == WS_PONG;
}

int ws_client_next(
    const uint8_t *data, size_t n, size_t *used, struct ws_client_frame *frame, struct err *err)
{
	size_t head = 2;
	uint64_t len;

	if (n < head)
		return 0;
	if (!(data[0] & HEAD_FIN) || (data[0] & HEAD_RESERVED) || (data[1] & HEAD_MASKED) ||
	    !may_come(data[0] & HEAD_OPCODE))
		return err_set(err, EBADMSG, "a frame that no server sends");
	len = data[1];
	if (len == LEN_16)
		head = 4;
	else if (len == LEN_64)
		head = 10;
	if (n < head)
		return 0;
	if (head > 2) {
		len = 0;
		for (size_t i = 2; i < head; i++)
			len = len << 8 | data[i];
	}
	if (len > WS_CLIENT_FRAME_MAX)
		return err_set(err, EBADMSG, "a frame of more than %u bytes", WS_CLIENT_FRAME_MAX);
	if (n - head < len)
		return 0;
	*frame = (struct ws_client_frame){
	    .opcode = (enum ws_opcode)(data[0] & HEAD_OPCODE), .payload = data + head, .n = len};
	*used = head + len;
	return 1;
}
