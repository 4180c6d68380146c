// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Durability and anti-caching: a database of four times the memory there is. Checkpoints have the
 * records that are on disk, which stay there; recovery puts records there again, and it need not be
 * those that were.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/cold/cold.h"
#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define ROWS	(8 * RIG_PER_BLOCK)
#define LIMIT	(4 * MIB)

static uint64_t counters[ROWS];

static void open_durable(struct rig *rig, struct fault_disk *disk, uint64_t limit_bytes,
			 bool with_disk)
{
	struct oltp_config config = {
		.node = -1,
		.blocks = &oltp_blocks_native_ops,
		.cold_dir = with_disk ? rig_dir() : NULL,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = "/disk",
		.log_segment_mib = 2,
		.log_io = &fault_disk_ops,
		.log_io_ctx = disk,
	};

	*rig = (struct rig){ 0 };
	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &rig->blocks), 0);
	config.blocks_ctx = rig->blocks;
	assert_int_equal(oltp_engine_open(&config, &rig->engine), 0);
	oltp_blocks_native_attach(rig->blocks, rig->engine);
	assert_int_equal(oltp_table_create(rig->engine, RIG_RECORD_BYTES, ROWS, &rig->table), 0);
}

static struct oltp_recovery recover(struct rig *rig, struct fault_disk *disk)
{
	struct oltp_recovery recovery;

	open_durable(rig, disk, LIMIT, true);
	assert_int_equal(oltp_recover(rig->engine, NULL, &recovery), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	return recovery;
}

static void restart(struct rig *rig, struct fault_disk *disk)
{
	rig_close(rig);
	fault_disk_restart(disk, true);
}

static void update_some(struct rig *rig, uint64_t first, uint64_t step)
{
	for (uint64_t key = first; key < ROWS; key += step)
		assert_int_equal(rig_update(rig, key, ++counters[key]), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
}

static void all_is_there(struct rig *rig)
{
	struct oltp_memory_stats stats = rig_stats_of(rig, ROWS);

	assert_true(stats.cold_records > ROWS / 2);
	assert_true(stats.held_bytes <= LIMIT);
	assert_int_equal(rig_scan(rig, ROWS, counters), 0);
}

static void test_more_than_memory(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct oltp_checkpoint_stats checkpoint;
	struct oltp_memory_stats before, after;
	struct oltp_recovery recovery;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	recover(&rig, disk);
	rig_insert(&rig, 0, ROWS);
	update_some(&rig, 1, 17);
	/* From the log alone. */
	restart(&rig, disk);
	recovery = recover(&rig, disk);
	assert_int_equal(recovery.puts, ROWS);
	assert_int_equal(recovery.rows, 0);
	all_is_there(&rig);
	/* Records on disk are in the checkpoint, and stay where they are. */
	before = rig_stats(&rig);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	oltp_checkpoint_stats_read(rig.engine, &checkpoint);
	assert_int_equal(checkpoint.last_rows, ROWS);
	assert_int_equal(checkpoint.last_clean_error, 0);
	after = rig_stats(&rig);
	assert_int_equal(after.cold_reads, before.cold_reads);
	assert_true(fault_disk_count(disk, "log-") <= 2);
	update_some(&rig, 3, 29);
	/* From the checkpoint and the log. */
	restart(&rig, disk);
	recovery = recover(&rig, disk);
	assert_int_equal(recovery.rows, ROWS);
	assert_int_equal(recovery.puts, 0);
	assert_int_equal(recovery.updates, (ROWS - 3 + 28) / 29);
	all_is_there(&rig);
	update_some(&rig, 5, 501);
	all_is_there(&rig);
	rig_close(&rig);
	fault_disk_destroy(disk);
}

/* No disk for cold records this time: an error, and it can be tried again with one. */
static void test_too_little_memory(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(2);
	struct oltp_recovery recovery;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	recover(&rig, disk);
	rig_insert(&rig, 0, ROWS);
	update_some(&rig, 0, 100);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	restart(&rig, disk);
	open_durable(&rig, disk, LIMIT, false);
	assert_int_equal(oltp_recover(rig.engine, NULL, &recovery), -ENOMEM);
	assert_int_equal(recovery.phase, OLTP_RECOVERY_CHECKPOINT);
	assert_true(recovery.checkpoint_bytes < recovery.checkpoint_bytes_all);
	restart(&rig, disk);
	recover(&rig, disk);
	all_is_there(&rig);
	rig_close(&rig);
	fault_disk_destroy(disk);
}

/* A record that cannot be read: no checkpoint, so that nothing that still has it is given up. */
static int32_t fail_reads(void *ctx, const struct io_request *request, int32_t result)
{
	(void)ctx;
	return request->is_write ? result : -EIO;
}

static void test_unreadable_record(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(3);
	struct oltp_checkpoint_stats checkpoint;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	recover(&rig, disk);
	rig_hook(&rig, fail_reads, NULL);
	rig_insert(&rig, 0, ROWS);
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	assert_int_equal(oltp_checkpoint(rig.engine), -EIO);
	oltp_checkpoint_stats_read(rig.engine, &checkpoint);
	assert_int_equal(checkpoint.failed, 1);
	assert_int_equal(fault_disk_count(disk, "checkpoint-"), 0);
	restart(&rig, disk);
	recover(&rig, disk);
	all_is_there(&rig);
	rig_close(&rig);
	fault_disk_destroy(disk);
}

static uint64_t io_bytes(const struct rig *rig, enum io_class class)
{
	return atomic_load(&rig->engine->io_meters.of[class].bytes);
}

static uint64_t io_requests(const struct rig *rig, enum io_class class)
{
	return atomic_load(&rig->engine->io_meters.of[class].requests);
}

/* Whatever goes to a disk or comes from one is counted for whom it is. */
static void test_requests_have_a_class(void **state)
{
	(void)state;
	const uint64_t row_bytes = (uint64_t)ROWS * RIG_RECORD_BYTES;
	struct fault_disk *disk = fault_disk_create(1);
	uint64_t key = 0, fetches;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	recover(&rig, disk);
	rig_insert(&rig, 0, ROWS);
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	assert_true(io_bytes(&rig, IO_LOG) >= row_bytes);
	assert_true(io_bytes(&rig, IO_EVICT) >= row_bytes / 2);
	assert_int_equal(io_requests(&rig, IO_CHECKPOINT), 0);
	assert_int_equal(io_requests(&rig, IO_SCAN), 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_true(io_bytes(&rig, IO_CHECKPOINT) >= row_bytes);
	assert_true(io_bytes(&rig, IO_SCAN) >= row_bytes / 2);
	fetches = io_requests(&rig, IO_FETCH);
	while (!rig_is_cold(&rig, key))
		key++;
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_true(io_requests(&rig, IO_FETCH) > fetches);
	assert_true(io_bytes(&rig, IO_RECOVERY) < row_bytes);
	restart(&rig, disk);
	recover(&rig, disk);
	assert_true(io_bytes(&rig, IO_RECOVERY) >= row_bytes);
	assert_int_equal(io_requests(&rig, IO_CHECKPOINT), 0);
	rig_close(&rig);
	fault_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_have_a_class),
		cmocka_unit_test(test_more_than_memory),
		cmocka_unit_test(test_too_little_memory),
		cmocka_unit_test(test_unreadable_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
