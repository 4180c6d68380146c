// SPDX-License-Identifier: GPL-2.0-or-later
/* See tpcc_random.h. */
#include <string.h>

#include "tpcc_random.h"

#define ORIGINAL	"ORIGINAL"
#define ORIGINAL_BYTES	(sizeof(ORIGINAL) - 1)

struct tpcc_nurand tpcc_nurand_load(struct random64 *random)
{
	return (struct tpcc_nurand){
		.c_last = tpcc_uniform(random, 0, 255),
		.c_id = tpcc_uniform(random, 0, 1023),
		.item = tpcc_uniform(random, 0, 8191),
	};
}

/* 2.1.6.1: how far the C of last names may be from that of the load. */
static bool delta_is_valid(uint32_t delta)
{
	return delta >= 65 && delta <= 119 && delta != 96 && delta != 112;
}

struct tpcc_nurand tpcc_nurand_run(struct random64 *random, const struct tpcc_nurand *load)
{
	struct tpcc_nurand run = tpcc_nurand_load(random);

	do {
		run.c_last = tpcc_uniform(random, 0, 255);
	} while (!delta_is_valid(run.c_last > load->c_last ? run.c_last - load->c_last :
							     load->c_last - run.c_last));
	return run;
}

void tpcc_last_name(uint32_t number, char ret_name[16])
{
	static const char syllables[10][6] = { "BAR", "OUGHT", "ABLE", "PRI", "PRES",
					       "ESE", "ANTI", "CALLY", "ATION", "EING" };
	const uint32_t digits[3] = { number / 100 % 10, number / 10 % 10, number % 10 };
	size_t at = 0;

	memset(ret_name, 0, 16);
	for (uint32_t i = 0; i < 3; i++) {
		size_t bytes = strlen(syllables[digits[i]]);

		memcpy(ret_name + at, syllables[digits[i]], bytes);
		at += bytes;
	}
}

void tpcc_letters(struct random64 *random, uint32_t from, uint32_t to, char *ret, uint32_t room)
{
	static const char letters[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	uint32_t n = tpcc_uniform(random, from, to);
	uint64_t bits = 0;

	/* Eight from each number drawn: a customer has some 400 of them. */
	for (uint32_t i = 0; i < n; i++, bits >>= 8) {
		if (i % 8 == 0)
			bits = random64_next(random);
		ret[i] = letters[(bits & 0xff) * (sizeof(letters) - 1) >> 8];
	}
	memset(ret + n, 0, room - n);
}

void tpcc_digits(struct random64 *random, uint32_t n, char *ret)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (char)('0' + random64_below(random, 10));
}

void tpcc_zip(struct random64 *random, char ret_zip[9])
{
	tpcc_digits(random, 4, ret_zip);
	memcpy(ret_zip + 4, "11111", 5);
}

void tpcc_original_data(struct random64 *random, char ret_data[50])
{
	uint32_t bytes;

	tpcc_letters(random, 26, 50, ret_data, 50);
	if (random64_below(random, 10))
		return;
	bytes = (uint32_t)strnlen(ret_data, 50);
	memcpy(ret_data + tpcc_uniform(random, 0, bytes - ORIGINAL_BYTES), ORIGINAL,
	       ORIGINAL_BYTES);
}

bool tpcc_is_original(const char data[50])
{
	const char *at = data, *end = data + 50 - ORIGINAL_BYTES;

	/* The first letter is rare, so this is faster than memmem() for a text this short. */
	while ((at = memchr(at, ORIGINAL[0], (size_t)(end - at) + 1))) {
		if (!memcmp(at, ORIGINAL, ORIGINAL_BYTES))
			return true;
		if (at++ == end)
			break;
	}
	return false;
}
