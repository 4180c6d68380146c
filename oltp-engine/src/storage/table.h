/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table: what it is, its hash index, and the slabs of its records. */
#ifndef OLTP_TABLE_H
#define OLTP_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/index/index.h"
#include "oltp-engine/src/index/record.h"
#include "oltp.h"
#include "storage.h"

struct oltp_table {
	struct oltp_engine *engine;
	uint32_t id;
	uint32_t record_bytes;	/* as the user sees it */
	uint32_t stride;	/* header and padding included; a multiple of the cache line */
	struct index index;
	_Atomic bool is_room_wanted;	/* somebody found few free slots in its blocks, or none */
	_Atomic uint64_t room_made;	/* free slots that there were when room was made last */
	/* A bit for each node on which it ever had a block: the slabs of others are empty. */
	_Atomic uint32_t slab_nodes;
	struct slab slabs[OLTP_NODES_MAX][SLAB_PARTS];
	/* Ordered indexes, set before the first record is. */
	uint32_t n_ordered;
	uint32_t n_keyed;	/* among them: not by primary key */
	uint32_t keyed_check;	/* of how their keys are made */
	uint32_t n_key_spans;
	struct oltp_index *ordered[OLTP_INDEXES_MAX];
	struct oltp_span key_spans[OLTP_INDEXES_MAX * OLTP_KEY_SPANS_MAX];
};

static inline struct record *table_record(const struct block *block, uint32_t slot)
{
	return (struct record *)(block->addr + (size_t)slot * block->table->stride);
}

#endif
