/*
 * mcp_clip: output of any length in memory of a given size: its beginning and its end. sbx-mcp.
 */
#ifndef SBXD_TOOLS_MCP_CLIP_H
#define SBXD_TOOLS_MCP_CLIP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"

struct mcp_clip {
	struct buf head;
	uint8_t *tail; /* a ring of `half` bytes; NULL until the head is full */
	size_t half;
	uint64_t total; /* bytes that came */
};

/* Keeps about `max` bytes, at least 2. */
void mcp_clip_init(struct mcp_clip *c, size_t max);
void mcp_clip_free(struct mcp_clip *c);

/* Takes the next bytes. 0 or -ENOMEM. */
int mcp_clip_add(struct mcp_clip *c, const uint8_t *bytes, size_t n)
    __attribute__((warn_unused_result));

/* Bytes that mcp_clip_put() leaves out in the middle. */
uint64_t mcp_clip_left_out(const struct mcp_clip *c);

/*
 * Appends what was kept as valid UTF-8: characters are not cut, bytes that are none become U+FFFD,
 * and a line in the middle says how much was left out. 0, -ENOBUFS or -ENOMEM.
 */
int mcp_clip_put(const struct mcp_clip *c, struct buf *out) __attribute__((warn_unused_result));

/* Appends n bytes in the same way, whole. */
int mcp_put_text(struct buf *out, const uint8_t *bytes, size_t n)
    __attribute__((warn_unused_result));

#endif
