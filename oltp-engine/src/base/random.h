/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The random generator (splitmix64), one for each thread that draws; not for secrets. */
#ifndef OLTP_RANDOM_H
#define OLTP_RANDOM_H

#include <stdint.h>

struct random64 {
	uint64_t state;
};

static inline uint64_t random64_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The inverse of random64_mix. The factors are the inverses modulo 2^64. */
static inline uint64_t random64_unmix(uint64_t x)
{
	x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3ull;
	x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089ull;
	return x ^ x >> 30 ^ x >> 60;
}

static inline uint64_t random64_next(struct random64 *random)
{
	random->state += 0x9e3779b97f4a7c15ull;
	return random64_mix(random->state);
}

/* Uniform in [0, 1). */
static inline double random64_unit(struct random64 *random)
{
	return (double)(random64_next(random) >> 11) * 0x1p-53;
}

/* Uniform in [0, n), n <= 2^32; the bias is below n / 2^64. */
static inline uint64_t random64_below(struct random64 *random, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)random64_next(random) * n) >> 64);
}

#endif
