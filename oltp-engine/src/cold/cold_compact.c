// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_compact.h. */
#include <stdlib.h>

#include "admit.h"
#include "cold_compact.h"
#include "oltp-engine/src/base/clock.h"

/*
 * With a quarter left in each, one write makes room for three; so the file is at most four times as
 * long as the cold records need. Where extents run short, two for one is better than none.
 */
#define PERCENT			25u
#define PERCENT_SHORT		50u
/* A smaller file is not worth it. */
#define USED_MIN		64u
#define LEFT_MIN		16u
#define LEFT_PART		8u
#define LOOKS			1024u
#define VICTIMS_MAX		64u
/* To wait for buffered records that are in use. */
#define TRIES_MAX		200u
#define TRY_NS			50000u

int compact_init(struct compact *c, struct cold *cold, struct io_queue *io, uint8_t *in)
{
	*c = (struct compact){ .cold = cold, .io = io, .in = in };
	c->out = aligned_alloc(4096, COLD_EXTENT_BYTES);
	if (!c->out)
		return -ENOMEM;
	cold_buffers_add(cold, COLD_EXTENT_BYTES);
	return 0;
}

void compact_finish(struct compact *c)
{
	free(c->out);
}

uint32_t compact_percent(uint64_t n_used, uint64_t n_left)
{
	if (n_left < LEFT_MIN + n_used / LEFT_PART)
		return PERCENT_SHORT;
	return n_used < USED_MIN ? 0 : PERCENT;
}

/*
 * Picks extents with few records left, of the table of the first one. Looks at a part of all
 * extents, so that a turn is short.
 */
static uint32_t pick_victims(struct compact *c, uint32_t percent, uint64_t n_numbers,
			     struct cold_block **ret_victims)
{
	uint64_t first = 0, looks = n_numbers < LOOKS ? n_numbers : LOOKS;
	uint32_t n = 0, n_records = 0;

	for (uint64_t i = 0; i < looks && n < VICTIMS_MAX; i++) {
		uint64_t number = c->next++ % n_numbers;
		struct cold_block *block = cold_block_get(c->cold, number);
		/* 0: free, or being written. */
		uint32_t live = atomic_load_explicit(&block->live, memory_order_acquire), n_slots;

		if (!live || (n && block->table != ret_victims[0]->table))
			continue;
		n_slots = cold_slots(block->table);
		if (live * 100ull > (uint64_t)n_slots * percent || n_records + live > n_slots)
			continue;
		if (!n)
			first = number;
		n_records += live;
		ret_victims[n++] = block;
	}
	/* With just one, goes on behind it: the next may find more of its table. */
	if (n == 1)
		c->next = first + 1;
	return n;
}

static int transfer(struct compact *c, bool is_write, const struct cold_block *block,
		    uint8_t *buffer, uint32_t bytes)
{
	struct io_request request = {
		.class = IO_COMPACT,
		.is_write = is_write,
		.bytes = bytes,
		.offset = block->base,
		.buffer = buffer,
	};

	return io_queue_run(c->io, &request);
}

enum place {
	PLACE_GONE,		/* in memory, or deleted */
	PLACE_HERE,
	PLACE_BUSY,		/* here, and used where it was read to */
};

/* A buffered record's place is here, too (V2 in admit.h). */
static enum place find(struct oltp_table *table, uint64_t key, uint64_t stub,
		       struct index_ref *ret_ref)
{
	enum place place = PLACE_GONE;
	struct record *record;

	engine_enter(table->engine);
	record = index_find(&table->index, key, index_hash(key), ret_ref);
	if (!record && (ret_ref->entry & INDEX_ADDR_MASK) == stub)
		place = PLACE_HERE;
	else if (record && ret_ref->entry & INDEX_BUFFERED &&
		 (buffered_of(record)->stub & INDEX_ADDR_MASK) == stub)
		place = atomic_load_explicit(&record->lock, memory_order_relaxed) & LOCK_HELD ?
				PLACE_BUSY : PLACE_HERE;
	engine_leave(table->engine);
	return place;
}

/*
 * Copies the records left in the victim. False: it would not get empty; *ret_failed: for the disk.
 */
