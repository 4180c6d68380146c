// SPDX-License-Identifier: GPL-2.0-or-later
/* The TPC-C-like workload comes back from log and checkpoint, indexes and deleted rows included. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/bench/recovery.h"
#include "oltp-engine/bench/tpcc/tpcc_workload.h"
#include "tpcc_rig.h"

#define TXNS		600u
#define WAIT_SECONDS	120u
#define WORKERS		3u

static char folder[64];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%.40s/tpcc-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	(void)state;
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

static bool is_lazy;

static void open_tables(struct tpcc_rig *r, const struct tpcc_config *config)
{
	const struct oltp_config engine = {
		.cc = OLTP_CC_WAIT_DIE,
		.txn_records_max = TPCC_RECORDS_MAX,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = folder,
		.log_segment_mib = 1,
		.cold_dir = is_lazy ? "/var/tmp" : NULL,
	};

	assert_int_equal(oltp_engine_open(&engine, &r->engine), 0);
	assert_int_equal(tpcc_create(r->engine, config, &r->tpcc), 0);
	r->workload = tpcc_workload(r->tpcc);
}

static void close_tables(struct tpcc_rig *r)
{
	oltp_worker_destroy(r->worker);
	tpcc_destroy(r->tpcc);
	oltp_engine_close(r->engine);
}

static void run(struct tpcc_rig *r, uint64_t txns)
{
	const struct oltp_pool_config config = { .engine = r->engine, .workload = &r->workload,
						 .no_pin = true };
	struct timespec pause = { 0, 5000000 };
	struct oltp_totals totals = { 0 };
	struct oltp_pool *pool;

	assert_int_equal(oltp_pool_create(&config, &pool), 0);
	for (uint32_t cpu = 0; cpu < WORKERS; cpu++)
		assert_int_equal(oltp_pool_add(pool, cpu), 0);
	for (uint32_t i = 0; totals.committed < txns; i++) {
		assert_true(i < WAIT_SECONDS * 200);
		nanosleep(&pause, NULL);
		oltp_pool_totals(pool, &totals);
	}
	oltp_pool_destroy(pool);
	tpcc_rig_assert_good(r);
}

static int recover(struct tpcc_rig *r, struct recovery *recovery)
{
	return recovery_run(recovery, r->engine, &tpcc_workload_ops, r->tpcc,
			    &(struct recovery_config){ .quiet = true, .is_lazy = is_lazy });
}

static void wait_loaded(const struct tpcc_rig *r)
{
	for (uint32_t i = 0; oltp_recovery_rows_left(r->engine); i++) {
		assert_true(i < WAIT_SECONDS * 200);
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
}

/* What is in all tables and indexes when it ends is there again, and work goes on from it. */
static void check_recovery(const struct tpcc_config *config, bool has_checkpoint)
{
	struct recovery recovery = { 0 };
	struct tpcc_rig r;
	uint64_t content;

	open_tables(&r, config);
	assert_int_equal(tpcc_load(r.tpcc, 2, NULL), 0);
	run(&r, TXNS);
	if (has_checkpoint)
		assert_int_equal(oltp_checkpoint(r.engine), 0);
	run(&r, TXNS);
	assert_int_equal(oltp_worker_create(r.engine, &r.worker), 0);
	content = tpcc_rig_content(&r);
	close_tables(&r);

	open_tables(&r, config);
	assert_int_equal(recover(&r, &recovery), 0);
	assert_true(recovery.has_found);
	assert_int_equal(recovery.figures.rows > 0, has_checkpoint);
	assert_true(recovery.figures.transactions > 0);
	if (is_lazy) {
		/* All tables, whose ordered indexes are of all kinds. */
		assert_null(recovery.figures.not_lazy);
		assert_int_equal(recovery.figures.lazy_rows, recovery.figures.rows);
		wait_loaded(&r);
	}
	assert_int_equal(oltp_worker_create(r.engine, &r.worker), 0);
	assert_int_equal(tpcc_rig_content(&r), content);
	tpcc_rig_assert_good(&r);
	run(&r, TXNS / 3);
	assert_int_not_equal(tpcc_rig_content(&r), content);
	close_tables(&r);
}

