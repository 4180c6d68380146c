// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses the records that have to go by their age. A sample of the lock words (the stamps that the
 * last users left) gives the age that a certain share of all records exceeds. Of the blocks that
 * are worked on, records older than that go to disk, and the others move together into fewer
 * blocks.
 *
 * The share is larger than needed: with just as many old records as must go, every block would have
 * to be worked on, and all records that are not old be moved.
 *
 * Where the host has said below which value memory is to go first (evict_worthless), that value is
 * converted to an age for each table, and the old records go to disk wherever they are, before any
 * block is worked on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cutoff.h"
#include "manager.h"
#include "oldest.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"
#include "rounds.h"
#include "shrink.h"

#define SHARE_MIN		0.34
#define SHARE_MARGIN		1.25
#define VICTIMS_PER_BLOCK	3u	/* that is to get free: 1 / SHARE_MIN */
#define CUT_MARGIN		32u	/* 1 / CUT_MARGIN is added, for records that come back */
/* A thread that stays in its transaction holds up the demands of other nodes for no longer. */
#define SETTLE_MAX_NS		1000000000ull

/*
 * For each table, by number: the stamp up to which its records are worth less than the cut-off, 0
 * for none. bytes: how much of them is wanted. False: there are none, or values are not known.
 */
static bool cut_thresholds(struct shrink *s, uint32_t node, uint64_t cutoff, uint64_t bytes,
			   uint64_t ret_thresholds[OLTP_TABLES_MAX])
{
	struct oltp_memory_sample *samples = malloc(OLTP_MEMORY_SAMPLES_MAX * sizeof(*samples));
	struct manager *m = s->engine->manager;
	uint64_t ages_ns[OLTP_TABLES_MAX], now_ns = manager_busy_ns(m);
	struct oltp_memory_node there;
	bool has_any = false, is_known;
	uint32_t n;

	if (!samples)
		return false;
	/* The same time as for recency_epoch below. */
	n = recency_read(m->recency, now_ns, manager_expected(m), samples,
			 OLTP_MEMORY_SAMPLES_MAX);
	/*
	 * The cost of a read is known for all tables or for none: for a table without reads,
	 * reread_cost_ns takes the cost of other tables.
	 */
	is_known = n && samples->reread_ns;
	oltp_memory_node_read(s->engine, node, &there);
	cutoff_ages(samples, n, (double)cutoff,
		    there.resident_bytes ? (double)bytes / (double)there.resident_bytes : 1,
		    ages_ns);
	free(samples);
	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++) {
		/*
		 * Records of exactly that age stay. Records older than the clock knows of go,
		 * whatever they are worth.
		 */
		ret_thresholds[i] = ages_ns[i] == CUTOFF_NONE ? 0 :
				    !ages_ns[i] ? OLDEST_ANY_AGE :
				    recency_epoch(m->recency, now_ns, ages_ns[i] + 1) ?: 1;
		has_any |= ages_ns[i] != CUTOFF_NONE;
	}
	return has_any && is_known;
}

struct candidate {
	struct block *block;
	uint32_t n_used;
	bool is_last;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->is_last != y->is_last)
		return x->is_last - y->is_last;
	if (x->is_last)
		return (x->n_used < y->n_used) - (x->n_used > y->n_used);
	return (x->n_used > y->n_used) - (x->n_used < y->n_used);
}

/*
 * Marks one block of each table as its last: the fullest, unless the table has one on another node.
 * A table without any block takes one that another table gave up, as soon as one of its records is
 * written or added; if there are several such tables, transactions that use them all would never
 * find all that they need. If only one table has blocks, all of them may go. Returns how many may
 * go before any last one.
 */
static size_t mark_last(struct candidate *candidates, size_t n, const bool *has_elsewhere)
{
	bool has[OLTP_TABLES_MAX];
	uint32_t n_tables = 0;
	size_t n_last = 0;

	memcpy(has, has_elsewhere, sizeof(has));
	for (size_t i = n; i--;) {
		bool *has_one = &has[candidates[i].block->table->id];

		candidates[i].is_last = !*has_one;
		n_last += !*has_one;
		*has_one = true;
	}
	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++)
		n_tables += has[i];
	return n_tables == 1 ? n : n - n_last;
}

/*
 * Lists the blocks of the node, emptiest first. Those that are their table's last come after the
 * others, the fullest first, since small tables are mostly those that all transactions use. They
 * are left out unless takes_last, or there are no others. Errors: -ENOMEM.
 */
static int list_candidates(struct shrink *s, uint32_t node, bool takes_last,
			   struct block ***ret_blocks, size_t *ret_n)
{
	struct candidate *candidates;
	uint64_t used[SLOT_WORDS_MAX];
	bool has_elsewhere[OLTP_TABLES_MAX] = { false };
	struct block **blocks;
	size_t n_all, n_spare, n = 0;
	int rc = storage_blocks_list(&s->engine->storage, &blocks, &n_all);

