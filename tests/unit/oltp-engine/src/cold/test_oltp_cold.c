// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records that go to disk and come back, one worker; and everything that can go wrong on the way.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "tests/lib/chance.h"

#define RECORDS	8000u	/* four blocks */
#define LARGE	24000u	/* so many that the file is worth compacting */

static void open_half_cold(struct rig *rig, uint64_t cold_bytes)
{
	struct oltp_memory_stats stats;

	rig_open(rig, OLTP_CC_NO_WAIT, 8 * MIB, true, cold_bytes);
	rig_insert(rig, 0, RECORDS);
	stats = rig_demand(rig, 4 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(stats.held_bytes, 4 * MIB);
	assert_int_equal(stats.answered_bytes, 4 * MIB);
	assert_int_equal(stats.unanswered_bytes, 0);
	assert_true(stats.cold_records >= RECORDS - 2 * RIG_PER_BLOCK);
	assert_int_equal(stats.resident_records + stats.cold_records, RECORDS);
	assert_int_equal(stats.evicted_records - stats.merged_records, stats.cold_records);
	/* And not much more than had to go. */
	assert_true(stats.cold_records < RECORDS - 2 * RIG_PER_BLOCK + RIG_PER_BLOCK / 4);
}

static void test_demand_is_met_and_every_record_is_there(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct rig rig;

	open_half_cold(&rig, 0);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	/* The look left them where they were. */
	assert_true(rig_stats(&rig).cold_records >= RECORDS - 2 * RIG_PER_BLOCK);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	stats = rig_stats(&rig);
	assert_true(stats.cold_reads >= RECORDS - 2 * RIG_PER_BLOCK);
	assert_int_equal(stats.read_errors, 0);
	assert_true(stats.held_bytes <= 4 * MIB);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

static void test_all_comes_back_by_itself(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct rig rig;

	open_half_cold(&rig, 0);
	stats = rig_read_back(&rig, 16 * MIB);
	assert_int_equal(stats.merged_records, stats.evicted_records);
	assert_int_equal(stats.cold_reads, 0);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

/* Everything, including the last block; what is read then has no place but the read buffer. */
static void test_demand_for_everything(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct rig rig;

	open_half_cold(&rig, 0);
	stats = rig_demand(&rig, 0, RIG_DEADLINE_MS);
	assert_int_equal(stats.held_bytes, 0);
	assert_int_equal(stats.cold_records, RECORDS);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	assert_int_equal(rig_read(&rig, 5, 0), OLTP_OK);
	assert_int_equal(rig_stats(&rig).held_bytes, 0);
	rig_demand(&rig, 2 * MIB, 0);
	assert_int_equal(rig_read(&rig, 6, 0), OLTP_OK);
	rig_close(&rig);
}

static void test_hot_records_stay(void **state)
{
	(void)state;
	uint32_t hot_cold = 0, others_cold = 0;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	/* Every fourth is used later. */
	rig_age(&rig);
	for (uint64_t key = 0; key < RECORDS; key += 4)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	for (uint64_t key = 0; key < RECORDS; key++) {
		if (key % 4)
			others_cold += rig_is_cold(&rig, key);
		else
			hot_cold += rig_is_cold(&rig, key);
	}
	assert_true(others_cold >= RECORDS / 2 - RIG_PER_BLOCK / 4);
	assert_true(hot_cold < RECORDS / 4 / 20);
	rig_close(&rig);
}

/* The newest bytes count, however often a record has gone and come. */
static void test_updates_survive_cycles(void **state)
{
	(void)state;
	static uint64_t counters[RECORDS];
	uint64_t random = 1;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	open_half_cold(&rig, 0);
	for (int cycle = 0; cycle < 6; cycle++) {
		for (int i = 0; i < 1500; i++) {
			uint64_t key;

			chance_step(&random);
			key = (random >> 33) % RECORDS;
			assert_int_equal(rig_update(&rig, key, counters[key] + 1), OLTP_OK);
			counters[key]++;
		}
		assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
		rig_demand(&rig, cycle % 2 ? 4 * MIB : 2 * MIB, RIG_DEADLINE_MS);
		assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
		if (cycle == 2)
			rig_demand(&rig, 16 * MIB, 0);
	}
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, counters[key]), OLTP_OK);
	rig_close(&rig);
}

/* What a transaction announced comes with one fetch. */
static void test_announced_records_come_together(void **state)
{
	(void)state;
	struct oltp_hint hints[10];
	struct oltp_memory_stats stats;
	const void *record;
	uint64_t reads;
	struct rig rig;
	uint32_t n = 0;

	open_half_cold(&rig, 0);
	for (uint64_t key = 0; n < 10; key++) {
		if (!rig_is_cold(&rig, key))
			continue;
		hints[n] = (struct oltp_hint){ key, 0, 8, n % 2 ? rig.table : NULL };
		n++;
	}
	reads = rig_stats(&rig).cold_reads;
	oltp_txn_begin(rig.w);
	oltp_txn_prefetch(rig.w, rig.table, hints, n);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, hints[0].key, &record), OLTP_COLD);
	/* Nothing else is accepted now. */
	assert_int_equal(oltp_txn_read(rig.w, rig.table, hints[1].key, &record), OLTP_INVALID);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_INVALID);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_cold_wait(rig.w), OLTP_OK);
	oltp_txn_begin(rig.w);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(oltp_txn_read(rig.w, rig.table, hints[i].key, &record), OLTP_OK);
		assert_true(rig_record_is(record, hints[i].key, 0));
	}
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	stats = rig_stats(&rig);
	assert_int_equal(stats.cold_reads - reads, n);
	rig_close(&rig);
}

