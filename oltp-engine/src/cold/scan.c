// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looking at a whole table, whatever happens to it meanwhile. Slots of the index never move (I3),
 * so a walk over them meets every key once. A record in memory is looked at under its lock; one on
 * disk is read into a buffer, with its block pinned. In an epoch the walk waits for nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "cold_checkpoint.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"

#define READS		64u
#define LOOKS_PER_SLEEP	64u
#define SLEEP_NS	20000u

struct scan_read {
	struct io_request request;	/* first: found by its address */
	struct cold_block *block;
	uint32_t slot, lead, room;
	uint8_t *buffer;
	struct scan_read *next;
};

struct scan {
	int (*fn)(void *ctx, uint64_t key, const void *record);
	int (*pause)(void *ctx);
	void *ctx;
	struct oltp_table *table;
	struct oltp_worker *worker;
	struct cold *cold;
	struct io_queue io;
	bool has_io;
	int rc;				/* what fn returned, or an error; ends the walk */
	uint64_t n_unread, n_revoked;
	struct scan_read *free;
	struct scan_read reads[READS];
};

static void show_cold(struct scan *scan, struct scan_read *read)
{
	struct cold_block *block = read->block;
	struct record *record = (struct record *)(read->buffer + read->lead);
	bool is_good = !read->request.result &&
		       cold_record_check(block, read->slot, read->buffer + read->lead);
	uint64_t key = atomic_load_explicit(&block->keys[read->slot], memory_order_relaxed);

	if (!is_good) {
		scan->n_unread++;
	} else if (!scan->rc) {
		cold_patch_apply(block, read->slot, record->data);
		scan->rc = scan->fn(scan->ctx, key, record->data);
	}
	cold_unpin(block);
	read->next = scan->free;
	scan->free = read;
}

/* Waits until so many reads are free. */
static void wait_reads(struct scan *scan, uint32_t n_free)
{
	while (READS - scan->io.in_flight < n_free) {
		struct io_request *request = io_queue_next(&scan->io);

		if (request)
			show_cold(scan, (struct scan_read *)request);
		else
			io_queue_wait(&scan->io, 1000000000ull);
	}
}

/* The stub is pinned, and a read is free. Error: -ENOMEM. */
static int read_cold(struct scan *scan, uint64_t entry)
{
	struct cold_place place = cold_stub_place(scan->cold, entry);
	struct scan_read *read = scan->free;

	if (read->room < place.bytes) {
		free(read->buffer);
		read->buffer = cold_buffer_alloc(scan->cold, place.bytes);
		read->room = read->buffer ? place.bytes : 0;
		if (!read->buffer)
			return -ENOMEM;
	}
	scan->free = read->next;
	read->block = cold_stub_block(scan->cold, entry);
	read->slot = cold_stub_slot(entry);
	read->lead = place.lead;
	read->request = (struct io_request){
		.class = IO_SCAN, .file = place.file, .bytes = place.bytes,
		.offset = place.offset, .buffer = read->buffer,
	};
	io_queue_add(&scan->io, &read->request);
	return 0;
}

/* False: somebody holds the record, or it is not there any more. */
static bool show_record(struct scan *scan, const struct index_ref *ref)
{
	struct record *record = index_record(ref->entry);
	struct block *block = storage_block_of(&scan->table->engine->storage, record);
	uint64_t now = epoch_now(&scan->table->engine->epoch), stamp;
	bool is_live;

	if (!lock_try_look(&record->lock, worker_ts(scan->worker), now, &stamp))
		return false;
	is_live = index_ref_is_live(ref);
	if (is_live) {
		scan->rc = scan->fn(scan->ctx,
				    atomic_load_explicit(&record->key, memory_order_relaxed),
				    record->data);
		if (block && block->state == BLOCK_REVOKED)
			scan->n_revoked++;
	}
	lock_release_shared(&record->lock, stamp);
	return is_live;
}

/*
 * In an epoch; does not wait. True: the record is shown, or is being read, or there is none. False:
 * the slot is to be looked at again.
 */
static bool show_entry(struct scan *scan, const struct index_ref *ref)
{
	if (!ref->entry)
		return true;
	if ((ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED) {
		scan->n_revoked++;
		return true;
	}
	if (!(ref->entry & INDEX_STUB))
		return show_record(scan, ref);
	if (!cold_pin(scan->cold, ref))
		return false;
	scan->rc = read_cold(scan, ref->entry);
	if (scan->rc)
		cold_unpin(cold_stub_block(scan->cold, ref->entry));
	return true;
}

/* As show_entry. Leaves the epoch at once: slots are freed only when an epoch has passed. */
static bool look(struct scan *scan, _Atomic uint64_t *slot)
{
	struct epoch *epoch = &scan->table->engine->epoch;
	struct index_ref ref = { .slot = slot };
	bool is_done;

	epoch_enter(epoch, &scan->worker->announced, epoch_now(epoch));
	ref.entry = atomic_load_explicit(slot, memory_order_acquire);
	is_done = show_entry(scan, &ref);
	epoch_leave(&scan->worker->announced);
	return is_done;
}

/*
 * Waits in no epoch, since the disk, or the holder of a lock, may take any time. For a lock it
 * sleeps: beside busy threads, one that calls sched_yield() under SCHED_IDLE gets no CPU for
 * seconds each time.
 */
static int show_slot(void *ctx, const struct index_ref *found)
{
	struct scan *scan = ctx;

	if (scan->has_io)
		wait_reads(scan, 1);
	for (uint32_t looks = 1; !scan->rc && !look(scan, found->slot); looks++) {
		if (looks % LOOKS_PER_SLEEP)
			cpu_relax();
		else
			clock_sleep(SLEEP_NS);
	}
	return scan->rc;
}

static int walk(struct scan *scan)
{
	const struct index *index = &scan->table->index;
	int rc = 0;

	for (uint64_t b = 0; !rc && b < index->n_buckets; b++) {
		rc = index_walk_bucket(index, b, show_slot, scan);
		if (!rc && scan->pause)
			rc = scan->pause(scan->ctx);
	}
	if (scan->has_io)
		wait_reads(scan, READS);
	return rc ?: scan->rc;
}

int table_scan(struct oltp_table *table,
	       int (*fn)(void *ctx, uint64_t key, const void *record), int (*pause)(void *ctx),
	       void *ctx)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int rc;

	if (!scan)
		return -ENOMEM;
	*scan = (struct scan){ .fn = fn, .pause = pause, .ctx = ctx, .table = table,
				.cold = table->engine->cold };
	rc = oltp_worker_create(table->engine, &scan->worker);
	if (rc)
		goto out_free;
	if (scan->cold) {
		rc = io_queue_init(&scan->io, scan->cold->file.fd, READS, scan->cold->hook,
				   &table->engine->io_meters);
		if (rc)
			goto out_worker;
		scan->has_io = true;
		for (uint32_t i = 0; i < READS; i++) {
			scan->reads[i].next = scan->free;
			scan->free = &scan->reads[i];
		}
	}
	rc = walk(scan);
	if (!rc && scan->n_unread)
		rc = -EIO;
	if (!rc && scan->n_revoked)
		rc = -EOWNERDEAD;
	if (scan->has_io)
		io_queue_finish(&scan->io);
	for (uint32_t i = 0; i < READS; i++)
		free(scan->reads[i].buffer);
out_worker:
	oltp_worker_destroy(scan->worker);
out_free:
	free(scan);
	return rc;
}

int oltp_table_scan(struct oltp_table *table,
		    int (*fn)(void *ctx, uint64_t key, const void *record), void *ctx)
{
	return table_scan(table, fn, NULL, ctx);
}
