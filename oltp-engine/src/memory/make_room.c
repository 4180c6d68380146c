// SPDX-License-Identifier: GPL-2.0-or-later
/* See make_room.h. */
#include <stdlib.h>

#include "division.h"
#include "make_room.h"
#include "oldest.h"
#include "oltp-engine/src/base/baseline.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"
#include "rounds.h"

/* This part of all records is old, or more where more has to go. */
#define SHARE_OLD		(1.0 / BASELINE_OLD_PART)
/* Old records are more than have to go: with just as many every block would be looked through. */
#define SHARE_MARGIN		1.25

/* All blocks that hold records, those of each table together. */
struct by_table {
	struct block **blocks;
	size_t first[OLTP_TABLES_MAX + 1];	/* of table t: first[t] up to first[t + 1] */
};

static int compare_tables(const void *a, const void *b)
{
	const struct block *const *x = a, *const *y = b;

	return ((*x)->table->id > (*y)->table->id) - ((*x)->table->id < (*y)->table->id);
}

/* Errors: -ENOMEM. */
static int list_by_table(struct shrink *s, struct by_table *ret_by)
{
	size_t n_all, n = 0, at = 0;
	int rc = storage_blocks_list(&s->engine->storage, &ret_by->blocks, &n_all);

	if (rc)
		return rc;
	for (size_t i = 0; i < n_all; i++) {
		if (ret_by->blocks[i]->state == BLOCK_OPEN)
			ret_by->blocks[n++] = ret_by->blocks[i];
	}
	qsort(ret_by->blocks, n, sizeof(*ret_by->blocks), compare_tables);
	for (uint32_t t = 0; t <= OLTP_TABLES_MAX; t++) {
		while (at < n && ret_by->blocks[at]->table->id < t)
			at++;
		ret_by->first[t] = at;
	}
	return 0;
}

static size_t blocks_of(const struct by_table *by, const struct oltp_table *table,
			struct block ***ret_blocks)
{
	*ret_blocks = by->blocks + by->first[table->id];
	return by->first[table->id + 1] - by->first[table->id];
}

/*
 * Puts up to so many old records of the table on disk, not those of one block (NULL: of any).
 * Returns how many.
 */
static uint64_t evict_old(struct shrink *s, const struct by_table *by,
			  const struct oltp_table *table, const struct block *except,
			  uint64_t threshold, uint64_t slots)
{
	uint64_t used[SLOT_WORDS_MAX], n = 0;
	struct block **blocks;
	size_t n_blocks = blocks_of(by, table, &blocks);

	for (size_t i = 0; i < n_blocks && n < slots && !s->evict->error; i++) {
		struct block *block = blocks[s->hand++ % n_blocks];

		if (atomic_load_explicit(s->quit, memory_order_relaxed))
			break;
		if (block == except)
			continue;
		storage_block_look(block, used);
		for (uint32_t slot = 0; slot < block->n_slots && n < slots; slot++) {
			struct record *record = table_record(block, slot);

			if (used[slot / 64] >> slot % 64 & 1 && oldest_is(record, threshold))
				n += evict_to_disk(s->evict, block->table, record) == EVICT_DONE;
		}
	}
	evict_flush(s->evict);
	evict_settle(s->evict, clock_now_ns() + SETTLE_NS);
	return n;
}

static uint32_t find_giver(struct shrink *s, const struct by_table *by,
			   const struct oltp_table *needy, bool has_none,
			   const struct oldest *oldest, uint64_t threshold)
{
	struct division_table tables[OLTP_TABLES_MAX];
	uint32_t n = tables_count(s->engine);
	uint64_t now = epoch_now(&s->engine->epoch);

	for (uint32_t t = 0; t < n; t++) {
		const struct oltp_table *table = s->engine->tables[t];
		uint64_t there = storage_free_slots(table), low = room_low(table), stamp;
		uint64_t old_bytes = oldest_of_table(oldest, t, threshold, &stamp);

		tables[t] = (struct division_table){
			.n_blocks = (uint32_t)(by->first[t + 1] - by->first[t]),
			.spare_bytes = old_bytes +
				       (there > low ? (there - low) * table->stride : 0),
			.age = stamp < now ? now - stamp : 0,
		};
	}
	return division_giver(tables, n, needy->id, has_none);
}

