/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contents of a record's fields, for writing and for checking them. */
#ifndef BENCH_YCSB_RECORD_H
#define BENCH_YCSB_RECORD_H

#include <string.h>

#include "oltp-engine/src/base/random.h"
#include "ycsb.h"

/* A field: 8 bytes of stamp, then the pattern word over and over; the last copy is cut short. */
static inline uint64_t ycsb_pattern_base(uint64_t key, uint32_t field)
{
	return random64_mix(key * YCSB_FIELDS + field);
}

/* base: that of the key and the field. */
static inline void ycsb_field_fill(uint8_t *bytes, uint64_t base, uint64_t stamp)
{
	const uint64_t pattern = base + stamp * 0x9e3779b97f4a7c15ull;
	const uint64_t pair[2] = { pattern, pattern };
	uint32_t at = sizeof(stamp);

	memcpy(bytes, &stamp, sizeof(stamp));
	for (; at + sizeof(pair) <= YCSB_FIELD_BYTES; at += sizeof(pair))
		memcpy(bytes + at, pair, sizeof(pair));
	memcpy(bytes + at, pair, YCSB_FIELD_BYTES - at);
}

static inline void ycsb_field_write(uint8_t *bytes, uint64_t key, uint32_t field, uint64_t stamp)
{
	ycsb_field_fill(bytes, ycsb_pattern_base(key, field), stamp);
}

static inline uint64_t ycsb_field_stamp(const uint8_t *bytes)
{
	uint64_t stamp;

	memcpy(&stamp, bytes, sizeof(stamp));
	return stamp;
}

/* As it is inserted. */
static inline void ycsb_record_init(struct ycsb_record *record, uint64_t key)
{
	record->updates = 0;
	for (uint32_t f = 0; f < YCSB_FIELDS; f++)
		ycsb_field_write(record->fields[f], key, f, 0);
}

/* The weight of a key in the order-independent sum of updates (V2). */
static inline uint64_t ycsb_key_weight(uint64_t key)
{
	return random64_mix(key ^ 0x6a09e667f3bcc909ull);
}

#endif