static void test_fetch_refuses_what_makes_no_sense(void **state)
{
	(void)state;
	struct oltp_cold_done done[2];
	const void *record;
	struct rig rig;
	uint64_t key = 0;

	open_half_cold(&rig, 0);
	while (!rig_is_cold(&rig, key))
		key++;
	assert_int_equal(oltp_cold_fetch(rig.w, OLTP_TICKETS), OLTP_INVALID);
	oltp_txn_begin(rig.w);
	oltp_txn_read(rig.w, rig.table, key, &record);
	/* Before the abort. */
	assert_int_equal(oltp_cold_fetch(rig.w, 3), OLTP_INVALID);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_cold_fetch(rig.w, 3), OLTP_OK);
	/* Nothing left to fetch. */
	assert_int_equal(oltp_cold_fetch(rig.w, 4), OLTP_INVALID);
	assert_int_equal(oltp_cold_poll(rig.w, done, 2, true), 1);
	assert_int_equal(done[0].ticket, 3);
	assert_int_equal(done[0].rc, OLTP_OK);
	assert_int_equal(oltp_cold_poll(rig.w, done, 2, true), 0);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	rig_close(&rig);
}

/* A worker may go while its reads are on their way. */
static void test_worker_leaves_with_reads_in_flight(void **state)
{
	(void)state;
	const void *record;
	struct rig rig;
	uint32_t ticket = 0;

	open_half_cold(&rig, 0);
	for (uint64_t key = 0; ticket < OLTP_TICKETS; key++) {
		oltp_txn_begin(rig.w);
		if (oltp_txn_read(rig.w, rig.table, key, &record) == OLTP_COLD) {
			oltp_txn_abort(rig.w);
			assert_int_equal(oltp_cold_fetch(rig.w, ticket++), OLTP_OK);
		}
		oltp_txn_abort(rig.w);
	}
	oltp_worker_destroy(rig.w);
	assert_int_equal(oltp_worker_create(rig.engine, &rig.w), 0);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	rig_close(&rig);
}

