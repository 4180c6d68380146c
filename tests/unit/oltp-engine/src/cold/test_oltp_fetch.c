// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many transactions of one worker that wait for the disk: a record that several want is read once,
 * and what was read for one stays until it has ended, however much others read meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/src/cold/fetch.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORDS		8000u	/* four blocks */
#define AT_ONCE		48u	/* records of a transaction */

/* All of them are cold, and there is no room for them but where they are read to. */
static void open_cold(struct rig *rig)
{
	rig_open(rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(rig, 0, RECORDS);
	rig_age(rig);
	assert_int_equal(rig_demand(rig, 0, RIG_DEADLINE_MS).cold_records, RECORDS);
}

/* One attempt of a transaction that reads the n records from a key on. */
static enum oltp_rc attempt(struct rig *rig, uint64_t first, uint32_t n)
{
	struct oltp_hint hints[AT_ONCE];
	enum oltp_rc rc = OLTP_OK;
	const void *record;

	assert_true(n <= AT_ONCE);
	for (uint32_t i = 0; i < n; i++)
		hints[i] = (struct oltp_hint){ first + i, 0, 8, rig->table };
	oltp_txn_begin(rig->w);
	oltp_txn_prefetch(rig->w, rig->table, hints, n);
	for (uint32_t i = 0; !rc && i < n; i++) {
		rc = oltp_txn_read(rig->w, rig->table, first + i, &record);
		assert_true(rc || rig_record_is(record, first + i, 0));
	}
	if (!rc)
		rc = oltp_txn_commit(rig->w);
	else
		oltp_txn_abort(rig->w);
	return rc;
}

static enum oltp_rc begin(struct rig *rig, uint32_t ticket, uint64_t first, uint32_t n)
{
	assert_int_equal(attempt(rig, first, n), OLTP_COLD);
	return oltp_cold_fetch(rig->w, ticket);
}

/* Until so many tickets are through. */
static void wait_for(struct rig *rig, uint32_t n)
{
	struct oltp_cold_done done[8];

	while (n) {
		int got = oltp_cold_poll(rig->w, done, n < 8 ? n : 8, true);

		assert_true(got > 0);
		for (int i = 0; i < got; i++)
			assert_int_equal(done[i].rc, OLTP_OK);
		n -= (uint32_t)got;
	}
}

static void test_all_who_want_a_record_wait_for_one_read(void **state)
{
	(void)state;
	struct rig rig;
	uint64_t reads;

	open_cold(&rig);
	reads = rig_stats(&rig).cold_reads;
	/* The one as many as the other wants in part. */
	for (uint32_t t = 0; t < OLTP_TICKETS; t++)
		assert_int_equal(begin(&rig, t, t % 2, 2), OLTP_OK);
	wait_for(&rig, OLTP_TICKETS);
	assert_int_equal(rig_stats(&rig).cold_reads - reads, 3);
	for (uint32_t t = 0; t < OLTP_TICKETS; t++) {
		assert_int_equal(attempt(&rig, t % 2, 2), OLTP_OK);
		oltp_cold_end(rig.w, t);
	}
	assert_int_equal(rig_stats(&rig).cold_reads - reads, 3);
	rig_close(&rig);
}

/* A transaction that names a record twice, too. */
static void test_a_record_that_is_named_twice(void **state)
{
	(void)state;
	const struct oltp_hint hints[] = { { 5, 0, 8, NULL }, { 5, 8, 8, NULL } };
	const void *record;
	struct rig rig;
	uint64_t reads;

	open_cold(&rig);
	reads = rig_stats(&rig).cold_reads;
	oltp_txn_begin(rig.w);
	oltp_txn_prefetch(rig.w, rig.table, hints, 2);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 5, &record), OLTP_COLD);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_cold_fetch(rig.w, 9), OLTP_OK);
	wait_for(&rig, 1);
	assert_int_equal(attempt(&rig, 5, 1), OLTP_OK);
	assert_int_equal(rig_stats(&rig).cold_reads - reads, 1);
	rig_close(&rig);
}

static void test_what_was_read_stays_until_its_transaction_has_ended(void **state)
{
	(void)state;
	struct rig rig;
	uint64_t reads, key;

	open_cold(&rig);
	assert_int_equal(begin(&rig, 7, 0, AT_ONCE), OLTP_OK);
	/* Another one begins with one of those records, and ends. */
	assert_int_equal(begin(&rig, 8, AT_ONCE - 1, 2), OLTP_OK);
	wait_for(&rig, 2);
	oltp_cold_end(rig.w, 8);
	for (key = 100; key < 100 + 2 * BUFFERED_MAX; key++) {
		assert_int_equal(begin(&rig, 1, key, 1), OLTP_OK);
		wait_for(&rig, 1);
		assert_int_equal(attempt(&rig, key, 1), OLTP_OK);
		oltp_cold_end(rig.w, 1);
	}
	reads = rig_stats(&rig).cold_reads;
	assert_int_equal(attempt(&rig, 0, AT_ONCE), OLTP_OK);
	assert_int_equal(rig_stats(&rig).cold_reads, reads);
	oltp_cold_end(rig.w, 7);
	/* Used once only and held no more: it goes. */
	for (; key < 100 + 4 * BUFFERED_MAX; key++) {
		assert_int_equal(begin(&rig, 1, key, 1), OLTP_OK);
		wait_for(&rig, 1);
		oltp_cold_end(rig.w, 1);
	}
	assert_true(rig_is_cold(&rig, 0));
	rig_close(&rig);
}

