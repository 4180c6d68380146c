// SPDX-License-Identifier: GPL-2.0-or-later
/* YCSB that goes on with the rows of a run before: its books, and when it must refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "oltp-engine/bench/recovery.h"
#include "oltp-engine/bench/ycsb/ycsb_private.h"
#include "oltp-engine/bench/ycsb/ycsb_record.h"
#include "oltp-engine/bench/ycsb/ycsb_workload.h"

#define RECORDS	500u
#define TXNS	200u

struct run {
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct recovery recovery;
};

static const struct ycsb_config config = {
	.records = RECORDS,
	.operations = 10,
	.n_classes = 1,
	.classes = { { .name = "all", .operations = 10, .shares = { [YCSB_UPDATE] = 0.5 } } },
	.theta = 0.5,
	.is_scrambled = true,
	.seed = 1,
};

/* As YCSB D, with more inserts, and E; of more than one thing at a time. */
static const struct ycsb_config inserting = {
	.records = RECORDS,
	.n_classes = 1,
	.classes = { { .name = "all", .operations = 5,
		       .shares = { [YCSB_UPDATE] = 0.2, [YCSB_INSERT] = 0.3 } } },
	.keys = YCSB_KEYS_LATEST,
	.theta = 0.5,
	.seed = 1,
};

static const struct ycsb_config scanning = {
	.records = RECORDS,
	.n_classes = 1,
	.classes = { { .name = "all", .operations = 5,
		       .shares = { [YCSB_UPDATE] = 0.2, [YCSB_INSERT] = 0.3,
				   [YCSB_SCAN] = 0.3 } } },
	.is_hashed = true,
	.scan_rows = 20,
	.theta = 0.5,
	.is_scrambled = true,
	.seed = 1,
};

static void open_run(struct run *run, struct fault_disk *disk, const struct ycsb_config *config)
{
	const struct oltp_config engine = {
		.node = -1,
		.txn_records_max = 256,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = "/disk",
		.log_segment_mib = 1,
		.log_io = &fault_disk_ops,
		.log_io_ctx = disk,
	};

	memset(run, 0, sizeof(*run));
	assert_int_equal(oltp_engine_open(&engine, &run->engine), 0);
	assert_int_equal(ycsb_create(run->engine, config, &run->ycsb), 0);
}

static void close_run(struct run *run, struct fault_disk *disk)
{
	ycsb_destroy(run->ycsb);
	oltp_engine_close(run->engine);
	fault_disk_restart(disk, true);
}

static int recover(struct run *run)
{
	return recovery_run(&run->recovery, run->engine, &ycsb_family.ops, run->ycsb,
			    &(struct recovery_config){ .quiet = true });
}

static void work(struct run *run)
{
	struct oltp_workload workload = ycsb_workload(run->ycsb);
	struct oltp_worker *worker;
	void *local;

	assert_int_equal(oltp_worker_create(run->engine, &worker), 0);
	assert_int_equal(workload.attach(workload.ctx, worker, &local), 0);
	for (uint32_t i = 0; i < TXNS; i++)
		assert_int_equal(workload.run(local, 0, false), OLTP_OK);
	assert_int_equal(oltp_durable_wait(run->engine, oltp_worker_epoch(worker)), 0);
	workload.detach(local);
	oltp_worker_destroy(worker);
}

static struct ycsb_verdict verdict(struct run *run)
{
	struct ycsb_verdict v;

	ycsb_verify(run->ycsb, &v);
	return v;
}

static void check_books_go_on(const struct ycsb_config *config)
{
	struct fault_disk *disk = fault_disk_create(1);
	uint64_t updates = 0;
	struct run run;

	for (int i = 0; i < 3; i++) {
		open_run(&run, disk, config);
		assert_int_equal(recover(&run), 0);
		assert_int_equal(run.recovery.has_found, i > 0);
		if (!i)
			assert_int_equal(ycsb_load(run.ycsb, 1), 0);
		work(&run);
		assert_int_equal(verdict(&run).lost_updates, 0);
		assert_true(verdict(&run).updates_found > updates);
		updates = verdict(&run).updates_found;
		if (i == 1)
			assert_int_equal(oltp_checkpoint(run.engine), 0);
		close_run(&run, disk);
	}
	assert_true(updates > 2 * TXNS);
	fault_disk_destroy(disk);
}

static void test_books_go_on(void **state)
{
	(void)state;
	check_books_go_on(&config);
}

static void test_inserts_go_on(void **state)
{
	(void)state;
	check_books_go_on(&inserting);
	check_books_go_on(&scanning);
}

