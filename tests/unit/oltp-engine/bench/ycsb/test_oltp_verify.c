// SPDX-License-Identifier: GPL-2.0-or-later
/* YCSB's verification: silent when all is well, and loud for every kind of loss. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/ycsb.h"
#include "oltp-engine/bench/ycsb/ycsb_record.h"

#define RECORDS	500u

struct fixture {
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct oltp_worker *w;
	struct ycsb_config config;
};

static void fixture_open(struct fixture *f, enum oltp_cc cc)
{
	f->config = (struct ycsb_config){ .records = RECORDS, .operations = 10, .update_share = 0.5,
					  .theta = 0.9, .is_scrambled = true, .seed = 3 };
	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .cc = cc }, &f->engine), 0);
	assert_int_equal(ycsb_create(f->engine, &f->config, &f->ycsb), 0);
	assert_int_equal(ycsb_load(f->ycsb, 3), 0);
	assert_int_equal(oltp_worker_create(f->engine, &f->w), 0);
}

static void fixture_close(struct fixture *f)
{
	oltp_worker_destroy(f->w);
	ycsb_destroy(f->ycsb);
	oltp_engine_close(f->engine);
}

/* Until the workers have committed so many transactions more. */
static void wait_commits(struct oltp_pool *pool, uint64_t more)
{
	struct timespec pause = { 0, 1000000 };
	struct oltp_totals before, now;

	oltp_pool_totals(pool, &before);
	do {
		nanosleep(&pause, NULL);
		oltp_pool_totals(pool, &now);
	} while (now.committed < before.committed + more);
}

/* Three unpinned workers, one of them replaced meanwhile. */
static void run_some(struct fixture *f)
{
	struct oltp_workload workload = ycsb_workload(f->ycsb);
	struct oltp_pool_config config = { .engine = f->engine, .workload = &workload,
					   .no_pin = true };
	struct oltp_pool *pool;

	assert_int_equal(oltp_pool_create(&config, &pool), 0);
	for (uint32_t cpu = 0; cpu < 3; cpu++)
		assert_int_equal(oltp_pool_add(pool, cpu), 0);
	wait_commits(pool, 1000);
	assert_int_equal(oltp_pool_remove(pool, 1, NULL), 0);
	assert_int_equal(oltp_pool_add(pool, 7), 0);
	wait_commits(pool, 1000);
	oltp_pool_destroy(pool);
}

static void test_nothing_is_lost(void **state)
{
	(void)state;
	for (enum oltp_cc cc = OLTP_CC_NO_WAIT; cc <= OLTP_CC_WOUND_WAIT; cc++) {
		struct ycsb_verdict v;
		struct fixture f;

		fixture_open(&f, cc);
		run_some(&f);
		ycsb_verify(f.ycsb, &v);
		assert_int_equal(v.records, RECORDS);
		assert_true(v.updates_committed > 0);
		assert_int_equal(v.updates_found, v.updates_committed);
		assert_true(v.is_checksum_equal);
		assert_int_equal(v.damaged_records, 0);
		assert_int_equal(v.inconsistent_reads, 0);
		assert_int_equal(v.lost_updates, 0);
		fixture_close(&f);
	}
}

/* Behind the books' back, in a transaction like any other. */
static struct ycsb_record *open_record(struct fixture *f, uint64_t key)
{
	struct oltp_span all = { 0, sizeof(struct ycsb_record) };
	void *record;

	assert_int_equal(oltp_txn_update(f->w, ycsb_table(f->ycsb), key, &all, 1, &record),
			 OLTP_OK);
	return record;
}

static void update_unaccounted(struct fixture *f, uint64_t key, int by)
{
	struct ycsb_record *record;

	assert_int_equal(oltp_txn_begin(f->w), OLTP_OK);
	record = open_record(f, key);
	record->updates += (uint64_t)(int64_t)by;
	/* The field goes along, so that the record looks sound by itself. */
	for (uint32_t field = 0; field < YCSB_FIELDS; field++)
		ycsb_field_write(record->fields[field], key, field, record->updates);
	assert_int_equal(oltp_txn_commit(f->w), OLTP_OK);
}

