/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checksums of what is on disk: a fast one for cold records, CRC-32C for the log's files. */
#ifndef OLTP_CHECKSUM_H
#define OLTP_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A checksum against disks that return other bytes than were written. Four lanes, so that the
 * multiplications overlap; every step is a bijection of the lane for a given word and of the word
 * for a given lane, so a single changed word always changes the sum. No defence against intent.
 */
static inline uint64_t checksum_step(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0x9fb21c651e98df25ull;
	return lane << 29 | lane >> 35;
}

static inline uint64_t checksum(const void *data, size_t bytes, uint64_t seed)
{
	uint64_t lanes[4] = { seed, seed + 1, seed + 2, seed + 3 };
	const uint8_t *at = data;
	uint64_t words[4], sum = bytes;

	for (; bytes >= sizeof(words); bytes -= sizeof(words), at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (int i = 0; i < 4; i++)
			lanes[i] = checksum_step(lanes[i], words[i]);
	}
	memset(words, 0, sizeof(words));
	memcpy(words, at, bytes);
	for (int i = 0; i < 4; i++) {
		lanes[i] = checksum_step(lanes[i], words[i]);
		sum = checksum_step(sum, lanes[i]);
	}
	return sum ^ sum >> 32;
}

/* CRC-32C (Castagnoli, RFC 3720): what the log's files are checked with. */

/*
 * Continues the checksum crc with more data; 0 begins a new one. In pieces the result is the same
 * as in one: crc32c(crc32c(0, "ab", 2), "c", 1) == crc32c(0, "abc", 3).
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

/* Of a structure with a checksum field at the offset, which counts as 0. */
uint32_t crc32c_without(const void *data, size_t bytes, size_t offset);

#endif
