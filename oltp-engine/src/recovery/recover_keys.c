// SPDX-License-Identifier: GPL-2.0-or-later
/* See recover_keys.h. */
#include <errno.h>
#include <stdlib.h>

#include "oltp-engine/src/index/index.h"
#include "recover_keys.h"

#define ROOM_FIRST	64u

static size_t home_of(const struct recover_keys *keys, uint32_t table, uint64_t key)
{
	return index_hash(key ^ (uint64_t)table << 48) & (keys->room - 1);
}

/* Where it is, or where it would go. */
static size_t slot_of(const struct recover_keys *keys, uint32_t table, uint64_t key)
{
	size_t at = home_of(keys, table, key);

	while (keys->slots[at].is_used &&
	       (keys->slots[at].key != key || keys->slots[at].table != table))
		at = (at + 1) & (keys->room - 1);
	return at;
}

static int grow(struct recover_keys *keys)
{
	struct recover_keys larger = { .room = keys->room ? keys->room * 2 : ROOM_FIRST,
				       .n = keys->n };

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < keys->room; i++) {
		const struct recover_key *slot = &keys->slots[i];

		if (slot->is_used)
			larger.slots[slot_of(&larger, slot->table, slot->key)] = *slot;
	}
	free(keys->slots);
	*keys = larger;
	return 0;
}

int recover_keys_add(struct recover_keys *keys, uint32_t table, uint64_t key)
{
	struct recover_key *slot;

	if (keys->n >= keys->room / 2) {
		int rc = grow(keys);

		if (rc)
			return rc;
	}
	slot = &keys->slots[slot_of(keys, table, key)];
	keys->n += !slot->is_used;
	*slot = (struct recover_key){ key, table, true };
	return 0;
}

void recover_keys_remove(struct recover_keys *keys, uint32_t table, uint64_t key)
{
	size_t mask = keys->room - 1, hole, at;

	if (!keys->n)
		return;
	hole = slot_of(keys, table, key);
	if (!keys->slots[hole].is_used)
		return;
	keys->n--;
	/* Those behind move up, unless they would then be before where they are looked for. */
	for (at = (hole + 1) & mask; keys->slots[at].is_used; at = (at + 1) & mask) {
		size_t home = home_of(keys, keys->slots[at].table, keys->slots[at].key);

		if (((at - home) & mask) >= ((at - hole) & mask)) {
			keys->slots[hole] = keys->slots[at];
			hole = at;
		}
	}
	keys->slots[hole].is_used = false;
}

const struct recover_key *recover_keys_any(const struct recover_keys *keys)
{
	for (size_t i = 0; i < keys->room; i++) {
		if (keys->slots[i].is_used)
			return &keys->slots[i];
	}
	return NULL;
}

void recover_keys_finish(struct recover_keys *keys)
{
	free(keys->slots);
	*keys = (struct recover_keys){ 0 };
}