static void test_skipped_and_extra_updates_are_counted(void **state)
{
	(void)state;
	struct ycsb_verdict v;
	struct fixture f;

	fixture_open(&f, OLTP_CC_NO_WAIT);
	run_some(&f);
	update_unaccounted(&f, 0, 2);
	ycsb_verify(f.ycsb, &v);
	assert_int_equal(v.lost_updates, 2);
	assert_false(v.is_checksum_equal);
	update_unaccounted(&f, 0, -2);
	ycsb_verify(f.ycsb, &v);
	assert_int_equal(v.lost_updates, 0);
	update_unaccounted(&f, 1, 3);
	update_unaccounted(&f, 1, -4);
	ycsb_verify(f.ycsb, &v);
	assert_int_equal(v.lost_updates, 1);
	assert_int_equal(v.damaged_records, 0);
	fixture_close(&f);
}

static void test_update_of_the_wrong_record_is_found(void **state)
{
	(void)state;
	struct ycsb_verdict v;
	struct fixture f;

	fixture_open(&f, OLTP_CC_NO_WAIT);
	run_some(&f);
	update_unaccounted(&f, 10, 1);
	update_unaccounted(&f, 20, -1);
	ycsb_verify(f.ycsb, &v);
	/* The sum is right, the place is not. */
	assert_int_equal(v.updates_found, v.updates_committed);
	assert_false(v.is_checksum_equal);
	assert_true(v.lost_updates > 0);
	fixture_close(&f);
}

static void test_damaged_bytes_are_found(void **state)
{
	(void)state;
	struct ycsb_verdict v;
	struct fixture f;

	fixture_open(&f, OLTP_CC_NO_WAIT);
	run_some(&f);
	oltp_txn_begin(f.w);
	open_record(&f, 42)->fields[9][YCSB_FIELD_BYTES - 1] ^= 1;
	oltp_txn_commit(f.w);
	ycsb_verify(f.ycsb, &v);
	assert_int_equal(v.damaged_records, 1);
	assert_int_equal(v.lost_updates, 1);
	fixture_close(&f);
}

static void test_field_write_lost_but_counter_kept_is_found(void **state)
{
	(void)state;
	struct ycsb_verdict v;
	struct fixture f;
	struct ycsb_record *record;

	fixture_open(&f, OLTP_CC_NO_WAIT);
	update_unaccounted(&f, 5, 1);
	oltp_txn_begin(f.w);
	record = open_record(&f, 5);
	for (uint32_t field = 0; field < YCSB_FIELDS; field++)
		ycsb_field_write(record->fields[field], 5, field, 0);
	oltp_txn_commit(f.w);
	ycsb_verify(f.ycsb, &v);
	assert_int_equal(v.damaged_records, 1);
	assert_int_equal(v.lost_updates, 1);
	fixture_close(&f);
}

static void test_aborted_update_leaves_no_trace(void **state)
{
	(void)state;
	struct ycsb_verdict v;
	struct fixture f;

	fixture_open(&f, OLTP_CC_NO_WAIT);
	oltp_txn_begin(f.w);
	for (uint64_t key = 0; key < 50; key++)
		memset(open_record(&f, key), 0xff, sizeof(struct ycsb_record));
	oltp_txn_abort(f.w);
	ycsb_verify(f.ycsb, &v);
	assert_int_equal(v.lost_updates, 0);
	assert_int_equal(v.damaged_records, 0);
	fixture_close(&f);
}

static void test_bad_configuration(void **state)
{
	(void)state;
	const struct ycsb_config good = { .records = 10, .operations = 1, .update_share = 1 };
	struct ycsb_config bad[5] = { good, good, good, good, good };
	struct oltp_engine *engine;
	struct ycsb *ycsb;

	bad[0].records = 0;
	bad[1].operations = 0;
	bad[2].operations = YCSB_OPERATIONS_MAX + 1;
	bad[3].update_share = 1.01;
	bad[4].theta = 1;
	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ycsb_create(engine, &bad[i], &ycsb), -EINVAL);
	assert_int_equal(ycsb_create(engine, &good, &ycsb), 0);
	ycsb_destroy(ycsb);
	oltp_engine_close(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_skipped_and_extra_updates_are_counted),
		cmocka_unit_test(test_update_of_the_wrong_record_is_found),
		cmocka_unit_test(test_damaged_bytes_are_found),
		cmocka_unit_test(test_field_write_lost_but_counter_kept_is_found),
		cmocka_unit_test(test_aborted_update_leaves_no_trace),
		cmocka_unit_test(test_bad_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