static void insert(struct run *run, uint64_t key)
{
	struct oltp_worker *worker;
	struct ycsb_record record;

	ycsb_record_init(&record, key);
	assert_int_equal(oltp_worker_create(run->engine, &worker), 0);
	assert_int_equal(oltp_txn_begin(worker), OLTP_OK);
	assert_int_equal(oltp_txn_insert(worker, ycsb_table(run->ycsb), key, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(worker), OLTP_OK);
	assert_int_equal(oltp_durable_wait(run->engine, oltp_worker_epoch(worker)), 0);
	oltp_worker_destroy(worker);
}

/*
 * Some had taken numbers and were not through when it ended, others with later ones were. The last
 * number that can be there, too.
 */
static void check_gaps(const struct ycsb_config *config)
{
	struct fault_disk *disk = fault_disk_create(4);
	uint64_t frontier, number;
	struct run run;

	open_run(&run, disk, config);
	assert_int_equal(recover(&run), 0);
	assert_int_equal(ycsb_load(run.ycsb, 1), 0);
	work(&run);
	for (int i = 0; i < 3; i++)
		assert_true(growth_take(run.ycsb->growth, &number));
	work(&run);
	frontier = growth_frontier(run.ycsb->growth);
	assert_int_equal(frontier, number - 2);
	insert(&run, ycsb_key(run.ycsb, frontier + GROWTH_AHEAD - 1));
	close_run(&run, disk);

	open_run(&run, disk, config);
	assert_int_equal(recover(&run), 0);
	assert_int_equal(growth_frontier(run.ycsb->growth), frontier + GROWTH_AHEAD);
	assert_int_equal(verdict(&run).lost_updates, 0);
	assert_int_equal(verdict(&run).records, frontier + GROWTH_AHEAD);
	work(&run);
	assert_int_equal(verdict(&run).lost_updates, 0);
	assert_true(growth_frontier(run.ycsb->growth) > frontier + GROWTH_AHEAD + TXNS / 2);
	close_run(&run, disk);
	fault_disk_destroy(disk);
}

static void test_gaps_are_filled(void **state)
{
	(void)state;
	check_gaps(&inserting);
	check_gaps(&scanning);
}

/* Of a run with other options: so far behind the others no number is taken. */
static void test_strangers(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(5);
	struct run run;

	open_run(&run, disk, &scanning);
	assert_int_equal(recover(&run), 0);
	assert_int_equal(ycsb_load(run.ycsb, 1), 0);
	insert(&run, ycsb_key(run.ycsb, RECORDS + 1 + GROWTH_AHEAD));
	close_run(&run, disk);
	open_run(&run, disk, &scanning);
	assert_int_equal(recover(&run), -EBADMSG);
	close_run(&run, disk);
	fault_disk_destroy(disk);
}

static int no_row(void *ctx, uint64_t key, const void *record)
{
	(void)record;
	*(uint64_t *)ctx = key;
	return 0;
}

/* A load that was broken off: a row less than there should be. */
static void check_incomplete(const struct ycsb_config *config)
{
	struct fault_disk *disk = fault_disk_create(2);
	struct oltp_worker *worker;
	struct run run;
	uint64_t key;

	open_run(&run, disk, config);
	assert_int_equal(recover(&run), 0);
	assert_int_equal(ycsb_load(run.ycsb, 1), 0);
	assert_int_equal(oltp_table_scan(ycsb_table(run.ycsb), no_row, &key), 0);
	assert_int_equal(oltp_worker_create(run.engine, &worker), 0);
	assert_int_equal(oltp_txn_begin(worker), OLTP_OK);
	assert_int_equal(oltp_txn_delete(worker, ycsb_table(run.ycsb), key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(worker), OLTP_OK);
	assert_int_equal(oltp_durable_wait(run.engine, oltp_worker_epoch(worker)), 0);
	oltp_worker_destroy(worker);
	/* Another one does not make up for it. */
	if (config->classes[0].shares[YCSB_INSERT] > 0)
		insert(&run, ycsb_key(run.ycsb, RECORDS));
	close_run(&run, disk);
	open_run(&run, disk, config);
	assert_int_equal(recover(&run), -EBADMSG);
	close_run(&run, disk);
	fault_disk_destroy(disk);
}

static void test_incomplete(void **state)
{
	(void)state;
	check_incomplete(&config);
	check_incomplete(&scanning);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_books_go_on),
		cmocka_unit_test(test_inserts_go_on),
		cmocka_unit_test(test_gaps_are_filled),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_incomplete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
