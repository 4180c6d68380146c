/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers that are the same for the same seed. */
#ifndef EBB_UTIL_RANDOM_H
#define EBB_UTIL_RANDOM_H

#include <stdint.h>

/* A 64-bit mixer over a counter: each seed has a sequence, which repeats after 2^64 numbers. */
static inline uint64_t ebb_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* Evenly between 0 and 1, without either: its logarithm is finite. */
static inline double ebb_random_unit(uint64_t *state)
{
	return ((double)(ebb_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

#endif
