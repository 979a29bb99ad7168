/*
 * ws_client: the client's side of RFC 6455, as far as the service needs one: unfragmented frames
 * over a connection that httpc has upgraded. sbxctl; does no I/O.
 */
#ifndef SBXD_TOOLS_WS_CLIENT_H
#define SBXD_TOOLS_WS_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "wire/websocket.h"

#define WS_CLIENT_KEY_LEN 25U /* and its NUL */
#define WS_CLIENT_FRAME_MAX (256U * 1024U)

/* A fresh Sec-WebSocket-Key. 0 or -errno. */
int ws_client_key(char key[WS_CLIENT_KEY_LEN]);

/* Whether `accept` is the answer to that key. */
int ws_client_check(const char *key, const char *accept, struct err *err);

/* Appends a frame with a fresh mask. 0, -ENOBUFS, -ENOMEM or -errno. */
int ws_client_put(struct buf *out, enum ws_opcode opcode, const void *payload, size_t n)
    __attribute__((warn_unused_result));

struct ws_client_frame {
	enum ws_opcode opcode;
	const uint8_t *payload; /* inside data */
	size_t n;
};

/*
 * Reads the frame that data begins with. 1: *frame, and how many bytes it took in *used; 0: more
 * must come; -EBADMSG with *err: it is none that the service may send.
 */
int ws_client_next(
    const uint8_t *data, size_t n, size_t *used, struct ws_client_frame *frame, struct err *err);

#endif
