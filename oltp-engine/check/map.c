// SPDX-License-Identifier: GPL-2.0-or-later
/* See map.h: open addressing, at most half full. */
#include <errno.h>
#include <stdlib.h>

#include "map.h"

#define ROOM_FIRST	64u

static size_t slot_of(const struct map *map, uint64_t a, uint64_t b)
{
	uint64_t hash = a * 0x9e3779b97f4a7c15ull ^ (b + 0x632be59bd9b4e019ull);

	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
	return (size_t)(hash ^ hash >> 32) & (map->room - 1);
}

static struct map_entry *entry_of(const struct map *map, uint64_t a, uint64_t b)
{
	size_t slot = slot_of(map, a, b);

	while (map->entries[slot].is_used &&
	       (map->entries[slot].a != a || map->entries[slot].b != b))
		slot = (slot + 1) & (map->room - 1);
	return &map->entries[slot];
}

uint32_t *map_get(const struct map *map, uint64_t a, uint64_t b)
{
	struct map_entry *entry = map->room ? entry_of(map, a, b) : NULL;

	return entry && entry->is_used ? &entry->value : NULL;
}

static int grow(struct map *map)
{
	struct map grown = { NULL, map->n, map->room ? map->room * 2 : ROOM_FIRST };

	grown.entries = calloc(grown.room, sizeof(*grown.entries));
	if (!grown.entries)
		return -ENOMEM;
	for (size_t i = 0; i < map->room; i++) {
		const struct map_entry *entry = &map->entries[i];

		if (entry->is_used)
			*entry_of(&grown, entry->a, entry->b) = *entry;
	}
	free(map->entries);
	*map = grown;
	return 0;
}

int map_put(struct map *map, uint64_t a, uint64_t b, uint32_t value, uint32_t **ret_value)
{
	struct map_entry *entry;

	if (map->n >= map->room / 2 && grow(map))
		return -ENOMEM;
	entry = entry_of(map, a, b);
	*entry = (struct map_entry){ a, b, value, 1 };
	map->n++;
	if (ret_value)
		*ret_value = &entry->value;
	return 0;
}

void map_free(struct map *map)
{
	free(map->entries);
	*map = (struct map){ 0 };
}
