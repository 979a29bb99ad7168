/* digest: SHA-256 and random identifiers, from OpenSSL. Holds no state of ours. */
#include "lib/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

static void md_ctx_free(EVP_MD_CTX **ctx)
{
	EVP_MD_CTX_free(*ctx);
}

int digest_sha256(const struct digest_part *parts, size_t count, uint8_t out[DIGEST_LEN])
{
	__attribute__((cleanup(md_ctx_free))) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t sum[EVP_MAX_MD_SIZE];

	if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		return -EIO;
	for (size_t i = 0; i < count; i++) {
		if (EVP_DigestUpdate(ctx, parts[i].data, parts[i].len) != 1)
			return -EIO;
	}
	if (EVP_DigestFinal_ex(ctx, sum, NULL) != 1)
		return -EIO;
	for (size_t i = 0; i < DIGEST_LEN; i++)
		out[i] = sum[i];
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
