// SPDX-License-Identifier: GPL-2.0-or-later
/* Records in leases, on a simulated device: offers, demands, revokes, and a device that goes. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "oltp-engine/server/blocks_ebb.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "tests/lib/ebb_rig.h"

#define RECORDS	8000u	/* four blocks */
#define DEADLINE_NS	(RIG_DEADLINE_MS * 1000000ull)

struct fixture {
	struct ebb *ebb;
	struct blocks_ebb *blocks;
	struct rig rig;
};

static void limit(struct ebb_rig *vm, uint32_t node, uint64_t bytes)
{
	fake_ebb_dev_set_mem_limit(vm->dev, node, bytes, clock_now_ns() + DEADLINE_NS);
}

/* disk: for a log; NULL: none. */
static void fixture_open_on(struct fixture *f, struct ebb_rig *vm, uint64_t max_bytes,
			    struct fault_disk *disk)
{
	fake_ebb_dev_set_pool(vm->dev, 0, 64 * MIB);
	fake_ebb_dev_set_pool(vm->dev, 1, 64 * MIB);
	limit(vm, 0, 8 * MIB);
	f->ebb = ebb_rig_open(vm, "engine", EBB_OPEN_NO_MONITOR);
	assert_int_equal(blocks_ebb_create(f->ebb, max_bytes, &f->blocks), 0);
	assert_int_equal(blocks_ebb_wait(f->blocks, RIG_DEADLINE_MS), 0);
	f->rig = (struct rig){ 0 };
	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .node = -1,
						.blocks = &blocks_ebb_ops, .blocks_ctx = f->blocks,
						.cold_dir = rig_dir(),
						.durability = disk ? OLTP_DURABILITY_COMMIT :
								     OLTP_DURABILITY_OFF,
						.log_dir = "/disk", .log_io = &fault_disk_ops,
						.log_io_ctx = disk }, &f->rig.engine), 0);
	blocks_ebb_attach(f->blocks, f->rig.engine);
	assert_int_equal(oltp_table_create(f->rig.engine, RIG_RECORD_BYTES, RECORDS,
					   &f->rig.table), 0);
	assert_int_equal(oltp_worker_create(f->rig.engine, &f->rig.w), 0);
}

static void fixture_open(struct fixture *f, struct ebb_rig *vm, uint64_t max_bytes)
{
	fixture_open_on(f, vm, max_bytes, NULL);
}

static void fixture_close(struct fixture *f, struct ebb_rig *vm)
{
	blocks_ebb_pump_stop(f->blocks);
	oltp_worker_destroy(f->rig.w);
	blocks_ebb_attach(f->blocks, NULL);
	oltp_engine_close(f->rig.engine);
	blocks_ebb_destroy(f->blocks);
	ebb_close(f->ebb);
	assert_int_equal(fake_ebb_dev_leased_bytes(vm->dev, 0), 0);
	assert_int_equal(fake_ebb_dev_leased_bytes(vm->dev, 1), 0);
}

static void run_until_held(struct ebb_rig *vm, uint64_t node0, uint64_t node1)
{
	uint64_t end_ns = clock_now_ns() + DEADLINE_NS;

	while (fake_ebb_dev_leased_bytes(vm->dev, 0) != node0 ||
	       fake_ebb_dev_leased_bytes(vm->dev, 1) != node1) {
		if (clock_now_ns() > end_ns)
			fail_msg("held: %lu and %lu",
				 (unsigned long)fake_ebb_dev_leased_bytes(vm->dev, 0),
				 (unsigned long)fake_ebb_dev_leased_bytes(vm->dev, 1));
		rig_sleep_ms(1);
	}
}

/* Loading, and whatever comes, while the handle is dispatched by the provider's own thread. */
static void follows_limits(void **state)
{
	struct ebb_rig *vm = *state;
	struct fixture f;

	fixture_open(&f, vm, 0);
	rig_insert(&f.rig, 0, RECORDS);
	run_until_held(vm, 8 * MIB, 0);
	limit(vm, 0, 4 * MIB);
	run_until_held(vm, 4 * MIB, 0);
	assert_int_equal(rig_scan(&f.rig, RECORDS, NULL), 0);
	/* Memory of the other node will do, too. */
	limit(vm, 1, 8 * MIB);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&f.rig, key, 0), OLTP_OK);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && rig_stats(&f.rig).cold_records; ms++) {
		rig_work(&f.rig);
		rig_sleep_ms(1);
	}
	assert_int_equal(rig_stats(&f.rig).cold_records, 0);
	assert_true(fake_ebb_dev_leased_bytes(vm->dev, 1) >= 4 * MIB);
	/* As when a server verifies its table in the end, after others have dispatched. */
	blocks_ebb_pump_stop(f.blocks);
	blocks_ebb_pump_start(f.blocks);
	limit(vm, 0, 0);
	limit(vm, 1, 2 * MIB);
	run_until_held(vm, 0, 2 * MIB);
	assert_int_equal(rig_stats(&f.rig).unanswered_bytes, 0);
	assert_int_equal(rig_scan(&f.rig, RECORDS, NULL), 0);
	fixture_close(&f, vm);
}

