/* identity: who a box belongs to. sbxd and sbxctl; holds no state. */
#include "lib/identity.h"

#include <string.h>

#define ABSENT_USER "None"

static void put_u64(uint8_t out[8], uint64_t v)
{
	for (int i = 0; i < 8; i++)
		out[i] = (uint8_t)(v >> (8 * i));
}

static int scope_token(const char *user, const char *thread, char out[IDENTITY_TOKEN_LEN])
{
	const char *name = user ? user : ABSENT_USER;
	const struct digest_part parts[] = {
	    {name, strlen(name)}, {":", 1}, {thread, strlen(thread)}};
	uint8_t sum[DIGEST_LEN];
	int rc = digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), sum);

	if (rc == 0)
		digest_hex(sum, (IDENTITY_TOKEN_LEN - 1) / 2, out);
	return rc;
}

/* A flag byte, then each text behind its length: no two pairs give the same bytes. */
static int scope_digest(const char *user, const char *thread, uint8_t out[DIGEST_LEN])
{
	uint8_t present = user != NULL;
	uint8_t user_len[8];
	uint8_t thread_len[8];
	const struct digest_part parts[] = {
	    {&present, 1},
	    {user_len, sizeof(user_len)},
	    {user ? user : "", user ? strlen(user) : 0},
	    {thread_len, sizeof(thread_len)},
	    {thread, strlen(thread)},
	};

	put_u64(user_len, parts[2].len);
	put_u64(thread_len, parts[4].len);
	return digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), out);
}

int identity_scope(const char *user, const char *thread, struct identity *out)
{
	struct identity id;
	int rc = scope_token(user, thread, id.token);

	if (rc == 0)
		rc = scope_digest(user, thread, id.digest);
	if (rc == 0)
		*out = id;
	return rc;
}
