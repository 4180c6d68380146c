/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chance of tests: the same seed makes the same test. */
#ifndef TESTS_LIB_CHANCE_H
#define TESTS_LIB_CHANCE_H

#include <stdint.h>

/* One step of a linear congruential generator (MMIX); its high bits are the good ones. */
static inline uint64_t chance_step(uint64_t *state)
{
	return *state = *state * 6364136223846793005ull + 1442695040888963407ull;
}

/* For tests with one thread: each file has a state of its own, which it may set. */
static uint64_t chance;

/* From 0 to below - 1. */
static inline uint32_t roll(uint32_t below)
{
	return (uint32_t)((chance_step(&chance) >> 33) % below);
}

#endif
