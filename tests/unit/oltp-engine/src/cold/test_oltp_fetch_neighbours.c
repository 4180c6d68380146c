// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Small records: those that lie in the sectors that are read for one come with it while there is
 * room to spare, and only then.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORDS		20000u
#define RECORD_BYTES	48u
#define NO_ONE		UINT64_MAX

struct small {
	struct rig rig;
	struct oltp_table *table;
	uint32_t n_fail;
};

/*
 * The manager reads whole extents, ahead of those who will want them: here it cannot. ctx: so many
 * reads of others fail.
 */
static int32_t only_sectors(void *ctx, const struct io_request *request, int32_t result)
{
	uint32_t *n_fail = ctx;

	if (request->is_write)
		return result;
	if (request->bytes == COLD_EXTENT_BYTES)
		return -5;
	if (!*n_fail)
		return result;
	--*n_fail;
	return -5;
}

static void fill(uint8_t *record, uint64_t key)
{
	memset(record, (int)key, RECORD_BYTES);
	memcpy(record, &key, sizeof(key));
}

/* All of them are cold. room_bytes: may be had then. */
static void open_cold(struct small *s, uint64_t room_bytes)
{
	uint8_t record[RECORD_BYTES];

	rig_open(&s->rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	s->n_fail = 0;
	rig_hook(&s->rig, only_sectors, &s->n_fail);
	assert_int_equal(oltp_table_create(s->rig.engine, RECORD_BYTES, RECORDS, &s->table), 0);
	for (uint64_t key = 0; key < RECORDS; key++) {
		fill(record, key);
		oltp_txn_begin(s->rig.w);
		assert_int_equal(oltp_txn_insert(s->rig.w, s->table, key, record), OLTP_OK);
		assert_int_equal(oltp_txn_commit(s->rig.w), OLTP_OK);
	}
	rig_age(&s->rig);
	assert_int_equal(rig_demand(&s->rig, 0, RIG_DEADLINE_MS).cold_records, RECORDS);
	if (!room_bytes)
		return;
	rig_demand(&s->rig, room_bytes, 0);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS &&
			 !cold_has_room(s->rig.engine->cold, s->table); ms++)
		rig_sleep_ms(1);
	assert_true(cold_has_room(s->rig.engine->cold, s->table));
}

static uint64_t entry_of(struct small *s, uint64_t key)
{
	struct oltp_worker *w = s->rig.w;
	struct index_ref ref;

	epoch_enter(&s->rig.engine->epoch, &w->announced, epoch_now(&s->rig.engine->epoch));
	index_find(&s->table->index, key, index_hash(key), &ref);
	epoch_leave(&w->announced);
	return ref.entry;
}

/*
 * Those that are read with a record, itself among them: of the n slots around it, whose keys go
 * into ret_keys.
 */
static uint32_t together(struct small *s, uint64_t key, uint64_t *ret_keys, uint32_t n)
{
	struct cold *cold = s->rig.engine->cold;
	uint64_t entry = entry_of(s, key);
	struct cold_block *block = cold_stub_block(cold, entry);
	struct cold_place place = cold_stub_place(cold, entry);
	uint64_t from = place.offset - block->base;
	uint32_t found = 0, stride = cold_stride(s->table);

	for (uint32_t slot = 0; slot < block->n && found < n; slot++) {
		if ((uint64_t)slot * stride >= from &&
		    (slot + 1ull) * stride <= from + place.bytes)
			ret_keys[found++] = atomic_load(&block->keys[slot]);
	}
	return found;
}

static bool is_cold(struct small *s, uint64_t key)
{
	return entry_of(s, key) & INDEX_STUB;
}

static enum oltp_rc attempt(struct small *s, uint64_t key, uint64_t other)
{
	struct oltp_hint hints[2] = { { key, 0, 8, NULL }, { other, 0, 8, NULL } };
	uint8_t expected[RECORD_BYTES];
	struct oltp_worker *w = s->rig.w;
	const void *record;
	enum oltp_rc rc;

