// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The TPC-C-like workload with memory for half of its rows: the others are on disk and come back
 * when they are used, and tables that have no block left get one of others. The conditions hold
 * afterwards, and so they do after the process was killed in the midst of it, and another one with
 * as little memory has recovered.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/bench/recovery.h"
#include "oltp-engine/bench/tpcc/tpcc_workload.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "tpcc_rig.h"

#define TXNS		200u
/* For anything that is waited for; longer is a hang. */
#define WAIT_SECONDS	300u
#define WORKERS		3u
/* Some blocks of each of the large tables; no more rows than that, as all are read thrice. */
#define ITEMS		16000u
#define CUSTOMERS	500u
#define ALL_MIB		256u
/* With fewer than a block for each table it is slow, which is not what is tested here. */
#define LEAST_BYTES	((TPCC_TABLES + 2u) * OLTP_MEM_BLOCK_BYTES)

struct database {
	struct tpcc_rig rig;
	struct oltp_blocks_native *blocks;
};

static char folder[300];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%.200s/tpcc-cold-XXXXXX", rig_dir());
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	(void)state;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

static struct tpcc_config config_of(void)
{
	struct tpcc_config config = tpcc_rig_config();

	config.items = ITEMS;
	config.customers = CUSTOMERS;
	return config;
}

static void open_tables(struct database *db, uint64_t limit_bytes)
{
	const struct tpcc_config config = config_of();
	struct oltp_config engine = {
		.cc = OLTP_CC_WOUND_WAIT,
		.node = -1,
		.txn_records_max = TPCC_RECORDS_MAX,
		.blocks = &oltp_blocks_native_ops,
		.cold_dir = rig_dir(),
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = folder,
		.log_segment_mib = 4,
	};

	*db = (struct database){ .blocks = NULL };
	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &db->blocks), 0);
	engine.blocks_ctx = db->blocks;
	assert_int_equal(oltp_engine_open(&engine, &db->rig.engine), 0);
	oltp_blocks_native_attach(db->blocks, db->rig.engine);
	assert_int_equal(tpcc_create(db->rig.engine, &config, &db->rig.tpcc), 0);
	db->rig.workload = tpcc_workload(db->rig.tpcc);
}

static void close_tables(struct database *db)
{
	tpcc_destroy(db->rig.tpcc);
	oltp_engine_close(db->rig.engine);
	assert_int_equal(oltp_blocks_native_held(db->blocks), 0);
	oltp_blocks_native_destroy(db->blocks);
}

static struct oltp_memory_stats stats_of(struct database *db)
{
	struct oltp_memory_stats stats;

	oltp_memory_stats_read(db->rig.engine, &stats);
	return stats;
}

static bool is_below(struct database *db, uint64_t bytes)
{
	struct oltp_memory_stats stats = stats_of(db);

	return stats.held_bytes <= bytes && stats.cold_records;
}

static bool is_late(uint64_t start_ns)
{
	return clock_now_ns() - start_ns >= WAIT_SECONDS * 1000000000ull;
}

/* The test fails: what was waited for did not come. */
static void fail_late(struct database *db, const char *what, uint64_t is, uint64_t expected)
{
	struct oltp_memory_stats stats = stats_of(db);

	fail_msg("%s: %llu instead of %llu after %u s; held %llu, unused %llu, resident %llu bytes "
		 "of %llu records, on disk %llu records, read %llu, evicted %llu, merged %llu",
		 what, (unsigned long long)is, (unsigned long long)expected, WAIT_SECONDS,
		 (unsigned long long)stats.held_bytes, (unsigned long long)stats.unused_bytes,
		 (unsigned long long)stats.resident_bytes,
		 (unsigned long long)stats.resident_records, (unsigned long long)stats.cold_records,
		 (unsigned long long)stats.cold_reads, (unsigned long long)stats.evicted_records,
		 (unsigned long long)stats.merged_records);
}

/* Memory goes down to about half of what the rows take. Returns that. */
static uint64_t take_half(struct database *db)
{
	uint64_t half = stats_of(db).resident_bytes / 2, start_ns = clock_now_ns();

	if (half < LEAST_BYTES)
		half = LEAST_BYTES;
	oltp_blocks_native_set_limit(db->blocks, half, start_ns + WAIT_SECONDS * 1000000000ull);
	while (!is_below(db, half)) {
		if (is_late(start_ns))
			fail_late(db, "bytes held", stats_of(db).held_bytes, half);
		rig_sleep_ms(1);
	}
	return half;
}

