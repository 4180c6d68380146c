// SPDX-License-Identifier: GPL-2.0-or-later
/* Cold records that are used where they were read to: V1 to V4 of admit.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/cold/fetch.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORDS	8000u	/* four blocks */

/* Half of the records are cold, and there is no more room than has to be. */
static void open_half_cold(struct rig *rig, enum oltp_cc cc)
{
	rig_open(rig, cc, 8 * MIB, true, 0);
	rig_insert(rig, 0, RECORDS);
	/* All stamps older than whatever the tests do. */
	rig_age(rig);
	assert_int_equal(rig_demand(rig, 4 * MIB, RIG_DEADLINE_MS).held_bytes, 4 * MIB);
}

static uint64_t entry_of(struct rig *rig, uint64_t key)
{
	struct index_ref ref;
	uint64_t entry;

	epoch_enter(&rig->engine->epoch, &rig->w->announced, epoch_now(&rig->engine->epoch));
	index_find(&rig->table->index, key, index_hash(key), &ref);
	entry = ref.entry;
	epoch_leave(&rig->w->announced);
	return entry;
}

static bool is_stub(struct rig *rig, uint64_t key)
{
	return entry_of(rig, key) & INDEX_STUB;
}

static bool is_buffered(struct rig *rig, uint64_t key)
{
	uint64_t entry = entry_of(rig, key);

	return !(entry & INDEX_STUB) && entry & INDEX_BUFFERED;
}

static uint64_t next_cold(struct rig *rig, uint64_t key)
{
	while (!is_stub(rig, key))
		assert_true(++key < RECORDS);
	return key;
}

/* Returns the key after the last one read. */
static uint64_t read_cold(struct rig *rig, uint64_t from, uint32_t n)
{
	uint64_t key = from;

	for (; n; key++) {
		assert_true(key < RECORDS);
		n -= is_stub(rig, key);
		assert_int_equal(rig_read(rig, key, 0), OLTP_OK);
	}
	return key;
}

/* Until all buffered records were released. */
static uint64_t read_others(struct rig *rig, uint64_t from)
{
	return read_cold(rig, from, 2 * BUFFERED_MAX);
}

static void test_one_use_moves_nothing(void **state)
{
	(void)state;
	struct oltp_memory_stats before, after;
	struct rig rig;
	uint64_t key;

	open_half_cold(&rig, OLTP_CC_NO_WAIT);
	before = rig_stats(&rig);
	key = next_cold(&rig, 0);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_true(is_buffered(&rig, key));
	/* It counts as on disk, and a look over the table meets it once. */
	assert_int_equal(rig_stats(&rig).cold_records, before.cold_records);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	assert_true(is_buffered(&rig, key));
	read_others(&rig, key + 1);
	assert_true(is_stub(&rig, key));
	after = rig_stats(&rig);
	assert_int_equal(after.read_errors, 0);
	assert_true(after.cold_reads - before.cold_reads > 2 * BUFFERED_MAX);
	/* Nothing had to go for what came. */
	assert_true(after.evicted_records - before.evicted_records < BUFFERED_MAX / 8);
	assert_true(after.merged_records - before.merged_records < BUFFERED_MAX / 8);
	/* And it can be read again. */
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

static void test_what_is_used_again_moves_in(void **state)
{
	(void)state;
	struct rig rig;
	uint64_t key, other, next;

	open_half_cold(&rig, OLTP_CC_NO_WAIT);
	/* Has some room made, which is made in the background. */
	rig_insert(&rig, RECORDS, RECORDS + 1);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && storage_free_slots(rig.table) < 100; ms++)
		rig_sleep_ms(1);
	/* However long loading took: whatever is cold was used before what went last. */
	cold_evict_until(rig.engine->cold, rig.table, epoch_now(&rig.engine->epoch));
	rig_age(&rig);
	/* While it is buffered. */
	key = next_cold(&rig, 0);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	/* Or read from disk once more. */
	other = next_cold(&rig, key + 1);
	assert_int_equal(rig_read(&rig, other, 0), OLTP_OK);
	next = read_others(&rig, other + 1);
	assert_false(is_stub(&rig, key) || is_buffered(&rig, key));
	assert_true(is_stub(&rig, other));
	assert_int_equal(rig_read(&rig, other, 0), OLTP_OK);
	/* Different ones: the first would be used for the second time, too. */
	read_others(&rig, next);
	assert_false(is_stub(&rig, other) || is_buffered(&rig, other));
	assert_int_equal(rig_scan(&rig, RECORDS + 1, NULL), 0);
	rig_close(&rig);
}

