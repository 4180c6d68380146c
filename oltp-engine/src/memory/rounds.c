// SPDX-License-Identifier: GPL-2.0-or-later
/* See rounds.h. */
#include "oldest.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"
#include "rounds.h"

void rounds_note(struct shrink *s, struct oltp_table *table, uint64_t threshold)
{
	uint64_t now = epoch_now(&s->engine->epoch);

	if (s->engine->cold)
		cold_evict_until(s->engine->cold, table, threshold < now ? threshold : now);
}

/*
 * One pass over the records in a closed block. Old ones go to disk, *budget_bytes of them; the
 * others move to free slots elsewhere, or, with may_spill, go to disk if there are none. Records
 * that can do neither stay. Returns how many are on their way.
 */
static uint64_t empty_block(struct shrink *s, struct block *block, const uint64_t *used,
			    uint64_t threshold, int64_t *budget_bytes, bool may_spill)
{
	uint64_t n = 0;

	for (uint32_t slot = 0; slot < block->n_slots; slot++) {
		struct record *record = table_record(block, slot);
		enum evict_result result = EVICT_NOT;

		if (!used[slot / 64]) {
			slot |= 63;
			continue;
		}
		if (!(used[slot / 64] >> slot % 64 & 1))
			continue;
		if (*budget_bytes > 0 && oldest_is(record, threshold)) {
			result = evict_to_disk(s->evict, block->table, record);
			if (result == EVICT_DONE)
				*budget_bytes -= block->table->stride;
		}
		if (result == EVICT_NOT)
			result = evict_move(s->evict, block->table, block->node, record);
		if (result == EVICT_NOT && may_spill)
			result = evict_to_disk(s->evict, block->table, record);
		n += result == EVICT_DONE;
	}
	return n;
}

uint64_t goal_left(struct shrink *s, const struct goal *goal, uint64_t bytes)
{
	struct storage *storage = &s->engine->storage;
	uint64_t demanded;

	if (goal->keeps || !storage->ops)
		return bytes;
	pthread_mutex_lock(&storage->lock);
	demanded = mem_round(storage_demanded(storage, goal->node));
	pthread_mutex_unlock(&storage->lock);
	return bytes < demanded ? bytes : demanded;
}

bool goal_is_late(const struct shrink *s, uint64_t deadline_ns)
{
	return atomic_load_explicit(s->quit, memory_order_relaxed) ||
	       clock_now_ns() >= deadline_ns;
}

bool goal_is_over(struct shrink *s, const struct goal *goal)
{
	return goal_is_late(s, goal->deadline_ns) || !goal_left(s, goal, 1);
}

/*
 * Nothing more goes. Opens the fullest victims again, until they have room for the records of the
 * others, but keeps n_least victims. n_used: records left in each.
 */
static void keep_some(struct round *round, const uint32_t *n_used, uint64_t left, uint32_t n_least)
{
	uint64_t room = 0;

	while (round->n > n_least && room < left) {
		struct block *block = round->victims[--round->n];

		left -= n_used[round->n];
		room += block->n_slots - n_used[round->n];
		storage_block_reopen(block);
	}
}

uint64_t round_run(struct shrink *s, struct round *round, const struct goal *goal,
			  uint64_t threshold, int64_t budget_bytes)
{
	uint32_t n_used[VICTIMS_MAX], idle = 0;
	bool may_spill = false;
	uint64_t n = 0;

	for (uint32_t i = 0; i < round->n; i++)
		storage_block_close(round->victims[i], round->used[i]);
	while (round->n && !goal_is_over(s, goal)) {
		uint64_t before = n, left = 0;

		for (uint32_t i = 0; i < round->n && !goal_is_over(s, goal); i++)
			n += empty_block(s, round->victims[i], round->used[i], threshold,
					 &budget_bytes, may_spill);
		evict_flush(s->evict);
		if (!evict_settle(s->evict, clock_now_ns() + SETTLE_NS))
			break;
		for (uint32_t i = 0; i < round->n; i++) {
			n_used[i] = storage_block_look(round->victims[i], round->used[i]);
			left += n_used[i];
		}
		if (!left)
			break;
		/* Records may have been locked: they are worth another look. */
		if (n > before || !idle++)
			continue;
		/*
		 * Records that transactions bring back from disk may take all free slots at once.
		 * So that one block gets free all the same, its records go to disk, whatever their
		 * age.
		 */
		keep_some(round, n_used, left, may_spill ? 0 : 1);
		may_spill = true;
	}
	return n;
}

uint64_t round_end(struct shrink *s, struct round *round, uint32_t n_victims)
{
	bool has_passed, is_empty[VICTIMS_MAX];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n_victims; i++)
		is_empty[i] = !storage_block_look(round->victims[i], round->used[i]);
	/* Those that were empty to begin with went through no evict_settle. */
	has_passed = epoch_wait(&s->engine->epoch, epoch_advance(&s->engine->epoch),
				clock_now_ns() + SETTLE_NS);
	for (uint32_t i = 0; i < n_victims; i++) {
		if (has_passed && is_empty[i] &&
		    storage_block_retire(&s->engine->storage, round->victims[i]))
			bytes += OLTP_MEM_BLOCK_BYTES;
		else
			storage_block_reopen(round->victims[i]);
	}
	return bytes;
}