static void test_insert_of_a_cold_key_and_of_a_new_one(void **state)
{
	(void)state;
	uint8_t bytes[RIG_RECORD_BYTES];
	struct rig rig;
	enum oltp_rc rc;
	uint64_t key = 0;

	open_half_cold(&rig, 0);
	while (!rig_is_cold(&rig, key))
		key++;
	rig_fill_record(bytes, key, 9);
	oltp_txn_begin(rig.w);
	assert_int_equal(oltp_txn_insert(rig.w, rig.table, key, bytes), OLTP_COLD);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_cold_wait(rig.w), OLTP_OK);
	do {
		oltp_txn_begin(rig.w);
		rc = oltp_txn_insert(rig.w, rig.table, key, bytes);
		oltp_txn_abort(rig.w);
	} while (rc == OLTP_CONFLICT);
	assert_int_equal(rc, OLTP_EXISTS);
	/* More than fit: room is made for them. */
	rig_insert(&rig, RECORDS, 2 * RECORDS);
	assert_true(rig_stats(&rig).held_bytes <= 4 * MIB);
	assert_int_equal(rig_scan(&rig, 2 * RECORDS, NULL), 0);
	rig_close(&rig);
}

/* The table is larger than memory from the start. */
static void test_load_into_too_little_memory(void **state)
{
	(void)state;
	struct rig rig;

	rig_open(&rig, OLTP_CC_WAIT_DIE, 2 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	assert_int_equal(rig_stats(&rig).held_bytes, 2 * MIB);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	for (uint64_t key = 0; key < RECORDS; key += 7)
		assert_int_equal(rig_update(&rig, key, 1), OLTP_OK);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, key % 7 == 0), OLTP_OK);
	rig_close(&rig);
}

/* ---- the disk fails ---------------------------------------------------------------------- */

struct fault {
	bool on_write;
	uint64_t nth;		/* the first that fails, from 0 */
	uint64_t n;		/* how many fail from there on */
	int32_t result;		/* INT32_MIN: half of what was asked for */
	uint64_t flip_at;	/* a byte to change in reads instead; UINT64_MAX: none */
	_Atomic uint64_t seen;
	_Atomic uint64_t failed;
};

static int32_t inject(void *ctx, const struct io_request *request, int32_t result)
{
	struct fault *fault = ctx;
	uint64_t i;

	if (request->is_write != fault->on_write)
		return result;
	i = atomic_fetch_add(&fault->seen, 1);
	if (i < fault->nth || i - fault->nth >= fault->n)
		return result;
	atomic_fetch_add(&fault->failed, 1);
	if (fault->flip_at != UINT64_MAX) {
		((uint8_t *)request->buffer)[fault->flip_at % request->bytes] ^= 0x10;
		return result;
	}
	return fault->result == INT32_MIN ? (int32_t)request->bytes / 2 : fault->result;
}

static void open_full(struct rig *rig, struct fault *fault, uint64_t cold_bytes)
{
	rig_open(rig, OLTP_CC_NO_WAIT, 8 * MIB, true, cold_bytes);
	rig_hook(rig, inject, fault);
	rig_insert(rig, 0, RECORDS);
}

static void write_fails(uint64_t nth, int32_t result)
{
	struct fault fault = { .on_write = true, .nth = nth, .n = 1, .result = result,
			       .flip_at = UINT64_MAX };
	struct oltp_memory_stats stats;
	struct rig rig;

	open_full(&rig, &fault, 0);
	stats = rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	/* The next try, before the deadline, did it. */
	assert_int_equal(stats.held_bytes, 4 * MIB);
	assert_int_equal(stats.unanswered_bytes, 0);
	assert_int_equal(fault.failed, 1);
	assert_int_equal(stats.write_errors, result == INT32_MIN ? 0 : 1);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	rig_close(&rig);
}

static void test_nth_write_fails(void **state)
{
	(void)state;
	for (uint64_t nth = 0; nth < 16; nth += 3)
		write_fails(nth, nth % 2 ? -EIO : -ENOSPC);
}

