// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/auth/hmac.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>

_Static_assert(HMAC_BYTES == SHA256_DIGEST_SIZE, "of SHA-256");

void hmac_sha256(const void *key, size_t key_bytes, const struct hmac_part *parts, size_t n_parts,
		 uint8_t ret[HMAC_BYTES])
{
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, key_bytes, key);
	for (size_t i = 0; i < n_parts; i++)
		hmac_sha256_update(&ctx, parts[i].n, parts[i].bytes);
	hmac_sha256_digest(&ctx, HMAC_BYTES, ret);
}

bool hmac_is_same(const void *a, const void *b, size_t n)
{
	return memeql_sec(a, b, n);
}