/* Of at least one. */
static struct block *emptiest(struct block **blocks, size_t n, uint32_t *ret_used)
{
	struct block *found = blocks[0];
	uint64_t bits[SLOT_WORDS_MAX];

	*ret_used = storage_block_look(found, bits);
	for (size_t i = 1; i < n; i++) {
		uint32_t used = storage_block_look(blocks[i], bits);

		if (used < *ret_used) {
			*ret_used = used;
			found = blocks[i];
		}
	}
	return found;
}

/*
 * The giver's emptiest block becomes the other table's. Old records of the giver go to disk, until
 * the rest of its blocks has room for the records of that one. False: it could not be emptied.
 */
static bool hand_over(struct shrink *s, const struct by_table *by, struct oltp_table *giver,
		      struct oltp_table *to, uint64_t threshold, uint64_t deadline_ns)
{
	const struct goal goal = { .keeps = true, .deadline_ns = deadline_ns };
	struct round *round = malloc(sizeof(*round));
	uint64_t need, there, gone;
	struct block **blocks, *block;
	size_t n = blocks_of(by, giver, &blocks);
	uint32_t n_used;
	bool is_done;

	if (!round)
		return false;
	block = emptiest(blocks, n, &n_used);
	need = n_used + room_low(giver);
	there = storage_free_slots(giver);
	there -= there < block->n_slots - n_used ? there : block->n_slots - n_used;
	need -= there < need ? there : need;
	gone = evict_old(s, by, giver, block, threshold, need);
	*round = (struct round){ .victims = { block }, .n = 1 };
	round_run(s, round, &goal, threshold,
		  gone < need ? (int64_t)((need - gone) * giver->stride) : 0);
	is_done = round_end(s, round, 1) && storage_grow(&s->engine->storage, to, block->node);
	free(round);
	return is_done;
}

/* The share of the records in n blocks that is old if so many bytes are to go. */
static double old_share(uint64_t bytes, size_t n)
{
	double share = SHARE_MARGIN * (double)bytes / (double)(n * OLTP_MEM_BLOCK_BYTES + 1);

	return share > SHARE_OLD ? share : SHARE_OLD;
}

/* Another table gives the table a block. False: none can, or none is to (has_none: division.h). */
static bool grow(struct shrink *s, const struct by_table *by, struct oltp_table *table,
		 bool has_none, const struct oldest *oldest, uint64_t deadline_ns)
{
	size_t n = by->first[OLTP_TABLES_MAX];
	uint64_t threshold = oldest_threshold(oldest, old_share(OLTP_MEM_BLOCK_BYTES, n));
	uint32_t giver = find_giver(s, by, table, has_none, oldest, threshold);

	return giver != DIVISION_NONE &&
	       hand_over(s, by, s->engine->tables[giver], table, threshold, deadline_ns);
}

void make_room_in(struct shrink *s, struct oltp_table *table, uint64_t slots, bool may_grow,
		  uint64_t deadline_ns)
{
	struct oldest oldest;
	struct by_table by;
	struct block **own;
	uint64_t n, threshold;
	size_t n_own;

	if (list_by_table(s, &by))
		return;
	evict_begin(s->evict);
	oldest_look(s->engine, &s->random, by.blocks, by.first[OLTP_TABLES_MAX], &oldest);
	threshold = oldest_threshold(&oldest, old_share(slots * table->stride,
							by.first[OLTP_TABLES_MAX]));
	for (uint32_t i = 0; i < tables_count(s->engine); i++)
		rounds_note(s, s->engine->tables[i], threshold);
	if (may_grow && grow(s, &by, table, false, &oldest, deadline_ns))
		goto out;
	n = evict_old(s, &by, table, NULL, threshold, slots);
	if (n >= slots || s->evict->error ||
	    (may_grow && grow(s, &by, table, true, &oldest, deadline_ns)))
		goto out;
	/* No other table can make room. */
	n_own = blocks_of(&by, table, &own);
	oldest_look(s->engine, &s->random, own, n_own, &oldest);
	threshold = oldest_threshold(&oldest, old_share(slots * table->stride, n_own));
	evict_old(s, &by, table, NULL, threshold, slots - n);
out:
	free(by.blocks);
}