static void test_short_write_is_done_again(void **state)
{
	(void)state;
	write_fails(0, INT32_MIN);
	write_fails(5, INT32_MIN);
}

static void all_writes_fail(int32_t result)
{
	struct fault fault = { .on_write = true, .n = UINT64_MAX, .result = result,
			       .flip_at = UINT64_MAX };
	struct oltp_memory_stats stats;
	uint32_t deadline_ms = 300;
	struct rig rig;

	open_full(&rig, &fault, 0);
	stats = rig_demand(&rig, 4 * MIB, deadline_ms);
	/* The time was up before it could try. */
	while (!stats.write_errors && deadline_ms < RIG_DEADLINE_MS) {
		rig_close(&rig);
		open_full(&rig, &fault, 0);
		deadline_ms *= 4;
		stats = rig_demand(&rig, 4 * MIB, deadline_ms);
	}
	assert_int_equal(stats.held_bytes, 8 * MIB);
	assert_int_equal(stats.answered_bytes, 0);
	assert_int_equal(stats.unanswered_bytes, 4 * MIB);
	assert_int_equal(stats.unanswered_demands, 1);
	assert_true(stats.write_errors > 0);
	assert_int_equal(stats.cold_records, 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(stats.file_used_bytes, 0);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	/* The disk is well again, and the host asks again. */
	fault.n = 0;
	stats = rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(stats.held_bytes, 4 * MIB);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

static void test_all_writes_fail(void **state)
{
	(void)state;
	all_writes_fail(-EIO);
	all_writes_fail(-ENOSPC);
	all_writes_fail(INT32_MIN);
}

/* Two of four blocks fit on the disk, beside the two extents that are kept back for compaction. */
static void test_disk_full(void **state)
{
	(void)state;
	const uint64_t file_bytes = 4 * MIB + 2 * COLD_EXTENT_BYTES;
	struct fault fault = { .flip_at = UINT64_MAX };
	struct oltp_memory_stats stats;
	struct rig rig;

	open_full(&rig, &fault, file_bytes);
	assert_int_equal(rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS).held_bytes, 4 * MIB);
	stats = rig_demand(&rig, 0, 500);
	assert_int_equal(stats.file_bytes, file_bytes);
	assert_int_equal(stats.held_bytes, 4 * MIB);
	assert_int_equal(stats.answered_bytes, 4 * MIB);
	assert_int_equal(stats.unanswered_bytes, 4 * MIB);
	assert_int_equal(stats.cold_records + stats.resident_records, RECORDS);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

/* With no disk at all the demand gets what is not used, and says so. */
static void test_no_disk(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 32 * MIB, false, 0);
	rig_insert(&rig, 0, RECORDS);
	assert_int_equal(rig_stats(&rig).held_bytes, 32 * MIB);
	stats = rig_demand(&rig, 4 * MIB, 200);
	assert_int_equal(stats.held_bytes, 8 * MIB);
	assert_int_equal(stats.answered_bytes, 24 * MIB);
	assert_int_equal(stats.unanswered_bytes, 4 * MIB);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

static void read_fails(uint64_t nth, int32_t result, uint64_t flip_at)
{
	struct fault fault = { .nth = nth, .n = UINT64_MAX, .result = result, .flip_at = flip_at };
	uint64_t reads = 0, key;
	struct rig rig;

	open_full(&rig, &fault, 0);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	for (key = 0; reads < nth; key++) {
		reads += rig_is_cold(&rig, key);
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	}
	while (!rig_is_cold(&rig, key))
		key++;
	assert_int_equal(rig_read(&rig, key, 0), OLTP_IO);
	assert_int_equal(rig_stats(&rig).read_errors, 1);
	assert_true(rig_is_cold(&rig, key));
	/* Those in memory are not touched by it. */
	fault.n = 0;
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_int_equal(rig_stats(&rig).read_errors, 1);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

static void test_nth_read_fails(void **state)
{
	(void)state;
	read_fails(0, -EIO, UINT64_MAX);
	read_fails(3, -EIO, UINT64_MAX);
	read_fails(10, INT32_MIN, UINT64_MAX);
}

static void test_changed_bytes_are_found_wherever_they_are(void **state)
{
	(void)state;
	/* Key, checksum, first, middle and last byte of the record. */
	static const uint64_t places[] = { 0, 8, 16, 500, 1023 };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		read_fails(0, 0, places[i]);
}

static void test_short_read_is_done_again(void **state)
{
	(void)state;
	struct fault fault = { .n = 1, .result = INT32_MIN, .flip_at = UINT64_MAX };
	struct rig rig;
	uint64_t key = 0;

	open_full(&rig, &fault, 0);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	while (!rig_is_cold(&rig, key))
		key++;
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_int_equal(fault.failed, 1);
	assert_int_equal(rig_stats(&rig).read_errors, 0);
	rig_close(&rig);
}

/* Where the cold record lies on disk. */
static struct cold_block *block_of(struct rig *rig, uint64_t key, uint32_t *ret_slot)
{
	struct index_ref ref;

	assert_null(index_find(&rig->table->index, key, index_hash(key), &ref));
	*ret_slot = cold_stub_slot(ref.entry);
	return cold_stub_block(rig->engine->cold, ref.entry);
}

/* Changes a bit of the record on the disk itself, for good. */
static void damage(struct rig *rig, const struct cold_block *block, uint32_t slot)
{
	const int fd = rig->engine->cold->file.fd;
	const uint64_t offset = block->base +
				(uint64_t)slot * cold_stride(rig->table);
	uint8_t *sector = aligned_alloc(4096, 4096);

	assert_int_equal(pread(fd, sector, 4096, (off_t)(offset & ~4095ull)), 4096);
	sector[(offset & 4095) + 700] ^= 1;
	assert_int_equal(pwrite(fd, sector, 4096, (off_t)(offset & ~4095ull)), 4096);
	free(sector);
}

/* The limit leaves room for all: all come back but one, which is tried and stays. */
static void expect_all_but(struct rig *rig, uint64_t key, uint64_t limit_bytes)
{
	uint64_t errors;

	rig_demand(rig, limit_bytes, 0);
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && rig_stats(rig).cold_records > 1; ms++) {
		rig_work(rig);
		rig_sleep_ms(1);
	}
	assert_int_equal(rig_stats(rig).cold_records, 1);
	errors = rig_stats(rig).read_errors;
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && rig_stats(rig).read_errors == errors; ms++) {
		rig_work(rig);
		rig_sleep_ms(1);
	}
	assert_true(rig_stats(rig).read_errors > errors);
	assert_true(rig_is_cold(rig, key));
	assert_int_equal(rig_stats(rig).cold_records, 1);
}

static void test_damage_on_disk(void **state)
{
	struct cold_block *block;
	struct rig rig;
	uint64_t key = 0;
	uint32_t slot;

	(void)state;
	open_half_cold(&rig, 0);
	while (!rig_is_cold(&rig, key))
		key++;
	block = block_of(&rig, key, &slot);
	damage(&rig, block, slot);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_IO);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), -EIO);
	/* Its neighbours are well. */
	for (uint64_t other = 0; other < RECORDS; other++) {
		if (other != key)
			assert_int_equal(rig_read(&rig, other, 0), OLTP_OK);
	}
	expect_all_but(&rig, key, 16 * MIB);
	rig_close(&rig);
}