	if (rc)
		return rc;
	candidates = malloc((n_all + 1) * sizeof(*candidates));
	if (!candidates) {
		free(blocks);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_all; i++) {
		/* Begins somewhere else each time, so that not always the same blocks go. */
		struct block *block = blocks[(i + s->hand) % n_all];

		if (block->state != BLOCK_OPEN)
			continue;
		if (block->node == node)
			candidates[n++] = (struct candidate){
				.block = block, .n_used = storage_block_look(block, used) };
		else
			has_elsewhere[block->table->id] = true;
	}
	s->hand += VICTIMS_MAX;
	qsort(candidates, n, sizeof(*candidates), compare_candidates);
	n_spare = mark_last(candidates, n, has_elsewhere);
	qsort(candidates, n, sizeof(*candidates), compare_candidates);
	if (n_spare && !takes_last)
		n = n_spare;
	for (size_t i = 0; i < n; i++)
		blocks[i] = candidates[i].block;
	free(candidates);
	*ret_blocks = blocks;
	*ret_n = n;
	return 0;
}

/*
 * How many bytes of the victims' records fit in free slots of other blocks, of the same table each.
 */
static uint64_t room_for(struct shrink *s, struct round *round)
{
	uint64_t bytes = 0;

	for (uint32_t t = 0; t < tables_count(s->engine); t++) {
		struct oltp_table *table = s->engine->tables[t];
		uint64_t n_used = 0, n_own = 0, n_free;

		for (uint32_t i = 0; i < round->n; i++) {
			struct block *block = round->victims[i];
			uint32_t n;

			if (block->table != table)
				continue;
			n = storage_block_look(block, round->used[i]);
			n_used += n;
			n_own += block->n_slots - n;
		}
		n_free = n_used ? storage_free_slots(table) : 0;
		n_free -= n_own < n_free ? n_own : n_free;
		bytes += (n_free < n_used ? n_free : n_used) * table->stride;
	}
	return bytes;
}

/*
 * Bytes of blocks that can be emptied by moving alone: records move to blocks of their table only.
 */
static uint64_t movable_bytes(struct shrink *s)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < tables_count(s->engine); i++)
		blocks += storage_free_slots(s->engine->tables[i]) *
			  s->engine->tables[i]->stride / OLTP_MEM_BLOCK_BYTES;
	return blocks * OLTP_MEM_BLOCK_BYTES;
}

/* How far a pass goes: the next one of these if the one before it did not free enough. */
enum shrink_effort {
	EFFORT_OLD_RECORDS,		/* records unused for long, of tables with several blocks */
	EFFORT_ANY_AGE,
	EFFORT_LAST_BLOCKS,	/* of a table; of any age */
	EFFORT_END,
};

/*
 * One walk over the node's blocks. Returns the bytes given back, or, with keeps, those that became
 * unused. *ret_moved: how many records went.
 */
static uint64_t shrink_pass(struct shrink *s, struct round *round, const struct goal *goal,
			    uint64_t bytes, bool is_cut, enum shrink_effort effort,
			    uint64_t *ret_moved)
{
	uint64_t threshold = OLDEST_ANY_AGE, given = 0;
	struct oldest oldest;
	struct block **blocks;
	double share;
	size_t n;

	*ret_moved = 0;
	if (list_candidates(s, goal->node, effort >= EFFORT_LAST_BLOCKS, &blocks, &n))
		return 0;
	if (effort < EFFORT_ANY_AGE && n) {
		share = SHARE_MARGIN * (double)bytes / (double)(n * OLTP_MEM_BLOCK_BYTES);
		oldest_look(s->engine, &s->random, blocks, n, &oldest);
		threshold = oldest_threshold(&oldest, share > SHARE_MIN ? share : SHARE_MIN);
	}
	for (uint32_t i = 0; i < tables_count(s->engine); i++)
		rounds_note(s, s->engine->tables[i], threshold);
	for (size_t at = 0; at < n && given < bytes && !goal_is_late(s, goal->deadline_ns);) {
		const uint64_t left = goal_left(s, goal, bytes - given);
		uint64_t need = (left + OLTP_MEM_BLOCK_BYTES - 1) / OLTP_MEM_BLOCK_BYTES;
		uint32_t max = need < VICTIMS_MAX / VICTIMS_PER_BLOCK ?
				       (uint32_t)need * VICTIMS_PER_BLOCK : VICTIMS_MAX;
		int64_t budget_bytes;
		uint64_t unused;
		uint32_t n_victims;
		bool has_room = is_cut && movable_bytes(s) >= left;

		if (!left)
			break;
		/* Let more records of low value go first, before records go by age. */
		if (is_cut && !has_room && given)
			break;
		/*
		 * All tables have free slots: the victims' records move there, and none goes to
		 * disk.
		 */
		if (has_room)
			max = need < VICTIMS_MAX ? (uint32_t)need : VICTIMS_MAX;
		for (round->n = 0; round->n < max && at < n; at++)
			round->victims[round->n++] = blocks[at];
		n_victims = round->n;
		/* Enough to free as many blocks as are needed, or as there are old records for. */
		budget_bytes = (int64_t)left;
		if (n_victims == VICTIMS_MAX)
			budget_bytes = VICTIMS_MAX / VICTIMS_PER_BLOCK * OLTP_MEM_BLOCK_BYTES;
		budget_bytes -= (int64_t)room_for(s, round);
		if (has_room)
			budget_bytes = 0;
		*ret_moved += round_run(s, round, goal, threshold, budget_bytes);
		unused = round_end(s, round, n_victims);
		*ret_moved += unused > 0;
		given += goal->keeps ? unused :
			 storage_release_unused(&s->engine->storage, goal->node,
						goal_left(s, goal, bytes - given));
	}
	free(blocks);
	return given;
}