static void test_no_more_begin_than_find_room(void **state)
{
	(void)state;
	const uint32_t fit = HELD_MAX / AT_ONCE;
	uint32_t n = 0;
	struct rig rig;

	open_cold(&rig);
	while (n < OLTP_TICKETS && !begin(&rig, n, n * AT_ONCE, AT_ONCE))
		n++;
	assert_true(n > 1 && n <= fit);
	assert_int_equal(begin(&rig, n, n * AT_ONCE, AT_ONCE), OLTP_FULL);
	/* All of those that did begin have what they wanted. */
	wait_for(&rig, n);
	for (uint32_t t = 0; t < n; t++)
		assert_int_equal(attempt(&rig, t * AT_ONCE, AT_ONCE), OLTP_OK);
	/* Nothing is on its way: whoever holds all that may wait for this one. */
	assert_int_equal(begin(&rig, n, n * AT_ONCE, AT_ONCE), OLTP_OK);
	assert_int_equal(begin(&rig, n + 1, (n + 1) * AT_ONCE, AT_ONCE), OLTP_FULL);
	/* One that goes on is not asked to wait for those that begin. */
	assert_int_equal(begin(&rig, 0, (n + 2) * AT_ONCE, 1), OLTP_OK);
	for (uint32_t t = 1; t < n; t++)
		oltp_cold_end(rig.w, t);
	assert_int_equal(begin(&rig, n + 1, (n + 1) * AT_ONCE, AT_ONCE), OLTP_OK);
	wait_for(&rig, 3);
	assert_int_equal(attempt(&rig, (n + 1) * AT_ONCE, AT_ONCE), OLTP_OK);
	rig_close(&rig);
}

/* Nobody says that a transaction has ended: slower, and nothing more. */
static void test_nobody_ends(void **state)
{
	(void)state;
	struct rig rig;

	open_cold(&rig);
	for (uint64_t key = 0; key < 3 * BUFFERED_MAX; key++) {
		if (!rig_is_cold(&rig, key))
			continue;
		assert_int_equal(begin(&rig, (uint32_t)key % OLTP_TICKETS, key, 1), OLTP_OK);
		wait_for(&rig, 1);
		assert_int_equal(attempt(&rig, key, 1), OLTP_OK);
	}
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	/* Of one that is being fetched nothing ends. */
	assert_int_equal(begin(&rig, 3, 0, 1), OLTP_OK);
	oltp_cold_end(rig.w, 3);
	wait_for(&rig, 1);
	oltp_cold_end(rig.w, OLTP_TICKETS);
	rig_close(&rig);
}

/* Each of those that wait for a read is told that it failed. */
static int32_t fails(void *ctx, const struct io_request *request, int32_t result)
{
	(void)ctx;
	return request->is_write ? result : -5;
}

static void test_a_read_that_fails_fails_all(void **state)
{
	(void)state;
	struct oltp_cold_done done[3];
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_hook(&rig, fails, NULL);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	for (uint32_t t = 0; t < 3; t++)
		assert_int_equal(begin(&rig, t, 0, 1), OLTP_OK);
	for (uint32_t n = 0; n < 3;) {
		int got = oltp_cold_poll(rig.w, done, 3, true);

		assert_true(got > 0);
		for (int i = 0; i < got; i++)
			assert_int_equal(done[i].rc, OLTP_IO);
		n += (uint32_t)got;
	}
	/* The next one with such a ticket begins anew. */
	assert_int_equal(begin(&rig, 1, 0, 1), OLTP_OK);
	assert_int_equal(oltp_cold_poll(rig.w, done, 3, true), 1);
	assert_int_equal(done[0].rc, OLTP_IO);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_who_want_a_record_wait_for_one_read),
		cmocka_unit_test(test_a_record_that_is_named_twice),
		cmocka_unit_test(test_what_was_read_stays_until_its_transaction_has_ended),
		cmocka_unit_test(test_no_more_begin_than_find_room),
		cmocka_unit_test(test_nobody_ends),
		cmocka_unit_test(test_a_read_that_fails_fails_all),
	};

	return cmocka_run_group_tests_name("oltp_fetch", tests, NULL, NULL);
}
