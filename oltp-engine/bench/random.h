/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small random generator (splitmix64), one per thread; for workloads, not for secrets. */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

struct bench_random {
	uint64_t state;
};

static inline uint64_t bench_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The x of which bench_mix(x) is this: the factors are the inverses modulo 2^64. */
static inline uint64_t bench_unmix(uint64_t x)
{
	x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3ull;
	x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089ull;
	return x ^ x >> 30 ^ x >> 60;
}

static inline uint64_t bench_random_next(struct bench_random *random)
{
	random->state += 0x9e3779b97f4a7c15ull;
	return bench_mix(random->state);
}

/* Uniform in [0, 1). */
static inline double bench_random_unit(struct bench_random *random)
{
	return (double)(bench_random_next(random) >> 11) * 0x1p-53;
}

/* Uniform in [0, n), n <= 2^32; the bias is below n / 2^64. */
static inline uint64_t bench_random_below(struct bench_random *random, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)bench_random_next(random) * n) >> 64);
}

#endif
