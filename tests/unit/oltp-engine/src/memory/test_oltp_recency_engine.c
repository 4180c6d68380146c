// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records that are watched in an engine with a manager, where they go to disk, come back, are
 * deleted and lost.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"
#include "recency_members.h"
#include "tests/lib/chance.h"

#define RECORDS	8000u

static struct oltp_memory_sample samples[SAMPLES];

struct seen {
	uint32_t n, n_resident;
	uint64_t resident_bytes, cold_bytes;
};

static struct seen look(struct rig *rig)
{
	struct seen seen = { .n = oltp_memory_sample_read(rig->engine, samples, SAMPLES) };

	for (uint32_t i = 0; i < seen.n; i++) {
		seen.n_resident += samples[i].is_resident;
		if (samples[i].is_resident)
			seen.resident_bytes += samples[i].stands_for_bytes;
		else
			seen.cold_bytes += samples[i].stands_for_bytes;
	}
	return seen;
}

static uint64_t looks(struct rig *rig)
{
	struct oltp_memory_recency recency;

	assert_int_equal(oltp_memory_recency_read(rig->engine, &recency), 0);
	return recency.looks;
}

/* So long that everything that is there now is known. */
static void wait_turns(struct rig *rig)
{
	uint64_t n = looks(rig) + TURNS_ALL;

	for (int ms = 0; ms < 2 * (int)RIG_DEADLINE_MS && looks(rig) < n; ms++)
		rig_sleep_ms(1);
	assert_true(looks(rig) >= n);
}

#define LONG_MS	1000u

static int32_t slow(void *ctx, const struct io_request *request, int32_t result)
{
	(void)request;
	rig_sleep_ms(*(const uint32_t *)ctx);
	return result;
}

/* ns of the dearest read so far. */
static double cost_max(struct rig *rig)
{
	struct oltp_memory_recency recency;

	assert_int_equal(oltp_memory_recency_read(rig->engine, &recency), 0);
	return recency.reread_p99_ns;
}

/*
 * A read that is long on its way while transactions run has not cost that long; one for which the
 * worker can only wait has. Few are read, so that the dearest of them is what p99 says.
 */
static void test_cost_is_the_workers_time(void **state)
{
	(void)state;
	struct oltp_cold_done done;
	uint32_t ms = 0;
	const void *record;
	struct rig rig;
	uint64_t key = 0;

	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_hook(&rig, slow, &ms);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	while (!rig_is_cold(&rig, key))
		key++;
	oltp_txn_begin(rig.w);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, key, &record), OLTP_COLD);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_cold_fetch(rig.w, 0), OLTP_OK);
	rig_sleep_ms(LONG_MS);
	rig_work(&rig);
	while (!oltp_cold_poll(rig.w, &done, 1, false))
		;
	assert_int_equal(done.rc, OLTP_OK);
	assert_true(cost_max(&rig) < LONG_MS / 2 * 1e6);
	while (!rig_is_cold(&rig, key))
		key++;
	ms = LONG_MS;
	assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_true(cost_max(&rig) > LONG_MS / 2 * 1e6);
	ms = 0;
	rig_close(&rig);
}

