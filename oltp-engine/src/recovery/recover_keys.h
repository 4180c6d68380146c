/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of (table, key), for what recovery has to remember. */
#ifndef OLTP_RECOVER_KEYS_H
#define OLTP_RECOVER_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recover_key {
	uint64_t key;
	uint32_t table;
	bool is_used;
};

/* All zero: empty. */
struct recover_keys {
	struct recover_key *slots;	/* open addressing; room is a power of two */
	size_t n, room;
};

/* What is there already stays. Errors: -ENOMEM. */
int recover_keys_add(struct recover_keys *keys, uint32_t table, uint64_t key);
void recover_keys_remove(struct recover_keys *keys, uint32_t table, uint64_t key);

/* NULL: empty. */
const struct recover_key *recover_keys_any(const struct recover_keys *keys);

void recover_keys_finish(struct recover_keys *keys);

#endif
