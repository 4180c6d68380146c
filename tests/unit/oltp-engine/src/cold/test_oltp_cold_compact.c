// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file of cold records has room for little more than twice of them, and records come and go all
 * the time, but for some that nobody ever wants: extents get free by compaction only.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "tests/lib/chance.h"

#define RECORDS		8000u	/* four blocks */
#define FILE_BYTES	(10 * MIB)
#define UPDATES		40000u
#define RESTING		8u	/* one in so many keys is in nobody's use */
#define THREADS		2u

static void test_percent(void **state)
{
	(void)state;
	assert_int_equal(compact_percent(63, UINT32_MAX), 0);
	assert_int_equal(compact_percent(64, UINT32_MAX), 25);
	/* Short of extents, for what is used. */
	assert_int_equal(compact_percent(1, 15), 50);
	assert_int_equal(compact_percent(1000, 16 + 124), 50);
	assert_int_equal(compact_percent(1000, 16 + 125), 25);
	assert_int_equal(compact_percent(7, 16), 0);
}

static void open_small(struct rig *rig)
{
	rig_open(rig, OLTP_CC_NO_WAIT, 8 * MIB, true, FILE_BYTES);
	rig_insert(rig, 0, RECORDS);
}

struct churn {
	struct rig rig;
	pthread_t thread;
	uint64_t part;		/* of THREADS: keys that leave this when divided */
	uint32_t n_failed;
	uint64_t *counters;
};

static void *churn_main(void *arg)
{
	struct churn *churn = arg;
	uint64_t random = churn->part + 1;

	for (uint32_t i = 0; i < UPDATES / THREADS; i++) {
		uint64_t key;

		do {
			chance_step(&random);
			key = (random >> 33) % RECORDS;
		} while (key % RESTING == 0 || key % THREADS != churn->part);
		if (rig_update(&churn->rig, key, churn->counters[key] + 1) == OLTP_OK)
			churn->counters[key]++;
		else
			churn->n_failed++;
	}
	return NULL;
}

/* Returns how many updates failed. */
static uint32_t churn(struct rig *rig, uint64_t *counters)
{
	struct churn churns[THREADS];
	uint32_t n_failed = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		churns[i] = (struct churn){ .rig = *rig, .part = i, .counters = counters };
		assert_int_equal(oltp_worker_create(rig->engine, &churns[i].rig.w), 0);
		assert_int_equal(pthread_create(&churns[i].thread, NULL, churn_main, &churns[i]),
				 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(churns[i].thread, NULL), 0);
		oltp_worker_destroy(churns[i].rig.w);
		n_failed += churns[i].n_failed;
	}
	return n_failed;
}

static void test_room_does_not_run_out(void **state)
{
	static uint64_t counters[RECORDS];
	struct oltp_memory_stats stats;
	struct rig rig;

	(void)state;
	open_small(&rig);
	assert_int_equal(rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS).held_bytes, 4 * MIB);
	/* How many records are found on disk depends on who runs when. */
	do {
		assert_int_equal(churn(&rig, counters), 0);
		stats = rig_stats_of(&rig, RECORDS);
	} while (stats.evicted_bytes <= FILE_BYTES);
	assert_true(stats.compacted_records > 0);
	assert_int_equal(stats.read_errors + stats.write_errors, 0);
	assert_int_equal(stats.file_bytes, FILE_BYTES);
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_close(&rig);
}

struct fault {
	_Atomic uint32_t n, n_failed;
};

/* Of reads of whole extents, as compaction does them, some; and some writes. */
static int32_t inject(void *ctx, const struct io_request *request, int32_t result)
{
	struct fault *fault = ctx;

	if ((!request->is_write && request->bytes != COLD_EXTENT_BYTES) ||
	    atomic_fetch_add(&fault->n, 1) % 50 != 25)
		return result;
	atomic_fetch_add(&fault->n_failed, 1);
	return -EIO;
}

/* Nothing is lost, and once the disk is well again everything goes on. */
static void test_errors(void **state)
{
	static uint64_t counters[RECORDS];
	struct fault fault = { .n = 0 };
	struct oltp_memory_stats stats;
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, FILE_BYTES);
	rig_hook(&rig, inject, &fault);
	rig_insert(&rig, 0, RECORDS);
	assert_int_equal(rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS).held_bytes, 4 * MIB);
	/* While nothing can be written there may be no room. */
	churn(&rig, counters);
	stats = rig_stats_of(&rig, RECORDS);
	assert_true(fault.n_failed > 0);
	assert_true(stats.compacted_records > 0);
	assert_int_equal(stats.read_errors + stats.write_errors, fault.n_failed);
	assert_int_equal(rig_scan(&rig, RECORDS, counters), 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_percent),
		RIG_TEST(test_room_does_not_run_out),
		RIG_TEST(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
