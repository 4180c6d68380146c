/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): a hash of 64 bits
 * with a secret: only who knows the secret can choose names that collide.
 */
#ifndef OLTP_KV_SIPHASH_H
#define OLTP_KV_SIPHASH_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

struct siphash {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t siphash_rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void siphash_round(struct siphash *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
	s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
	s->v0 = siphash_rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
	s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
	s->v2 = siphash_rotate(s->v2, 32);
}

static inline void siphash_word(struct siphash *s, uint64_t word)
{
	s->v3 ^= word;
	siphash_round(s);
	siphash_round(s);
	s->v0 ^= word;
}

static inline uint64_t siphash_load(const void *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

/* Begins with secret; siphash_word may then take words in front of the bytes. */
static inline void siphash_begin(struct siphash *s, const uint64_t secret[2])
{
	s->v0 = secret[0] ^ 0x736f6d6570736575ull;
	s->v1 = secret[1] ^ 0x646f72616e646f6dull;
	s->v2 = secret[0] ^ 0x6c7967656e657261ull;
	s->v3 = secret[1] ^ 0x7465646279746573ull;
}

/* The hash of all words so far and these last n bytes. n_words: words that came before. */
static inline uint64_t siphash_end(struct siphash *s, const void *bytes, uint32_t n,
				   uint32_t n_words)
{
	const uint8_t *at = bytes, *end = at + (n & ~7u);
	uint64_t last = (uint64_t)(n + 8 * n_words) << 56;

	for (; at < end; at += 8)
		siphash_word(s, siphash_load(at));
	for (uint32_t i = 0; i < (n & 7); i++)
		last |= (uint64_t)at[i] << (8 * i);
	siphash_word(s, last);
	s->v2 ^= 0xff;
	siphash_round(s);
	siphash_round(s);
	siphash_round(s);
	siphash_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