static bool collect(struct compact *c, struct cold_block *victim, struct cold_block *to,
		    bool *ret_failed)
{
	struct oltp_table *table = victim->table;
	uint32_t stride = cold_stride(table), n_before = c->n;

	if (transfer(c, false, victim, c->in, COLD_EXTENT_BYTES)) {
		*ret_failed = true;
		return false;
	}
	for (uint32_t i = 0; i < victim->n; i++) {
		uint64_t key = atomic_load_explicit(&victim->keys[i], memory_order_relaxed);
		struct index_ref ref;
		enum place place = find(table, key, cold_stub(victim, i), &ref);
		const void *data;

		if (place == PLACE_GONE)
			continue;
		data = cold_record_check(victim, i, c->in + (size_t)i * stride);
		if (place == PLACE_BUSY || !data) {
			*ret_failed |= !data;
			c->n = n_before;
			return false;
		}
		cold_record_write(to, c->n, c->out, key,
				  atomic_load_explicit(&victim->used[i], memory_order_relaxed),
				  data);
		c->records[c->n++] = (struct compact_record){ ref.slot, cold_stub(victim, i) };
	}
	return true;
}

/* Gives a buffered record its place in the other extent. In an epoch. */
static enum place redirect(const struct index_ref *ref, const struct compact_record *from,
			   uint64_t to)
{
	struct record *record = index_record(ref->entry);
	struct buffered *buffered = buffered_of(record);
	enum place place = PLACE_GONE;
	uint64_t seen;

	if (!lock_try_exclusive(&record->lock, LOCK_TS_MANAGER, &seen))
		return PLACE_BUSY;
	if (index_ref_is_live(ref) && (buffered->stub & INDEX_ADDR_MASK) == from->stub) {
		buffered->stub = (buffered->stub & ~INDEX_ADDR_MASK) | to;
		place = PLACE_HERE;
	}
	lock_release_exclusive(&record->lock, lock_left(seen));
	return place;
}

/* PLACE_HERE: it was there, and is at its new place now. */
static enum place move_one(struct oltp_engine *engine, const struct compact_record *from,
			   uint64_t to)
{
	struct index_ref ref = { .slot = from->slot };
	enum place place = PLACE_GONE;

	engine_enter(engine);
	ref.entry = atomic_load_explicit(ref.slot, memory_order_acquire);
	if ((ref.entry & INDEX_ADDR_MASK) == from->stub)
		place = index_stub_replace(&ref, to) ? PLACE_HERE : PLACE_BUSY;
	else if (ref.entry & INDEX_BUFFERED && !(ref.entry & INDEX_STUB))
		place = redirect(&ref, from, to);
	engine_leave(engine);
	return place;
}

/* Points the index to the copies of those records that have not gone back to memory meanwhile. */
static void install(struct compact *c, struct cold_block *to)
{
	uint32_t n = 0, tries = 0;

	/* Counted as live from the start: a thread that reads one back at once counts it out. */
	atomic_store_explicit(&to->live, c->n, memory_order_relaxed);
	for (uint32_t i = 0; i < c->n; i++) {
		enum place place;

		while ((place = move_one(c->cold->engine, &c->records[i], cold_stub(to, i))) ==
		       PLACE_BUSY && tries++ < TRIES_MAX)
			clock_sleep(TRY_NS);
		if (place != PLACE_HERE)
			continue;
		cold_block_unlive(c->cold, cold_stub_block(c->cold, c->records[i].stub), 1);
		n++;
	}
	atomic_fetch_add_explicit(&c->cold->counters.compacted_records, n, memory_order_relaxed);
	cold_block_unlive(c->cold, to, c->n - n);
}

static int write_out(struct compact *c, struct cold_block *to)
{
	return transfer(c, true, to, c->out, cold_block_seal(c->cold, to, c->n, c->out));
}

/* Returns how many extents get free, less the one that is written. */
static int32_t empty_victims(struct compact *c, struct cold_block **victims, uint32_t n,
			     struct cold_block *to, bool *ret_failed)
{
	int32_t n_empty = 0;
	bool has_failed;

	c->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		has_failed = false;
		n_empty += collect(c, victims[i], to, &has_failed);
		if (has_failed)
			cold_read_failed(c->cold);
		*ret_failed |= has_failed;
	}
	if (n_empty >= 2 && c->n) {
		if (!write_out(c, to)) {
			install(c, to);
			return n_empty - 1;
		}
		cold_write_failed(c->cold, to);
		*ret_failed = true;
		return 0;
	}
	cold_block_give_up(c->cold, to);
	return 0;
}

bool compact_turn(struct compact *c, bool *ret_failed)
{
	struct cold_block *victims[VICTIMS_MAX], *to;
	uint64_t n_used, n_left, n_numbers;
	uint32_t percent, n;

	*ret_failed = false;
	cold_extents_count(c->cold, &n_numbers, &n_used, &n_left);
	percent = compact_percent(n_used, n_left);
	n = percent ? pick_victims(c, percent, n_numbers, victims) : 0;
	if (n < 2 || cold_block_alloc(c->cold, victims[0]->table, true, &to))
		return false;
	return empty_victims(c, victims, n, to, ret_failed) > 0;
}