	oltp_txn_begin(w);
	oltp_txn_prefetch(w, s->table, hints, other == NO_ONE ? 1 : 2);
	for (uint32_t i = 0; i < (other == NO_ONE ? 1 : 2); i++) {
		rc = oltp_txn_read(w, s->table, hints[i].key, &record);
		if (rc) {
			oltp_txn_abort(w);
			return rc;
		}
		fill(expected, hints[i].key);
		assert_memory_equal(record, expected, RECORD_BYTES);
	}
	return oltp_txn_commit(w);
}

static void test_others_come_with_one(void **state)
{
	(void)state;
	uint64_t keys[4096], reads, merged;
	struct small s;
	uint32_t n;

	open_cold(&s, 16 * MIB);
	n = together(&s, RECORDS / 2, keys, 4096);
	assert_true(n > 4);
	reads = rig_stats(&s.rig).cold_reads;
	assert_int_equal(attempt(&s, RECORDS / 2, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_wait(s.rig.w), OLTP_OK);
	for (uint32_t i = 0; i < n; i++) {
		assert_false(is_cold(&s, keys[i]));
		assert_int_equal(attempt(&s, keys[i], NO_ONE), OLTP_OK);
	}
	merged = rig_stats(&s.rig).merged_records;
	assert_int_equal(merged, n);
	assert_int_equal(rig_stats(&s.rig).cold_records, RECORDS - n);
	assert_int_equal(rig_stats(&s.rig).cold_reads - reads, 1);
	rig_close(&s.rig);
}

/* Others look at them meanwhile: when one was used may be a later epoch than the reader's. */
static void test_used_after_the_reader_began(void **state)
{
	(void)state;
	uint64_t keys[4096];
	struct small s;
	uint32_t n;

	open_cold(&s, 16 * MIB);
	n = together(&s, RECORDS / 2, keys, 4096);
	assert_true(n > 4);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t entry = entry_of(&s, keys[i]);
		struct cold_block *block = cold_stub_block(s.rig.engine->cold, entry);

		atomic_fetch_add(&block->used[cold_stub_slot(entry)], 1000000);
	}
	assert_int_equal(attempt(&s, RECORDS / 2, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_wait(s.rig.w), OLTP_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(attempt(&s, keys[i], NO_ONE), OLTP_OK);
	rig_close(&s.rig);
}

/* The first of two that begin in the same sector, of which the second spans no more of them. */
static void find_pair(struct small *s, uint64_t *ret_key, uint64_t *ret_other)
{
	struct cold *cold = s->rig.engine->cold;

	for (uint64_t key = 0; key < RECORDS; key++) {
		struct cold_place place = cold_stub_place(cold, entry_of(s, key)), next;
		uint64_t keys[4096];
		uint32_t n = together(s, key, keys, 4096);

		if (n < 2 || keys[0] != key)
			continue;
		next = cold_stub_place(cold, entry_of(s, keys[1]));
		if (next.offset == place.offset && next.bytes <= place.bytes) {
			*ret_key = key;
			*ret_other = keys[1];
			return;
		}
	}
	assert_true(false);
}

/* Two that are wanted and lie in the same sectors are one read. */
static void test_two_wait_for_the_same_sectors(void **state)
{
	(void)state;
	uint64_t reads, key, other;
	struct small s;

	open_cold(&s, 16 * MIB);
	find_pair(&s, &key, &other);
	reads = rig_stats(&s.rig).cold_reads;
	assert_int_equal(attempt(&s, key, other), OLTP_COLD);
	assert_int_equal(oltp_cold_wait(s.rig.w), OLTP_OK);
	assert_int_equal(attempt(&s, key, other), OLTP_OK);
	assert_int_equal(rig_stats(&s.rig).cold_reads - reads, 1);
	rig_close(&s.rig);
}

/* The one that it is made for fails with it; the other is read for itself. */
static void test_a_read_that_fails(void **state)
{
	(void)state;
	struct oltp_cold_done done;
	uint64_t key, other;
	struct small s;

	open_cold(&s, 16 * MIB);
	find_pair(&s, &key, &other);
	s.n_fail = 1;
	assert_int_equal(attempt(&s, key, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_fetch(s.rig.w, 3), OLTP_OK);
	assert_int_equal(attempt(&s, other, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_fetch(s.rig.w, 4), OLTP_OK);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(oltp_cold_poll(s.rig.w, &done, 1, true), 1);
		assert_int_equal(done.rc, done.ticket == 3 ? OLTP_IO : OLTP_OK);
	}
	assert_int_equal(s.n_fail, 0);
	assert_int_equal(attempt(&s, other, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_wait(s.rig.w), OLTP_OK);
	assert_int_equal(attempt(&s, other, NO_ONE), OLTP_OK);
	rig_close(&s.rig);
}

static void test_they_stay_where_room_is_short(void **state)
{
	(void)state;
	uint64_t keys[4096];
	struct small s;
	uint32_t n;

	open_cold(&s, 0);
	n = together(&s, 77, keys, 4096);
	assert_int_equal(attempt(&s, 77, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_wait(s.rig.w), OLTP_OK);
	assert_int_equal(attempt(&s, 77, NO_ONE), OLTP_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(is_cold(&s, keys[i]), keys[i] != 77);
	assert_int_equal(rig_stats(&s.rig).merged_records, 0);
	rig_close(&s.rig);
}

/* The worker's epoch is the transaction's, which looks at records without a lock. */
static void test_not_within_a_transaction(void **state)
{
	(void)state;
	struct oltp_cold_done done;
	const void *record;
	struct small s;

	open_cold(&s, 16 * MIB);
	oltp_txn_begin(s.rig.w);
	/* Nothing was fetched yet. */
	assert_int_equal(oltp_cold_poll(s.rig.w, &done, 1, true), -EINVAL);
	oltp_txn_abort(s.rig.w);
	assert_int_equal(attempt(&s, RECORDS / 2, NO_ONE), OLTP_COLD);
	assert_int_equal(oltp_cold_fetch(s.rig.w, 3), OLTP_OK);
	oltp_txn_begin(s.rig.w);
	assert_int_equal(oltp_cold_poll(s.rig.w, &done, 1, true), -EINVAL);
	assert_int_not_equal(s.rig.w->announced, EPOCH_NONE);
	assert_int_equal(oltp_cold_wait(s.rig.w), OLTP_INVALID);
	/* It has failed, and holds its locks until it is aborted. */
	assert_int_equal(oltp_txn_read(s.rig.w, s.table, 0, &record), OLTP_COLD);
	assert_int_equal(oltp_cold_poll(s.rig.w, &done, 1, false), -EINVAL);
	assert_int_not_equal(s.rig.w->announced, EPOCH_NONE);
	oltp_txn_abort(s.rig.w);
	assert_int_equal(oltp_cold_poll(s.rig.w, &done, 1, true), 1);
	assert_int_equal(done.ticket, 3);
	assert_int_equal(done.rc, OLTP_OK);
	assert_int_equal(attempt(&s, RECORDS / 2, NO_ONE), OLTP_OK);
	rig_close(&s.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others_come_with_one),
		cmocka_unit_test(test_used_after_the_reader_began),
		cmocka_unit_test(test_two_wait_for_the_same_sectors),
		cmocka_unit_test(test_a_read_that_fails),
		cmocka_unit_test(test_they_stay_where_room_is_short),
		cmocka_unit_test(test_not_within_a_transaction),
	};

	return cmocka_run_group_tests_name("oltp_fetch_neighbours", tests, NULL, NULL);
}