/*
 * Writes records worth less than the host's cut-off to disk, until the free slots have room for the
 * records of the blocks that are to get free. Free slots within those blocks do not count. True:
 * records went, or there is such room.
 */
static bool evict_worthless(struct shrink *s, const struct goal *goal, uint64_t bytes)
{
	uint64_t thresholds[OLTP_TABLES_MAX], used[SLOT_WORDS_MAX], cutoff, n_gone = 0;
	int64_t budget_bytes = (int64_t)(bytes + bytes / CUT_MARGIN) - (int64_t)movable_bytes(s);
	struct block **blocks;
	size_t n;

	cutoff = atomic_load_explicit(&s->cutoffs[goal->node], memory_order_relaxed);
	if (cutoff && budget_bytes <= (int64_t)(bytes / CUT_MARGIN))
		return true;
	if (!cutoff || !s->evict->cold ||
	    !cut_thresholds(s, goal->node, cutoff, (uint64_t)budget_bytes, thresholds) ||
	    list_candidates(s, goal->node, true, &blocks, &n))
		return false;
	for (uint32_t i = 0; i < tables_count(s->engine); i++)
		rounds_note(s, s->engine->tables[i], thresholds[i]);
	for (size_t i = 0; i < n && budget_bytes > 0 && !goal_is_over(s, goal); i++) {
		struct oltp_table *table = blocks[i]->table;

		storage_block_look(blocks[i], used);
		for (uint32_t slot = 0; slot < blocks[i]->n_slots && budget_bytes > 0; slot++) {
			struct record *record = table_record(blocks[i], slot);

			if (used[slot / 64] >> slot % 64 & 1 && thresholds[table->id] &&
			    oldest_is(record, thresholds[table->id]) &&
			    evict_to_disk(s->evict, table, record) == EVICT_DONE) {
				budget_bytes -= table->stride;
				n_gone++;
			}
		}
	}
	free(blocks);
	evict_flush(s->evict);
	return n_gone > 0;
}

/* Waits until the slots of records that went are free. False: some are not yet. */
static bool settle(struct shrink *s, uint64_t deadline_ns)
{
	const uint64_t most_ns = clock_now_ns() + SETTLE_MAX_NS;
	const uint64_t until_ns = deadline_ns < most_ns ? deadline_ns : most_ns;

	while (!evict_settle(s->evict, clock_now_ns() + SETTLE_NS))
		if (goal_is_late(s, until_ns))
			return false;
	return true;
}

static uint64_t shrink(struct shrink *s, const struct goal *goal, uint64_t bytes)
{
	struct round *round = malloc(sizeof(*round));
	enum shrink_effort effort = EFFORT_OLD_RECORDS;
	uint64_t given = 0, left, moved;
	bool is_cut;

	if (!round)
		return 0;
	evict_begin(s->evict);
	while (given < bytes && !goal_is_late(s, goal->deadline_ns) && effort < EFFORT_END) {
		left = goal_left(s, goal, bytes - given);
		if (!left)
			break;
		is_cut = evict_worthless(s, goal, left);
		/* More records would go than needed, since those slots seem to be in use. */
		if (!settle(s, goal->deadline_ns))
			break;
		given += shrink_pass(s, round, goal, left, is_cut, effort, &moved);
		effort += !moved;
	}
	free(round);
	return given;
}

uint64_t shrink_node(struct shrink *s, uint32_t node, uint64_t bytes, uint64_t deadline_ns)
{
	const struct goal goal = { .node = node, .deadline_ns = deadline_ns };
	uint64_t given = storage_release_unused(&s->engine->storage, node, bytes);

	return given >= bytes ? given : given + shrink(s, &goal, bytes - given);
}

bool shrink_block(struct shrink *s, uint64_t deadline_ns)
{
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++) {
		const struct goal goal = { node, true, deadline_ns };

		if (shrink(s, &goal, OLTP_MEM_BLOCK_BYTES))
			return true;
	}
	return false;
}
