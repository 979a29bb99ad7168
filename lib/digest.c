/* digest: SHA-256 and random identifiers, from OpenSSL. Holds no state of ours. */
/* The plain functions: on the way of every acquire, EVP would allocate, lock and look up. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "lib/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
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

int digest_random(void *out, size_t n)
{
	return RAND_bytes(out, (int)n) == 1 ? 0 : -EIO;
}

int digest_draw(struct digest_stock *stock, void *out, size_t n)
{
	uint8_t *from;

	if (stock->left < n) {
		stock->left = 0;
		if (digest_random(stock->bytes, sizeof(stock->bytes)) < 0)
			return -EIO;
		stock->left = sizeof(stock->bytes);
	}
	from = stock->bytes + sizeof(stock->bytes) - stock->left;
	memcpy(out, from, n);
	OPENSSL_cleanse(from, n);
	stock->left -= n;
	return 0;
}

int digest_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
