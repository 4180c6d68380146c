/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hmac.h - HMAC-SHA-256 (RFC 2104): proofs that two programs have the same secret. No I/O, no
 * allocation.
 */
#ifndef OLTP_AUTH_HMAC_H
#define OLTP_AUTH_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HMAC_BYTES	32u

/* Bytes that follow each other in what is authenticated. */
struct hmac_part {
	const void *bytes;
	size_t n;
};

void hmac_sha256(const void *key, size_t key_bytes, const struct hmac_part *parts, size_t n_parts,
		 uint8_t ret[HMAC_BYTES]);

/* Whether n bytes are the same; takes the same time wherever they differ. */
bool hmac_is_same(const void *a, const void *b, size_t n);

#endif
