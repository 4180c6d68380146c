// SPDX-License-Identifier: GPL-2.0-or-later
/* See layout.h. */
#include "oltp-engine/server/kv/layout.h"

const uint32_t keyspace_class_bytes[KEYSPACE_CLASSES] = { 240, 496, 1008, 2032, 4080, 8176, 16912 };

_Static_assert(KV_NAME_MAX + KV_VALUE_MAX <= 16912, "the last class holds all");

static uint8_t place_of(uint32_t out_bytes)
{
	uint8_t place = 0;

	if (out_bytes == 0)
		return 0;
	while (keyspace_class_bytes[place] < out_bytes)
		place++;
	return (uint8_t)(place + 1);
}

struct layout layout_of(uint8_t type, uint32_t name_bytes, uint32_t value_bytes)
{
	uint32_t room = type == ROW_HASH ? HASH_HEAD_AT : ROW_BODY_BYTES;
	struct layout layout = {
		.is_name_out = name_bytes > room,
		.is_value_out = name_bytes + value_bytes > room,
	};

	if (layout.is_name_out)
		layout.out_bytes = name_bytes;
	if (layout.is_value_out)
		layout.out_bytes += value_bytes;
	layout.place = place_of(layout.out_bytes);
	return layout;
}

uint32_t keyspace_value_record_bytes(enum row_type type, uint32_t name_bytes,
				     uint32_t value_bytes)
{
	struct layout layout = layout_of((uint8_t)type, name_bytes, value_bytes);

	if (type == ROW_HASH || layout.is_name_out || !layout.is_value_out)
		return 0;
	return keyspace_class_bytes[layout.place - 1];
}