static void test_cold_ones_are_watched(void **state)
{
	(void)state;
	struct oltp_memory_recency recency;
	struct oltp_memory_stats stats;
	struct seen before, after;
	struct rig rig;
	double share;

	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	wait_turns(&rig);
	before = look(&rig);
	assert_in_range(before.n, 256, 1024);
	assert_int_equal(before.n_resident, before.n);
	assert_int_equal(samples[0].reread_ns, 0);
	rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	wait_turns(&rig);
	after = look(&rig);
	stats = rig_stats(&rig);
	share = (double)after.n_resident / after.n;
	/* Half of them, within five standard deviations. */
	assert_true(fabs(share - (double)stats.resident_records / RECORDS) <
		    5 * 0.5 / sqrt(after.n));
	assert_true(fabs((double)after.cold_bytes / (double)(stats.cold_records * 1024) - 1) < 0.5);
	assert_true(fabs((double)after.resident_bytes / (double)(stats.resident_records * 1024) -
			 1) < 0.1);
	/* Nobody has read one, and yet it is known how long it takes. */
	assert_int_equal(rig_stats(&rig).cold_reads, 0);
	assert_true(samples[0].reread_ns > 0);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	assert_int_equal(oltp_memory_recency_read(rig.engine, &recency), 0);
	/* Those that were read for the time they take are in it. */
	assert_true(recency.rereads > rig_stats(&rig).cold_reads);
	assert_true(recency.rereads <= rig_stats(&rig).cold_reads + 8);
	assert_true(recency.reread_p50_ns > 0 && recency.reread_p99_ns >= recency.reread_p50_ns);
	assert_true(recency.reread_cpu_ns > 0);
	/* With room for all they come back by themselves, and were the same ones all the time. */
	rig_demand(&rig, 32 * MIB, 0);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && rig_stats(&rig).cold_records; ms++) {
		rig_work(&rig);
		rig_sleep_ms(1);
	}
	assert_int_equal(rig_stats(&rig).cold_records, 0);
	wait_turns(&rig);
	after = look(&rig);
	assert_int_equal(after.n_resident, after.n);
	rig_close(&rig);
}

/* Whoever reads a cold record notes the epoch, which may be one that the manager has yet to see. */
static void use_ahead(void *ctx, const struct recency_member *member)
{
	struct oltp_engine *engine = ctx;
	struct cold_block *block = cold_stub_block(engine->cold, member->ref.entry);

	atomic_store(&block->used[cold_stub_slot(member->ref.entry)],
		     (uint32_t)epoch_now(&engine->epoch) + 1000);
}

/* A record keeps its uses when it goes to disk, comes back, and is put elsewhere. */
static void test_uses_outlive_moves(void **state)
{
	(void)state;
	struct recency_sampler *sampler;
	uint64_t start_ns, read_ns, now_ns;
	uint32_t n_kept = 0, n;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	/* As many as are watched all. */
	rig_insert(&rig, 0, 400);
	wait_turns(&rig);
	for (uint64_t key = 0; key < 400; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	wait_turns(&rig);
	n = look(&rig).n;
	assert_in_range(n, 200, 400);
	for (uint32_t i = 0; i < n; i++)
		assert_true(samples[i].before_ns != OLTP_NOT_KNOWN);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	assert_int_equal(rig_stats(&rig).cold_records, 400);
	wait_turns(&rig);
	assert_int_equal(look(&rig).n_resident, 0);
	n = look(&rig).n;
	for (uint32_t i = 0; i < n; i++)
		n_kept += samples[i].before_ns != OLTP_NOT_KNOWN;
	assert_int_equal(n_kept, n);
	sampler = rig.engine->manager->recency;
	pthread_mutex_lock(&sampler->lock);
	each_member(sampler, use_ahead, rig.engine);
	pthread_mutex_unlock(&sampler->lock);
	/* On disk, or on the way back: a use like any other. */
	start_ns = manager_busy_ns(rig.engine->manager);
	wait_turns(&rig);
	rig_demand(&rig, 2 * MIB, 0);
	read_ns = manager_busy_ns(rig.engine->manager);
	wait_turns(&rig);
	for (uint64_t key = 0; key < 400; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	wait_turns(&rig);
	n = look(&rig).n;
	now_ns = manager_busy_ns(rig.engine->manager);
	n_kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		/*
		 * Others are new: with all on disk fewer were watched. The clock may have stood
		 * still since the start, as nobody ran transactions.
		 */
		if (samples[i].watched_ns <= now_ns - start_ns)
			continue;
		assert_true(samples[i].last_ns <= now_ns - read_ns);
		assert_true(samples[i].before_ns < samples[i].watched_ns);
		n_kept++;
	}
	assert_in_range(n_kept, 16, 400);
	rig_close(&rig);
}

static void assert_not_lost(void *ctx, const struct recency_member *member)
{
	const struct rig *rig = ctx;
	const struct block *block = storage_block_of(&rig->engine->storage,
						     index_record(member->ref.entry));

	assert_true(block->state != BLOCK_REVOKED);
}

/* Its memory is taken: it is forgotten with it. */
static void test_lost_are_forgotten(void **state)
{
	(void)state;
	struct recency_sampler *sampler;
	struct block **blocks;
	struct rig rig;
	void *lost[16];
	size_t n;

	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, false, 0);
	rig_insert(&rig, 0, RECORDS);
	wait_turns(&rig);
	assert_int_equal(storage_blocks_list(&rig.engine->storage, &blocks, &n), 0);
	assert_in_range(n, 2, ARRAY_SIZE(lost));
	for (size_t i = 0; i + 1 < n; i++) {
		lost[i] = blocks[i]->addr;
		oltp_memory_revoked(rig.engine, lost[i], OLTP_MEM_BLOCK_BYTES);
	}
	free(blocks);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && !rig_stats(&rig).lost_records; ms++)
		rig_sleep_ms(1);
	wait_turns(&rig);
	assert_true(rig_stats(&rig).lost_records > RECORDS / 2);
	sampler = rig.engine->manager->recency;
	pthread_mutex_lock(&sampler->lock);
	assert_true(each_member(sampler, assert_not_lost, &rig) > 0);
	pthread_mutex_unlock(&sampler->lock);
	oltp_worker_destroy(rig.w);
	oltp_engine_close(rig.engine);
	/* The engine has not. */
	for (size_t i = 0; i + 1 < n; i++)
		oltp_blocks_native_ops.release(rig.blocks, lost[i], OLTP_MEM_BLOCK_BYTES);
	assert_int_equal(oltp_blocks_native_held(rig.blocks), 0);
	oltp_blocks_native_destroy(rig.blocks);
}

