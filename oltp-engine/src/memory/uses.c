// SPDX-License-Identifier: GPL-2.0-or-later
/* Which records are in memory, and which of them were used last: oltp_table_uses. */
#include <errno.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/cold.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/revoked.h"

/* Looked at in one announced epoch: memory cannot be reused for so long. */
#define BUCKETS_AT_ONCE	256u
#define WAIT_NS		10000000000ull

struct uses {
	struct oltp_engine *engine;
	void (*fn)(void *ctx, uint64_t key, uint64_t use);
	void *ctx;
	uint64_t n_revoked;
};

static void show_resident(struct uses *uses, const struct record *record)
{
	uint64_t key = atomic_load_explicit(&record->key, memory_order_relaxed);
	uint64_t word = atomic_load_explicit(&record->lock, memory_order_relaxed);
	uint64_t use = word & LOCK_HELD ? epoch_now(&uses->engine->epoch) : lock_stamp(word);

	/* After what was read: see revoked_is_record. */
	if (revoked_is_record(uses->engine, record))
		uses->n_revoked++;
	else
		uses->fn(uses->ctx, key, use ?: 1);
}

static int show(void *ctx, const struct index_ref *ref)
{
	struct uses *uses = ctx;
	const struct cold_block *block;

	if ((ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED) {
		uses->n_revoked++;
	} else if (ref->entry & INDEX_STUB) {
		block = cold_stub_block(uses->engine->cold, ref->entry);
		uses->fn(uses->ctx,
			 atomic_load_explicit(&block->keys[cold_stub_slot(ref->entry)],
					      memory_order_relaxed), 0);
	} else {
		show_resident(uses, index_record(ref->entry));
	}
	return 0;
}

int oltp_table_uses(struct oltp_table *table, struct oltp_worker *worker,
		    void (*fn)(void *ctx, uint64_t key, uint64_t use), void *ctx)
{
	struct uses uses = { .engine = table->engine, .fn = fn, .ctx = ctx };
	struct epoch *epoch = &table->engine->epoch;
	uint64_t n = table->index.n_buckets;

	if (!epoch_wait(epoch, epoch_advance(epoch), clock_now_ns() + WAIT_NS))
		return -ETIMEDOUT;
	for (uint64_t b = 0; b < n;) {
		uint64_t end = n - b < BUCKETS_AT_ONCE ? n : b + BUCKETS_AT_ONCE;

		epoch_enter(epoch, &worker->announced, epoch_now(epoch));
		for (; b < end; b++)
			index_walk_bucket(&table->index, b, show, &uses);
		epoch_leave(&worker->announced);
	}
	return uses.n_revoked ? -EOWNERDEAD : 0;
}
