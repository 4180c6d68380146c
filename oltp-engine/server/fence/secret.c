// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/fence/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "oltp-engine/server/auth/hmac.h"

static void put_hex(const uint8_t *bytes, size_t n, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret_hex++ = digits[bytes[i] >> 4];
		*ret_hex++ = digits[bytes[i] & 15];
	}
	*ret_hex = '\0';
}

void fence_seal(const struct secret *secret, const char *text, char ret_hex[FENCE_HEX + 1])
{
	const struct hmac_part part = { text, strlen(text) };
	uint8_t digest[HMAC_BYTES];

	_Static_assert(2 * HMAC_BYTES == FENCE_HEX, "digits of a seal");
	hmac_sha256(secret->bytes, secret->n, &part, 1, digest);
	put_hex(digest, sizeof(digest), ret_hex);
}

bool fence_seal_fits(const struct secret *secret, const char *text, const char *hex)
{
	char seal[FENCE_HEX + 1];

	fence_seal(secret, text, seal);
	return strlen(hex) == FENCE_HEX && hmac_is_same(seal, hex, FENCE_HEX);
}

int fence_nonce(char ret_hex[FENCE_HEX + 1])
{
	uint8_t bytes[FENCE_HEX / 2];

	/* Up to 256 bytes come whole, or not at all. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	put_hex(bytes, sizeof(bytes), ret_hex);
	return 0;
}