struct crowd {
	struct rig *rig;
	_Atomic bool quit;
};

static void *read_samples(void *arg)
{
	struct crowd *crowd = arg;
	static struct oltp_memory_sample own[SAMPLES];
	struct oltp_memory_recency recency;

	while (!atomic_load(&crowd->quit)) {
		uint32_t n = oltp_memory_sample_read(crowd->rig->engine, own, SAMPLES);

		for (uint32_t i = 0; i < n; i++)
			assert_true(own[i].stands_for_bytes > 0 && own[i].bytes == 1024 &&
				    own[i].last_ns <= own[i].before_ns);
		assert_int_equal(oltp_memory_recency_read(crowd->rig->engine, &recency), 0);
		rig_sleep_ms(1);
	}
	return NULL;
}

/* All at once: uses, demands, offers, deletes, and somebody who looks. */
static void test_while_everything_moves(void **state)
{
	(void)state;
	struct crowd crowd = { .quit = false };
	uint64_t random = 5;
	pthread_t reader;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	crowd.rig = &rig;
	assert_int_equal(pthread_create(&reader, NULL, read_samples, &crowd), 0);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 500; i++) {
			chance_step(&random);
			assert_int_equal(rig_read(&rig, (random >> 33) % RECORDS, 0), OLTP_OK);
		}
		rig_demand(&rig, round % 2 ? 10 * MIB : 4 * MIB, RIG_DEADLINE_MS);
	}
	atomic_store(&crowd.quit, true);
	pthread_join(reader, NULL);
	assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
	rig_close(&rig);
}

/* An engine whose memory stays watches nothing, and says so. */
static void test_nothing_without_a_manager(void **state)
{
	(void)state;
	struct oltp_memory_recency recency;
	struct oltp_engine *engine;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_memory_sample_read(engine, samples, SAMPLES), 0);
	assert_int_equal(oltp_memory_recency_read(engine, &recency), 0);
	assert_int_equal(recency.samples, 0);
	assert_int_equal(recency.looks, 0);
	assert_true(isnan(recency.unused_1s));
	oltp_engine_close(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cold_ones_are_watched),
		cmocka_unit_test(test_cost_is_the_workers_time),
		cmocka_unit_test(test_uses_outlive_moves),
		cmocka_unit_test(test_lost_are_forgotten),
		cmocka_unit_test(test_while_everything_moves),
		cmocka_unit_test(test_nothing_without_a_manager),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
