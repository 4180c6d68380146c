// SPDX-License-Identifier: GPL-2.0-or-later
/* HMAC-SHA-256 of RFC 4231's test cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/server/auth/hmac.h"

struct vector {
	const void *key;
	size_t key_bytes;
	const char *text;
	const char *hex;
};

static void expect(const struct vector *v, size_t cut)
{
	const struct hmac_part parts[] = { { v->text, cut },
					   { v->text + cut, strlen(v->text) - cut } };
	char hex[2 * HMAC_BYTES + 1];
	uint8_t proof[HMAC_BYTES];

	hmac_sha256(v->key, v->key_bytes, parts, 2, proof);
	for (size_t i = 0; i < HMAC_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", proof[i]);
	assert_string_equal(hex, v->hex);
}

static void test_vectors(void **state)
{
	uint8_t long_key[131], key[20];
	const struct vector vectors[] = {
		{ key, sizeof(key), "Hi There",
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ "Jefe", 4, "what do ya want for nothing?",
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ long_key, sizeof(long_key),
		  "Test Using Larger Than Block-Size Key - Hash Key First",
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ long_key, sizeof(long_key),
		  "This is a test using a larger than block-size key and a larger than block-size "
		  "data. The key needs to be hashed before being used by the HMAC algorithm.",
		  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};

	(void)state;
	memset(key, 0x0b, sizeof(key));
	memset(long_key, 0xaa, sizeof(long_key));
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		for (size_t cut = 0; cut <= strlen(vectors[i].text); cut++)
			expect(&vectors[i], cut);
	}
}

static void test_same(void **state)
{
	uint8_t a[HMAC_BYTES] = { 1 }, b[HMAC_BYTES] = { 1 };

	(void)state;
	assert_true(hmac_is_same(a, b, HMAC_BYTES));
	b[HMAC_BYTES - 1] = 1;
	assert_false(hmac_is_same(a, b, HMAC_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
