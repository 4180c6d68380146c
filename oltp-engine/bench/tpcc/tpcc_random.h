/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random values as the TPC-C specification wants them: sections 2.1.6, 4.3.2. */
#ifndef BENCH_TPCC_RANDOM_H
#define BENCH_TPCC_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/random.h"
#include "oltp-engine/src/base/tpcc_scale.h"

/* Constants C of NURand, drawn once for a database and its run (2.1.6.1). */
struct tpcc_nurand {
	uint32_t c_last;	/* 0 to 255 */
	uint32_t c_id;		/* 0 to 1023 */
	uint32_t item;		/* 0 to 8191 */
};

/* For filling the tables; tpcc_nurand_run then makes the ones for the run from them. */
struct tpcc_nurand tpcc_nurand_load(struct random64 *random);
struct tpcc_nurand tpcc_nurand_run(struct random64 *random, const struct tpcc_nurand *load);

/* Both ends included. */
static inline uint32_t tpcc_uniform(struct random64 *random, uint32_t from, uint32_t to)
{
	return from + (uint32_t)random64_below(random, (uint64_t)to - from + 1);
}

static inline uint32_t tpcc_nurand_draw(struct random64 *random, uint32_t a, uint32_t c,
					uint32_t from, uint32_t to)
{
	uint32_t bits = tpcc_uniform(random, 0, a) | tpcc_uniform(random, from, to);

	return (bits + c) % (to - from + 1) + from;
}

/* number below TPCC_LAST_NAMES; the rest of the 16 bytes is zero. */
void tpcc_last_name(uint32_t number, char ret_name[16]);

/*
 * Strings of random length, from and to included; the rest up to room is zero. Letters and digits,
 * or digits alone.
 */
void tpcc_letters(struct random64 *random, uint32_t from, uint32_t to, char *ret,
		  uint32_t room);
void tpcc_digits(struct random64 *random, uint32_t n, char *ret);

/* Four digits and "11111". */
void tpcc_zip(struct random64 *random, char ret_zip[9]);

/* 26 to 50 letters and digits, "ORIGINAL" among them in one of ten. */
void tpcc_original_data(struct random64 *random, char ret_data[50]);
bool tpcc_is_original(const char data[50]);

#endif