static void test_what_is_written_stays_written(void **state)
{
	(void)state;
	static uint64_t counters[RECORDS];
	uint64_t key = 0, next, n_in = 0;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	open_half_cold(&rig, OLTP_CC_WAIT_DIE);
	for (int i = 0; i < 50; i++, key++) {
		key = next_cold(&rig, key);
		assert_int_equal(rig_update(&rig, key, ++counters[key]), OLTP_OK);
		assert_true(is_buffered(&rig, key));
	}
	next = key;
	/* One for which there is no room stays as it is; room is made in the background. */
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && !n_in; ms++) {
		read_others(&rig, next);
		for (key = 0; key < RECORDS; key++) {
			if (!counters[key])
				continue;
			assert_false(is_stub(&rig, key));
			n_in += !is_buffered(&rig, key);
		}
		rig_sleep_ms(1);
	}
	assert_true(n_in > 0);
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_demand(&rig, 2 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	for (key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, counters[key]), OLTP_OK);
	rig_close(&rig);
}

/* An update that was taken back makes the record no worse. */
static void test_aborted_update(void **state)
{
	(void)state;
	const struct oltp_span all = { 0, RIG_RECORD_BYTES };
	struct rig rig;
	void *record;
	uint64_t key;

	open_half_cold(&rig, OLTP_CC_NO_WAIT);
	key = next_cold(&rig, 0);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_true(is_buffered(&rig, key));
	oltp_txn_begin(rig.w);
	assert_int_equal(oltp_txn_update(rig.w, rig.table, key, &all, 1, &record), OLTP_OK);
	memset(record, 0xee, RIG_RECORD_BYTES);
	oltp_txn_abort(rig.w);
	read_others(&rig, key + 1);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

/* Somebody reads it for long: it is not released, and the bytes stay what they are (V4). */
static void test_buffered_record_in_use(void **state)
{
	(void)state;
	struct oltp_worker *other;
	const void *record;
	struct rig rig;
	uint64_t key;

	open_half_cold(&rig, OLTP_CC_NO_WAIT);
	assert_int_equal(oltp_worker_create(rig.engine, &other), 0);
	key = next_cold(&rig, 0);
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	oltp_txn_begin(other);
	assert_int_equal(oltp_txn_read(other, rig.table, key, &record), OLTP_OK);
	/* Not more than can be buffered: nothing else gets room while an epoch lasts. */
	read_cold(&rig, key + 1, BUFFERED_MAX - 1);
	assert_true(is_buffered(&rig, key));
	assert_true(rig_record_is(record, key, 0));
	assert_int_equal(oltp_txn_commit(other), OLTP_OK);
	assert_int_equal(rig_update(&rig, key, 1), OLTP_OK);
	oltp_worker_destroy(other);
	rig_close(&rig);
}

/* The worker whose buffer it is goes first. */
static void test_owner_leaves(void **state)
{
	(void)state;
	static uint64_t counters[RECORDS];
	struct oltp_worker *other;
	const void *record;
	struct rig rig;
	uint64_t used, written;

	memset(counters, 0, sizeof(counters));
	open_half_cold(&rig, OLTP_CC_NO_WAIT);
	assert_int_equal(oltp_worker_create(rig.engine, &other), 0);
	used = next_cold(&rig, 0);
	written = next_cold(&rig, used + 1);
	assert_int_equal(rig_read(&rig, used, 0), OLTP_OK);
	assert_int_equal(rig_update(&rig, written, ++counters[written]), OLTP_OK);
	oltp_txn_begin(other);
	assert_int_equal(oltp_txn_read(other, rig.table, used, &record), OLTP_OK);
	oltp_worker_destroy(rig.w);
	rig_sleep_ms(100);
	assert_true(rig_record_is(record, used, 0));
	assert_int_equal(oltp_txn_commit(other), OLTP_OK);
	rig.w = other;
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS &&
			 (is_buffered(&rig, used) || is_buffered(&rig, written)); ms++)
		rig_sleep_ms(1);
	assert_false(is_buffered(&rig, used));
	assert_false(is_stub(&rig, written) || is_buffered(&rig, written));
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_close(&rig);
}