static struct ebb_vom ask(struct ebb_rig *vm, uint32_t seq)
{
	struct ebb_vom vom = { 0 };

	fake_ebb_dev_ask_vom(vm->dev, seq);
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && vom.seq != seq; ms++) {
		rig_sleep_ms(1);
		fake_ebb_dev_vom(vm->dev, &vom);
	}
	assert_int_equal(vom.seq, seq);
	return vom;
}

static uint64_t histogram_bytes(const struct ebb_vom *vom, uint64_t value_max)
{
	uint64_t kib = 0;

	for (uint32_t i = 0; i < vom->num_buckets; i++) {
		assert_int_equal(vom->buckets[i].node, 0);
		kib += vom->buckets[i].value <= value_max ? vom->buckets[i].kib : 0;
	}
	return kib << 10;
}

static void wait_samples(struct fixture *f)
{
	static struct oltp_memory_sample samples[OLTP_MEMORY_SAMPLES_MAX];

	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms++) {
		if (oltp_memory_sample_read(f->rig.engine, samples,
					    OLTP_MEMORY_SAMPLES_MAX) > 256 &&
		    samples[0].reread_ns)
			return;
		rig_sleep_ms(1);
	}
	fail_msg("nothing is known of the records");
}

/*
 * Asked, it accounts for all memory that it has: what records take by value, the rest as unused.
 * Told a cut-off, it gives exactly what is demanded.
 */
static void says_what_memory_is_worth(void **state)
{
	struct ebb_rig *vm = *state;
	struct oltp_memory_node node;
	struct ebb_vom vom;
	struct fixture f;
	uint32_t half = 0;

	fixture_open(&f, vm, 0);
	rig_insert(&f.rig, 0, RECORDS);
	wait_samples(&f);
	for (int round = 0; round < 3; round++) {
		for (uint64_t key = 0; key < RECORDS; key += 3)
			assert_int_equal(rig_read(&f.rig, key, 0), OLTP_OK);
		rig_sleep_ms(50);
	}
	vom = ask(vm, 1);
	assert_int_equal(oltp_memory_node_read(f.rig.engine, 0, &node), 0);
	assert_int_equal(node.held_bytes, 8 * MIB);
	assert_true(vom.num_buckets > 2);
	/* Each sample rounds down its part. */
	assert_in_range(histogram_bytes(&vom, UINT64_MAX), 8 * MIB - MIB / 64, 8 * MIB);
	if (node.held_bytes - node.resident_bytes >= 1024) {
		assert_int_equal(vom.buckets[0].value, 0);
		assert_int_equal(histogram_bytes(&vom, 0), node.held_bytes - node.resident_bytes);
	}
	/* A third is used again and again. */
	while (histogram_bytes(&vom, vom.buckets[half].value) < 4 * MIB)
		half++;
	assert_true(vom.buckets[vom.num_buckets - 1].value > vom.buckets[half].value);
	fake_ebb_dev_set_cutoff(vm->dev, 0, vom.buckets[half].value + 1);
	limit(vm, 0, 6 * MIB);
	run_until_held(vm, 6 * MIB, 0);
	assert_int_equal(rig_stats(&f.rig).unanswered_bytes, 0);
	assert_int_equal(rig_scan(&f.rig, RECORDS, NULL), 0);
	fixture_close(&f, vm);
}

static void wait_promise(struct fixture *f, uint32_t mib)
{
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && blocks_ebb_count_ios(f->blocks) != mib; ms++)
		rig_sleep_ms(1);
	assert_int_equal(blocks_ebb_count_ios(f->blocks), mib);
}

static void simulates_what_is_promised(void **state)
{
	struct oltp_memory_stats stats;
	struct ebb_rig *vm = *state;
	struct fixture f;

	fixture_open(&f, vm, 0);
	assert_int_equal(blocks_ebb_count_ios(f.blocks), 0);
	fake_ebb_dev_promise(vm->dev, 1);
	wait_promise(&f, 1);
	rig_insert(&f.rig, 0, RECORDS);
	run_until_held(vm, 8 * MIB, 0);
	limit(vm, 0, 2 * MIB);
	run_until_held(vm, 2 * MIB, 0);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&f.rig, key, 0), OLTP_OK);
	oltp_memory_stats_read(f.rig.engine, &stats);
	assert_true(stats.actual_ios > 0);
	assert_true(stats.baseline_ios > stats.actual_ios / 2);
	/* Another promise, and none. */
	fake_ebb_dev_promise(vm->dev, 16);
	wait_promise(&f, 16);
	fake_ebb_dev_promise(vm->dev, 0);
	wait_promise(&f, 0);
	fixture_close(&f, vm);
}

