// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CRC-32C with the processor's own instruction where there is one. The instruction takes three
 * cycles, but a new one can begin in each cycle. So three lanes are computed at once, and tables
 * combine their checksums: they advance a checksum over as many zeros as a lane is long.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "checksum.h"

#define POLYNOMIAL	0x82f63b78u	/* its bits reversed */
#define LANE_BYTES	1024u

static uint32_t byte_table[256];
static uint32_t lane_table[4][256];	/* a checksum after LANE_BYTES zeros, by its bytes */
static bool has_instruction;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t step(uint32_t crc, uint8_t byte)
{
	return crc >> 8 ^ byte_table[(crc ^ byte) & 0xff];
}

static void init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		byte_table[i] = crc;
	}
	for (int at = 0; at < 4; at++) {
		for (uint32_t i = 1; i < 256; i++) {
			uint32_t rest = i & (i - 1), crc = i << 8 * at;

			/*
			 * CRC is linear: the value for several bits is the XOR of the values for
			 * each of them.
			 */
			for (uint32_t n = 0; !rest && n < LANE_BYTES; n++)
				crc = step(crc, 0);
			lane_table[at][i] = rest ? lane_table[at][rest] ^ lane_table[at][i ^ rest] :
						   crc;
		}
	}
#if defined(__x86_64__)
	has_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t bytes)
{
	for (; bytes; bytes--)
		crc = step(crc, *at++);
	return crc;
}

#if defined(__x86_64__)
static uint32_t over_lane(uint32_t crc)
{
	return lane_table[0][crc & 0xff] ^ lane_table[1][crc >> 8 & 0xff] ^
	       lane_table[2][crc >> 16 & 0xff] ^ lane_table[3][crc >> 24];
}

static uint64_t word(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

__attribute__((target("sse4.2")))
static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t bytes)
{
	uint64_t a = crc;

	for (; bytes >= 3 * LANE_BYTES; bytes -= 3 * LANE_BYTES, at += 3 * LANE_BYTES) {
		uint64_t b = 0, c = 0;

		for (size_t i = 0; i < LANE_BYTES; i += 8) {
			a = __builtin_ia32_crc32di(a, word(at + i));
			b = __builtin_ia32_crc32di(b, word(at + LANE_BYTES + i));
			c = __builtin_ia32_crc32di(c, word(at + 2 * LANE_BYTES + i));
		}
		a = over_lane(over_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	for (; bytes >= 8; bytes -= 8, at += 8)
		a = __builtin_ia32_crc32di(a, word(at));
	crc = (uint32_t)a;
	for (; bytes; bytes--)
		crc = __builtin_ia32_crc32qi(crc, *at++);
	return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
	pthread_once(&once, init);
#if defined(__x86_64__)
	if (has_instruction)
		return ~by_instruction(~crc, data, bytes);
#endif
	return ~by_table(~crc, data, bytes);
}

uint32_t crc32c_without(const void *data, size_t bytes, size_t offset)
{
	const uint8_t *at = data;
	const uint32_t zero = 0;
	uint32_t crc = crc32c(0, at, offset);

	crc = crc32c(crc, &zero, sizeof(zero));
	return crc32c(crc, at + offset + sizeof(zero), bytes - offset - sizeof(zero));
}