/* With memory back they come home without anybody asking for them. */
static void test_buffered_records_move_in_when_there_is_room(void **state)
{
	(void)state;
	static uint64_t counters[RECORDS];
	struct rig rig;
	uint64_t key = 0;

	memset(counters, 0, sizeof(counters));
	open_half_cold(&rig, OLTP_CC_NO_WAIT);
	for (int i = 0; i < 100; i++, key++) {
		key = next_cold(&rig, key);
		if (i % 2)
			assert_int_equal(rig_update(&rig, key, ++counters[key]), OLTP_OK);
		else
			assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
		assert_true(is_buffered(&rig, key));
	}
	rig_read_back(&rig, 16 * MIB);
	for (key = 0; key < RECORDS; key++)
		assert_false(is_stub(&rig, key) || is_buffered(&rig, key));
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_close(&rig);
}

/* A block that may be had is taken, also by what is used once. */
static void test_the_last_block_is_taken(void **state)
{
	(void)state;
	const uint64_t n = 48000;	/* what is kept free of so many is more than a block */
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 64 * MIB, true, 0);
	rig_insert(&rig, 0, n);
	rig_age(&rig);
	assert_int_equal(rig_demand(&rig, 44 * MIB, RIG_DEADLINE_MS).held_bytes, 44 * MIB);
	rig_demand(&rig, 46 * MIB, 0);
	for (uint64_t key = 0; key < n; key++) {
		if (is_stub(&rig, key))
			assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	}
	assert_int_equal(rig_stats(&rig).held_bytes, 46 * MIB);
	rig_close(&rig);
}

/* No memory at all: records can be buffered, and written until they fill all buffers. */
static void test_no_memory_but_for_buffered_records(void **state)
{
	(void)state;
	static uint64_t counters[RECORDS];
	enum oltp_rc rc = OLTP_OK;
	struct rig rig;
	uint64_t n = 0;

	memset(counters, 0, sizeof(counters));
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	assert_int_equal(rig_demand(&rig, 0, RIG_DEADLINE_MS).held_bytes, 0);
	for (uint64_t key = 0; key < RECORDS; key += 5)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	for (; !rc && n < RECORDS; n++) {
		rc = rig_update(&rig, n, 1);
		counters[n] = !rc;
	}
	assert_int_equal(rc, OLTP_NO_MEMORY);
	assert_true(n > BUFFERED_MAX / 2 && n <= BUFFERED_MAX + 1);
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_demand(&rig, 2 * MIB, 0);
	for (; n < RECORDS; n++) {
		assert_int_equal(rig_update(&rig, n, 1), OLTP_OK);
		counters[n] = 1;
	}
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_use_moves_nothing),
		cmocka_unit_test(test_what_is_used_again_moves_in),
		cmocka_unit_test(test_what_is_written_stays_written),
		cmocka_unit_test(test_aborted_update),
		cmocka_unit_test(test_buffered_record_in_use),
		cmocka_unit_test(test_owner_leaves),
		cmocka_unit_test(test_buffered_records_move_in_when_there_is_room),
		cmocka_unit_test(test_the_last_block_is_taken),
		cmocka_unit_test(test_no_memory_but_for_buffered_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
