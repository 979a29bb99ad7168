/*
 * websocket_handshake: a request that wants to become a WebSocket, RFC 6455, 4.2. Any process;
 * holds no state.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* only the digest's own functions are small to link */

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "wire/websocket.h"

#define WS_KEY_BYTES 16U
#define WS_KEY_LEN 24U
#define WS_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static bool ws_key_is_good(const char *key)
{
	size_t n = 0;
	uint8_t *bytes;

	if (strlen(key) != WS_KEY_LEN)
		return false;
	bytes = base64_decode(key, WS_KEY_LEN, &n);
	free(bytes);
	return bytes && n == WS_KEY_BYTES;
}

void ws_put_accept(const char *key, char out[WS_ACCEPT_LEN])
{
	uint8_t digest[SHA_DIGEST_LENGTH];
	SHA_CTX sha;

	/* None of them can fail: nothing is allocated. */
	(void)SHA1_Init(&sha);
	(void)SHA1_Update(&sha, key, WS_KEY_LEN);
	(void)SHA1_Update(&sha, WS_GUID, sizeof(WS_GUID) - 1);
	(void)SHA1_Final(digest, &sha);
	base64_encode(digest, sizeof(digest), out);
	out[WS_ACCEPT_LEN - 1] = '\0';
}

int ws_check_handshake(const struct http_head *h, char accept[WS_ACCEPT_LEN], struct err *err)
{
	if (!h->upgrade_websocket)
		return err_set(err, EPROTONOSUPPORT,
		    "this endpoint is a WebSocket: GET, with Connection: Upgrade and Upgrade: "
		    "websocket");
	if (strcmp(h->websocket_version, WS_VERSION) != 0)
		return err_set(
		    err, EPROTONOSUPPORT, "Sec-WebSocket-Version must be %s", WS_VERSION);
	if (!ws_key_is_good(h->websocket_key))
		return err_set(err, EINVAL, "Sec-WebSocket-Key must be %u bytes in base64",
		    (unsigned int)WS_KEY_BYTES);
	ws_put_accept(h->websocket_key, accept);
	return 0;
}
_Static_assert(WS_ACCEPT_LEN == (SHA_DIGEST_LENGTH / 3 + 1) * 4 + 1, "a digest in base64");