static void remove_row(struct rig *rig, uint64_t key)
{
	enum oltp_rc rc;

	do {
		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		rc = oltp_txn_delete(rig->w, rig->table, key);
		if (!rc)
			rc = oltp_txn_commit(rig->w);
		if (rc)
			oltp_txn_abort(rig->w);
		if (rc == OLTP_COLD)
			assert_int_equal(oltp_cold_wait(rig->w), OLTP_OK);
	} while (rc == OLTP_COLD || rc == OLTP_CONFLICT);
	assert_int_equal(rc, OLTP_OK);
}

static void remove_all_but(struct rig *rig, const struct cold_block *block, uint64_t key)
{
	const uint32_t n = block->n;
	uint64_t keys[COLD_SLOTS_MAX];

	memcpy(keys, (const void *)block->keys, n * sizeof(*keys));
	for (uint32_t i = 0; i < n; i++)
		if (keys[i] != key)
			remove_row(rig, keys[i]);
}

/*
 * Two extents of a large file have one record left each, so that they are worth compacting, and one
 * of these records is damaged: compaction fails each time that it is tried.
 */
static void test_damage_where_few_are_left(void **state)
{
	struct cold_block *block, *second;
	uint64_t key = 0, other;
	uint32_t slot, unused;
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 64 * MIB, true, 0);
	rig_insert(&rig, 0, LARGE);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	while (!rig_is_cold(&rig, key))
		key++;
	block = second = block_of(&rig, key, &slot);
	for (other = key + 1; second == block; other += second == block)
		if (rig_is_cold(&rig, other))
			second = block_of(&rig, other, &unused);
	damage(&rig, block, slot);
	remove_all_but(&rig, block, key);
	remove_all_but(&rig, second, other);
	expect_all_but(&rig, key, 64 * MIB);
	rig_close(&rig);
}

