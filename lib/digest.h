/*
 * digest: SHA-256 and random identifiers, from OpenSSL. sbxd and sbxctl; of drivers only what
 * digest.c has.
 */
#ifndef SBXD_LIB_DIGEST_H
#define SBXD_LIB_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_LEN 32

struct digest_part {
	const void *data;
	size_t len;
};

/* SHA-256 over the parts, one after the other. 0 or -EIO when OpenSSL fails. */
int digest_sha256(const struct digest_part *parts, size_t count, uint8_t out[DIGEST_LEN]);

/* Lowercase hex of n bytes, NUL-terminated, into out[2n+1]. */
void digest_hex(const uint8_t *bytes, size_t n, char *out);

/* n cryptographically random bytes. 0 or -EIO. */
int digest_random(void *out, size_t n);

/* Random bytes drawn ahead, for those who need a few at a time. Starts out as all zero. */
struct digest_stock {
	uint8_t bytes[256];
	size_t left; /* at the end of bytes */
};

/* As digest_random(), from a stock; n is at most its size. Given bytes are forgotten. */
int digest_draw(struct digest_stock *stock, void *out, size_t n);

/* True when both hold the same n bytes; the time taken does not depend on where they differ. */
int digest_equal(const void *a, const void *b, size_t n);

#endif