static void takes_no_more_than_told(void **state)
{
	struct ebb_rig *vm = *state;
	struct fixture f;

	fixture_open(&f, vm, 6 * MIB);
	limit(vm, 0, 64 * MIB);
	limit(vm, 1, 64 * MIB);
	rig_insert(&f.rig, 0, 2 * RECORDS);
	assert_true(fake_ebb_dev_leased_bytes(vm->dev, 0) + fake_ebb_dev_leased_bytes(vm->dev, 1) <=
		    6 * MIB);
	assert_int_equal(rig_scan(&f.rig, 2 * RECORDS, NULL), 0);
	fixture_close(&f, vm);
}

static void outlives_a_revoke(void **state)
{
	struct ebb_rig *vm = *state;
	uint32_t n_lost = 0;
	struct fixture f;

	fixture_open(&f, vm, 0);
	rig_insert(&f.rig, 0, RECORDS);
	/* No demand before, so nothing is on disk. */
	assert_int_equal(fake_ebb_dev_revoke(vm->dev, 0, 2 * MIB), 2 * MIB);
	for (uint64_t key = 0; key < RECORDS; key++) {
		enum oltp_rc rc = rig_read(&f.rig, key, 0);

		assert_true(rc == OLTP_OK || rc == OLTP_LOST);
		n_lost += rc == OLTP_LOST;
	}
	assert_true(n_lost > 0 && n_lost <= RIG_PER_BLOCK);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && rig_stats(&f.rig).lost_records < n_lost; ms++)
		rig_sleep_ms(1);
	assert_int_equal(rig_stats(&f.rig).lost_records, n_lost);
	assert_int_equal(rig_stats(&f.rig).revoked_bytes, 2 * MIB);
	assert_int_equal(rig_scan(&f.rig, RECORDS, NULL), -EOWNERDEAD);
	/* What is left still moves. */
	limit(vm, 0, 2 * MIB);
	run_until_held(vm, 2 * MIB, 0);
	fixture_close(&f, vm);
}

/* With a log: what was in it comes back, to other leases or to disk. */
static void brings_back_what_was_revoked(void **state)
{
	struct fault_disk *disk = fault_disk_create(1);
	struct oltp_restore_stats restored;
	static uint64_t counters[RECORDS];
	struct ebb_rig *vm = *state;
	struct fixture f;

	fixture_open_on(&f, vm, 0, disk);
	rig_insert(&f.rig, 0, RECORDS);
	assert_int_equal(oltp_checkpoint(f.rig.engine), 0);
	for (uint64_t key = 0; key < RECORDS; key += 3)
		assert_int_equal(rig_update(&f.rig, key, ++counters[key]), OLTP_OK);
	assert_int_equal(fake_ebb_dev_revoke(vm->dev, 0, 2 * MIB), 2 * MIB);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && !rig_stats(&f.rig).revoked_bytes; ms++)
		rig_sleep_ms(1);
	assert_int_equal(rig_stats(&f.rig).revoked_bytes, 2 * MIB);
	assert_int_equal(oltp_restore_wait(f.rig.engine), 0);
	assert_int_equal(rig_scan(&f.rig, RECORDS, counters), 0);
	oltp_restore_stats_read(f.rig.engine, &restored);
	assert_int_equal(restored.records, rig_stats(&f.rig).lost_records);
	assert_true(restored.records > 0);
	assert_int_equal(oltp_checkpoint(f.rig.engine), 0);
	fixture_close(&f, vm);
	fault_disk_destroy(disk);
}

static void outlives_the_device(void **state)
{
	struct ebb_rig *vm = *state;
	enum oltp_rc rc;
	struct fixture f;

	fixture_open(&f, vm, 0);
	rig_insert(&f.rig, 0, RECORDS);
	limit(vm, 0, 4 * MIB);
	run_until_held(vm, 4 * MIB, 0);
	fake_ebb_dev_unplug(vm->dev);
	/* Lost, or on disk with no memory to come back to, or still there: never wrong. */
	for (uint64_t key = 0; key < RECORDS; key += RECORDS / 4) {
		rc = rig_read(&f.rig, key, 0);
		assert_true(rc == OLTP_OK || rc == OLTP_LOST || rc == OLTP_NO_MEMORY);
	}
	blocks_ebb_pump_stop(f.blocks);
	oltp_worker_destroy(f.rig.w);
	blocks_ebb_attach(f.blocks, NULL);
	oltp_engine_close(f.rig.engine);
	blocks_ebb_destroy(f.blocks);
	ebb_close(f.ebb);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(follows_limits, ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(says_what_memory_is_worth, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(simulates_what_is_promised, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(takes_no_more_than_told, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(outlives_a_revoke, ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(brings_back_what_was_revoked, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(outlives_the_device, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
