/* digest: SHA-256, from OpenSSL. Holds no state of ours. */
/* The plain functions: on the way of every acquire, EVP would allocate, lock and look up. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "lib/digest.h"

#include <errno.h>
#include <openssl/sha.h>
#include <string.h>

int digest_sha256(const struct digest_part *parts, size_t count, uint8_t out[DIGEST_LEN])
{
	uint8_t sum[DIGEST_LEN];
	SHA256_CTX ctx;

	if (SHA256_Init(&ctx) != 1)
		return -EIO;
	for (size_t i = 0; i < count; i++) {
		if (SHA256_Update(&ctx, parts[i].data, parts[i].len) != 1)
			return -EIO;
	}
	if (SHA256_Final(sum, &ctx) != 1)
		return -EIO;
	memcpy(out, sum, sizeof(sum));
	return 0;
}

void digest_hex(const uint8_t *bytes, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * n] = '\0';
}
