// SPDX-License-Identifier: GPL-2.0-or-later
/* When the slot of a record that went to disk is free again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"

#define RECORD_BYTES	8u

/* An engine with a disk for records, and no manager but the test. */
struct evict_rig {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *workers[2];
	struct evict evict;
};

static void evict_rig_open(struct evict_rig *rig)
{
	assert_int_equal(oltp_engine_open(NULL, &rig->engine), 0);
	assert_int_equal(cold_create(rig->engine, rig_dir(), 0, &rig->engine->cold), 0);
	assert_int_equal(oltp_table_create(rig->engine, RECORD_BYTES, 16, &rig->table), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rig->workers); i++)
		assert_int_equal(oltp_worker_create(rig->engine, &rig->workers[i]), 0);
	assert_int_equal(evict_init(&rig->evict, rig->engine), 0);
}

static void evict_rig_close(struct evict_rig *rig)
{
	evict_finish(&rig->evict);
	for (size_t i = 0; i < ARRAY_SIZE(rig->workers); i++)
		oltp_worker_destroy(rig->workers[i]);
	oltp_engine_close(rig->engine);
}

static void insert(struct evict_rig *rig, uint64_t key)
{
	const uint64_t data = key;

	assert_int_equal(oltp_txn_begin(rig->workers[0]), OLTP_OK);
	assert_int_equal(oltp_txn_insert(rig->workers[0], rig->table, key, &data), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->workers[0]), OLTP_OK);
}

static void evict_key(struct evict_rig *rig, uint64_t key)
{
	struct index_ref ref;
	struct record *record = index_find(&rig->table->index, key, index_hash(key), &ref);

	assert_non_null(record);
	assert_int_equal(evict_to_disk(&rig->evict, rig->table, record), EVICT_DONE);
	evict_flush(&rig->evict);
}

/*
 * Only transactions that were there when the record left the index may still use its slot. With
 * many workers on few CPUs there is always some transaction without a CPU.
 */
static void test_later_transactions_are_not_waited_for(void **state)
{
	struct evict_rig rig;
	uint64_t n_free;

	(void)state;
	evict_rig_open(&rig);
	insert(&rig, 1);
	insert(&rig, 2);
	assert_int_equal(oltp_txn_begin(rig.workers[0]), OLTP_OK);
	evict_key(&rig, 1);
	n_free = storage_free_slots(rig.table);
	assert_false(evict_settle(&rig.evict, 0));
	assert_int_equal(oltp_txn_begin(rig.workers[1]), OLTP_OK);
	assert_false(evict_settle(&rig.evict, 0));
	assert_int_equal(storage_free_slots(rig.table), n_free);
	oltp_txn_abort(rig.workers[0]);
	assert_true(evict_settle(&rig.evict, 0));
	assert_int_equal(storage_free_slots(rig.table), n_free + 1);
	oltp_txn_abort(rig.workers[1]);
	evict_rig_close(&rig);
}

/* A record that leaves the index during the wait has an epoch of its own to wait for. */
static void test_each_record_has_its_epoch(void **state)
{
	struct evict_rig rig;
	uint64_t n_free;

	(void)state;
	evict_rig_open(&rig);
	insert(&rig, 1);
	insert(&rig, 2);
	assert_int_equal(oltp_txn_begin(rig.workers[0]), OLTP_OK);
	evict_key(&rig, 1);
	n_free = storage_free_slots(rig.table);
	assert_false(evict_settle(&rig.evict, 0));
	assert_int_equal(oltp_txn_begin(rig.workers[1]), OLTP_OK);
	evict_key(&rig, 2);
	oltp_txn_abort(rig.workers[0]);
	/* The second transaction may use the second record. */
	assert_false(evict_settle(&rig.evict, 0));
	assert_int_equal(storage_free_slots(rig.table), n_free + 1);
	oltp_txn_abort(rig.workers[1]);
	assert_true(evict_settle(&rig.evict, 0));
	assert_int_equal(storage_free_slots(rig.table), n_free + 2);
	evict_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_transactions_are_not_waited_for),
		cmocka_unit_test(test_each_record_has_its_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