static void test_from_the_log(void **state)
{
	struct tpcc_config config = tpcc_rig_config();

	(void)state;
	check_recovery(&config, false);
}

static void test_from_checkpoint_and_log(void **state)
{
	struct tpcc_config config = tpcc_rig_config();

	(void)state;
	check_recovery(&config, true);
}

/* Rows are deleted all the time, orders and their lines among them. */
static void test_while_recycling(void **state)
{
	struct tpcc_config config = tpcc_rig_config();

	(void)state;
	config.keep_orders = RIG_CUSTOMERS;
	check_recovery(&config, true);
}

static void test_lazily(void **state)
{
	struct tpcc_config config = tpcc_rig_config();

	(void)state;
	is_lazy = true;
	check_recovery(&config, true);
	is_lazy = false;
}

/* Transactions run on rows that are not there yet, and scan them. */
static void test_work_before_rows_are_loaded(void **state)
{
	const struct oltp_recover_config none = { .lazy = true, .lazy_mib_s = OLTP_LAZY_NO_LOAD };
	struct tpcc_config config = tpcc_rig_config();
	struct recovery recovery = { 0 };
	struct oltp_recovery figures;
	struct bench_audit audit;
	struct tpcc_rig r = { 0 };

	(void)state;
	is_lazy = true;
	config.keep_orders = RIG_CUSTOMERS;
	open_tables(&r, &config);
	assert_int_equal(tpcc_load(r.tpcc, 2, NULL), 0);
	assert_int_equal(oltp_checkpoint(r.engine), 0);
	run(&r, TXNS);
	close_tables(&r);
	for (int i = 0; i < 2; i++) {
		r = (struct tpcc_rig){ 0 };
		open_tables(&r, &config);
		assert_int_equal(oltp_recover(r.engine, &none, &figures), 0);
		assert_int_equal(figures.lazy_rows, figures.rows);
		assert_true(figures.transactions > 0);
		assert_int_equal(tpcc_workload_ops.adopt(r.tpcc, &audit), 0);
		run(&r, TXNS);
		if (!i)
			assert_int_equal(oltp_checkpoint(r.engine), 0);
		run(&r, TXNS / 3);
		close_tables(&r);
	}
	r = (struct tpcc_rig){ 0 };
	open_tables(&r, &config);
	assert_int_equal(recover(&r, &recovery), 0);
	wait_loaded(&r);
	tpcc_rig_assert_good(&r);
	close_tables(&r);
	is_lazy = false;
}

/* A load that was broken off, or whatever else is not what a run leaves. */
static void check_refusal(enum tpcc_table table, uint64_t key)
{
	struct tpcc_config config = tpcc_rig_config();
	struct recovery recovery = { 0 };
	struct tpcc_rig r = { 0 };

	open_tables(&r, &config);
	assert_int_equal(recover(&r, &recovery), 0);
	assert_false(recovery.has_found);
	assert_int_equal(tpcc_load(r.tpcc, 2, NULL), 0);
	assert_int_equal(oltp_worker_create(r.engine, &r.worker), 0);
	tpcc_rig_delete(&r, table, key);
	assert_int_equal(oltp_durable_wait(r.engine, oltp_worker_epoch(r.worker)), 0);
	close_tables(&r);
	r = (struct tpcc_rig){ 0 };
	open_tables(&r, &config);
	assert_int_equal(recover(&r, &recovery), -EBADMSG);
	close_tables(&r);
}

static void test_missing_stock(void **state)
{
	(void)state;
	check_refusal(TPCC_STOCK, tpcc_stock_key(1, 1));
}

static void test_missing_customer(void **state)
{
	(void)state;
	check_refusal(TPCC_CUSTOMER, tpcc_customer_key(1, 1, 1));
}

static void test_missing_order(void **state)
{
	(void)state;
	check_refusal(TPCC_ORDER, tpcc_order_key(1, 1, 1));
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_from_the_log),
		IN_FOLDER(test_from_checkpoint_and_log),
		IN_FOLDER(test_while_recycling),
		IN_FOLDER(test_lazily),
		IN_FOLDER(test_work_before_rows_are_loaded),
		IN_FOLDER(test_missing_stock),
		IN_FOLDER(test_missing_customer),
		IN_FOLDER(test_missing_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
