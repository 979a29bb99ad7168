/* digest_random: random identifiers, from OpenSSL. Apart from digest.c: what a static program would
 * have to take in with it is large. */
#include "lib/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <string.h>

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
