// SPDX-License-Identifier: GPL-2.0-or-later
/* See reread.h. */
#include <stdlib.h>
#include <string.h>

#include "cold.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/io/io_files.h"
#include "oltp-engine/src/txn/engine.h"
#include "reread.h"

/* How many blocks are searched for one of the table, and how many of its records are read. */
#define LOOK_MAX	4096u
#define READS		8u

void reread_note(struct reread *reread, uint64_t ns, uint32_t n)
{
	if (n)
		hist_add(&reread->cost, ns, n);
}

static double mean_of(const struct hist_view *view, uint64_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		sum += (double)view->counts[i] * hist_bucket_ns(i);
	return sum / (double)n;
}

void reread_turn(struct reread *reread)
{
	struct hist_view view = { { 0 } }, fresh;
	uint64_t n, n_mean;

	hist_view_add(&view, &reread->cost);
	fresh = view;
	hist_view_sub(&fresh, &reread->counted);
	n = hist_view_count(&fresh);
	if (!n)
		return;
	/* The first ones are all that is known: their plain mean. */
	n_mean = hist_view_count(&view);
	n_mean = n_mean < REREAD_READS ? n_mean : REREAD_READS;
	reread->mean += (mean_of(&fresh, n) - reread->mean) *
			(n < n_mean ? (double)n / (double)n_mean : 1);
	atomic_store_explicit(&reread->mean_ns, (uint64_t)reread->mean ?: 1, memory_order_relaxed);
	reread->counted = view;
}

static struct cold_block *block_find(struct cold *cold, struct oltp_table *table)
{
	uint64_t n = cold->n_numbers;

	/* The newest extents first: their records are likely still there. */
	for (uint64_t i = 0; i < n && i < LOOK_MAX; i++) {
		struct cold_block *block = cold_block_get(cold, n - 1 - i);

		/* Only this thread writes and frees extents: no pin is needed. */
		if (atomic_load_explicit(&block->live, memory_order_acquire) &&
		    block->table == table)
			return block;
	}
	return NULL;
}

uint64_t reread_cost_ns(const struct cold *cold, uint32_t table)
{
	uint64_t ns = counter_read(&cold->rereads[table].mean_ns);

	for (uint32_t i = 0; !ns && i < OLTP_TABLES_MAX; i++)
		ns = counter_read(&cold->rereads[i].mean_ns);
	return ns ?: counter_read(&cold->probe_ns);
}

static int transfer(struct cold *cold, bool is_write, uint8_t *buffer, size_t bytes,
		    uint64_t offset)
{
	return io_transfer(&cold->engine->io_meters, IO_MEASURE, is_write, cold->file.fd, buffer,
			   bytes, offset);
}

void reread_want(struct cold *cold)
{
	atomic_store_explicit(&cold->is_probe_wanted, true, memory_order_relaxed);
}

void reread_probe(struct cold *cold, struct oltp_table *table, uint8_t *buffer)
{
	struct cold_block *block;
	uint64_t times_ns[READS];
	uint32_t n = 0;

	if (!atomic_exchange_explicit(&cold->is_probe_wanted, false, memory_order_relaxed) ||
	    !cold_slots(table) || cold_block_alloc(cold, table, false, &block))
		return;
	memset(buffer, 0, COLD_EXTENT_BYTES);
	if (!transfer(cold, true, buffer, COLD_EXTENT_BYTES, block->base)) {
		while (n < READS) {
			uint32_t slot = cold_slots(table) * (n * 5 % READS) / READS;
			struct cold_place place = cold_stub_place(cold, cold_stub(block, slot));
			uint64_t start_ns = clock_now_ns();

			if (transfer(cold, false, buffer, place.bytes, place.offset))
				break;
			times_ns[n++] = clock_now_ns() - start_ns;
		}
	}
	cold_block_give_up(cold, block);
	if (n < READS)
		return;
	qsort(times_ns, READS, sizeof(*times_ns), compare_u64);
	atomic_store_explicit(&cold->probe_ns, times_ns[READS / 2] ?: 1, memory_order_relaxed);
}

void reread_calibrate(struct cold *cold, struct oltp_table *table, uint8_t *buffer)
{
	struct cold_block *block = block_find(cold, table);

	for (uint32_t i = 0; block && i < READS; i++) {
		/* Apart from each other: the disk may read ahead. */
		uint32_t slot = (uint32_t)((uint64_t)block->n * (i * 5 % READS) / READS);
		struct cold_place place = cold_stub_place(cold, cold_stub(block, slot));
		uint64_t start_ns = clock_now_ns();

		/* A transaction that wants the record will meet the error, too, and say so. */
		if (transfer(cold, false, buffer, place.bytes, place.offset) ||
		    !cold_record_check(block, slot, buffer + place.lead))
			return;
		reread_note(&cold->rereads[table->id], clock_now_ns() - start_ns, 1);
	}
}
