/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From pairs of numbers to numbers; grows, forgets nothing. All zero is an empty one. */
#ifndef OLTP_CHECK_MAP_H
#define OLTP_CHECK_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_entry {
	uint64_t a, b;
	uint32_t value;
	uint32_t is_used;
};

struct map {
	struct map_entry *entries;
	size_t n, room;		/* room: 0 or a power of two */
};

/* NULL: not there. Good until the next map_put. */
uint32_t *map_get(const struct map *map, uint64_t a, uint64_t b);

/* The pair must not be there. Error: -ENOMEM. */
int map_put(struct map *map, uint64_t a, uint64_t b, uint32_t value, uint32_t **ret_value);

void map_free(struct map *map);

#endif