/* A write that never reached the disk: the extent holds older records. */
static int32_t swallow(void *ctx, const struct io_request *request, int32_t result)
{
	const struct rig *rig = ctx;
	uint8_t *old = aligned_alloc(4096, COLD_EXTENT_BYTES);

	if (request->is_write) {
		memset(old, 0, COLD_EXTENT_BYTES);
		if (pwrite(rig->engine->cold->file.fd, old, request->bytes,
			   (off_t)request->offset) != (ssize_t)request->bytes)
			abort();
	}
	free(old);
	return result;
}

static void test_lost_write_is_found(void **state)
{
	(void)state;
	struct rig rig;
	uint64_t key = 0;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_hook(&rig, swallow, &rig);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	while (!rig_is_cold(&rig, key))
		key++;
	assert_int_equal(rig_read(&rig, key, 0), OLTP_IO);
	rig_close(&rig);
}

static void test_cold_dir_must_be_a_folder(void **state)
{
	(void)state;
	struct oltp_config config = { .node = -1, .cold_dir = "/nowhere/at/all" };
	struct oltp_engine *engine;

	assert_int_equal(oltp_engine_open(&config, &engine), -ENOENT);
	config.cold_dir = "/dev/null";
	assert_int_equal(oltp_engine_open(&config, &engine), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_demand_is_met_and_every_record_is_there),
		RIG_TEST(test_all_comes_back_by_itself),
		RIG_TEST(test_demand_for_everything),
		RIG_TEST(test_hot_records_stay),
		RIG_TEST(test_updates_survive_cycles),
		RIG_TEST(test_announced_records_come_together),
		RIG_TEST(test_fetch_refuses_what_makes_no_sense),
		RIG_TEST(test_worker_leaves_with_reads_in_flight),
		RIG_TEST(test_insert_of_a_cold_key_and_of_a_new_one),
		RIG_TEST(test_load_into_too_little_memory),
		RIG_TEST(test_nth_write_fails),
		RIG_TEST(test_short_write_is_done_again),
		RIG_TEST(test_all_writes_fail),
		RIG_TEST(test_disk_full),
		cmocka_unit_test(test_no_disk),
		RIG_TEST(test_nth_read_fails),
		RIG_TEST(test_changed_bytes_are_found_wherever_they_are),
		RIG_TEST(test_short_read_is_done_again),
		RIG_TEST(test_damage_on_disk),
		RIG_TEST(test_damage_where_few_are_left),
		RIG_TEST(test_lost_write_is_found),
		cmocka_unit_test(test_cold_dir_must_be_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