/* committed: of so many it is told, now and then; NULL: nobody is. */
static void run(struct database *db, uint64_t txns, _Atomic uint64_t *committed)
{
	const struct oltp_pool_config config = { .engine = db->rig.engine,
						 .workload = &db->rig.workload, .no_pin = true };
	uint64_t start_ns = clock_now_ns();
	struct oltp_totals totals = { 0 };
	struct oltp_pool *pool;

	assert_int_equal(oltp_pool_create(&config, &pool), 0);
	for (uint32_t cpu = 0; cpu < WORKERS; cpu++)
		assert_int_equal(oltp_pool_add(pool, cpu), 0);
	while (totals.committed < txns) {
		if (is_late(start_ns) && !committed)
			fail_late(db, "transactions", totals.committed, txns);
		rig_sleep_ms(1);
		oltp_pool_totals(pool, &totals);
		if (committed)
			atomic_store(committed, totals.committed);
	}
	oltp_pool_destroy(pool);
	assert_true(totals.colds > 0);
	assert_int_equal(totals.failed_io, 0);
	assert_int_equal(totals.failed_lost, 0);
}

/* All conditions hold, and half of it is on disk. */
static void check(struct database *db, uint64_t half)
{
	struct oltp_memory_stats stats = stats_of(db);

	assert_true(stats.held_bytes <= half);
	assert_true(stats.cold_records > stats.resident_records / 4);
	assert_int_equal(stats.lost_records, 0);
	tpcc_rig_assert_good(&db->rig);
}

static void recover(struct database *db, uint64_t half)
{
	struct recovery recovery = { 0 };

	open_tables(db, half);
	assert_int_equal(recovery_run(&recovery, db->rig.engine, &tpcc_workload_ops, db->rig.tpcc,
				      &(struct recovery_config){ .quiet = true }), 0);
	assert_true(recovery.has_found);
	assert_true(recovery.figures.transactions > 0);
}

static void test_half_of_the_memory(void **state)
{
	struct database db;
	uint64_t half;

	(void)state;
	open_tables(&db, ALL_MIB * MIB);
	assert_int_equal(tpcc_load(db.rig.tpcc, 2, NULL), 0);
	half = take_half(&db);
	run(&db, TXNS, NULL);
	check(&db, half);
	close_tables(&db);
}

/* What a process that is killed has told. */
struct told {
	_Atomic uint64_t half, committed;
};

/* Until the process has told of so many transactions; then it is no more. */
static void kill_after(pid_t pid, struct told *told)
{
	uint64_t start_ns = clock_now_ns();
	bool is_slow = false, has_ended = false;
	int status = 0;

	while (!is_slow && !has_ended && atomic_load(&told->committed) < TXNS) {
		rig_sleep_ms(1);
		is_slow = is_late(start_ns);
		has_ended = waitpid(pid, &status, WNOHANG) == pid;
	}
	if (!has_ended) {
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (is_slow || has_ended)
		fail_msg("the process to be killed %s, status %d: %llu of %u transactions, memory "
			 "for %llu bytes", has_ended ? "ended by itself" : "stands still", status,
			 (unsigned long long)told->committed, TXNS,
			 (unsigned long long)told->half);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_killed_with_half_of_the_memory(void **state)
{
	struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct database db;
	pid_t pid;

	(void)state;
	assert_true(told != MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		open_tables(&db, ALL_MIB * MIB);
		assert_int_equal(tpcc_load(db.rig.tpcc, 2, NULL), 0);
		told->half = take_half(&db);
		run(&db, UINT64_MAX, &told->committed);
		_exit(1);
	}
	kill_after(pid, told);
	/* That looks over all tables, too. */
	recover(&db, told->half);
	run(&db, TXNS / 10, NULL);
	check(&db, told->half);
	close_tables(&db);
	munmap(told, sizeof(*told));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_half_of_the_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_with_half_of_the_memory, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
