// SPDX-License-Identifier: GPL-2.0-or-later
/* See oldest.h. */
#include <stdlib.h>

#include "oldest.h"

static int compare_records(const void *a, const void *b)
{
	const struct oldest_record *x = a, *y = b;

	return compare_u64(&x->stamp, &y->stamp);
}

static void block_look(struct oltp_engine *engine, struct random64 *random, struct block *block,
		       struct oldest *oldest)
{
	uint64_t used[SLOT_WORDS_MAX];

	storage_block_look(block, used);
	for (uint32_t k = 0; k < OLDEST_SLOTS; k++) {
		uint32_t slot = (uint32_t)random64_below(random, block->n_slots);
		uint64_t word;

		if (!(used[slot / 64] >> slot % 64 & 1))
			continue;
		word = atomic_load_explicit(&table_record(block, slot)->lock,
					    memory_order_relaxed);
		oldest->records[oldest->n++] = (struct oldest_record){
			.stamp = word & LOCK_HELD ? epoch_now(&engine->epoch) : lock_stamp(word),
			.table = block->table->id,
		};
	}
}

void oldest_look(struct oltp_engine *engine, struct random64 *random, struct block **blocks,
		 size_t n, struct oldest *ret_oldest)
{
	ret_oldest->n = 0;
	ret_oldest->bytes_each = n * OLTP_MEM_BLOCK_BYTES / (OLDEST_BLOCKS * OLDEST_SLOTS);
	for (uint32_t i = 0; n && i < OLDEST_BLOCKS; i++)
		block_look(engine, random, blocks[random64_below(random, n)], ret_oldest);
	qsort(ret_oldest->records, ret_oldest->n, sizeof(*ret_oldest->records), compare_records);
}

uint64_t oldest_threshold(const struct oldest *oldest, double share)
{
	if (!oldest->n || share >= 1)
		return OLDEST_ANY_AGE;
	return oldest->records[(uint32_t)(share * oldest->n)].stamp;
}

uint64_t oldest_of_table(const struct oldest *oldest, uint32_t table, uint64_t threshold,
			 uint64_t *ret_median)
{
	uint32_t n_old = 0, at = 0;

	*ret_median = threshold;
	for (uint32_t i = 0; i < oldest->n && oldest->records[i].stamp <= threshold; i++)
		n_old += oldest->records[i].table == table;
	for (uint32_t i = 0, left = n_old / 2; n_old && at <= left; i++) {
		if (oldest->records[i].table != table)
			continue;
		*ret_median = oldest->records[i].stamp;
		at++;
	}
	return n_old * oldest->bytes_each;
}

bool oldest_is(const struct record *record, uint64_t threshold)
{
	uint64_t word = atomic_load_explicit(&record->lock, memory_order_relaxed);

	return !(word & LOCK_HELD) && lock_stamp(word) <= threshold;
}
