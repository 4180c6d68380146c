// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory taken by force: touching it is a SIGBUS, its records are lost, and that is said. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "rows_rig.h"
#include "taker_rig.h"

#define BLOCKS	16u

static void open_taker(struct taker *t, struct rig *rig, enum oltp_cc cc)
{
	taker_open(t, rig, BLOCKS, &(struct oltp_config){ .cc = cc, .cold_dir = rig_dir() });
}

static void wait_swept(struct rig *rig, uint64_t lost)
{
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && rig_stats(rig).lost_records < lost; ms++)
		rig_sleep_ms(1);
	assert_int_equal(rig_stats(rig).lost_records, lost);
}

/* Told after the fact: whoever looks finds OLTP_LOST, the others find their records. */
static void test_lost_records_are_named(void **state)
{
	(void)state;
	struct taker t;
	struct rig rig;

	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	rig_insert(&rig, 0, 2 * RIG_PER_BLOCK + 100);
	taker_take(&t, 1);
	/* Found out by touching: the first one and every later one alike. */
	for (uint64_t key = 0; key < 2 * RIG_PER_BLOCK + 100; key++) {
		bool is_lost = key >= RIG_PER_BLOCK && key < 2 * RIG_PER_BLOCK;

		assert_int_equal(rig_read(&rig, key, 0), is_lost ? OLTP_LOST : OLTP_OK);
	}
	assert_int_equal(oltp_memory_revoked(rig.engine, t.addrs[1], OLTP_MEM_BLOCK_BYTES),
			 OLTP_MEM_BLOCK_BYTES);
	wait_swept(&rig, RIG_PER_BLOCK);
	assert_int_equal(rig_stats(&rig).revoked_bytes, OLTP_MEM_BLOCK_BYTES);
	assert_int_equal(rig_stats(&rig).held_bytes, 2 * OLTP_MEM_BLOCK_BYTES);
	for (uint64_t key = 0; key < 2 * RIG_PER_BLOCK + 100; key++) {
		bool is_lost = key >= RIG_PER_BLOCK && key < 2 * RIG_PER_BLOCK;

		assert_int_equal(rig_update(&rig, key, 0), is_lost ? OLTP_LOST : OLTP_OK);
	}
	assert_int_equal(rig_scan(&rig, 2 * RIG_PER_BLOCK + 100, NULL), -EOWNERDEAD);
	/* New records go elsewhere. */
	rig_insert(&rig, 10000, 10000 + RIG_PER_BLOCK);
	for (uint64_t key = 10000; key < 10000 + RIG_PER_BLOCK; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	taker_close(&t, &rig);
}

/* In the middle of a transaction that has read and written there. */
static void test_transaction_does_not_commit_what_is_gone(void **state)
{
	(void)state;
	const struct oltp_span all = { 0, RIG_RECORD_BYTES };
	const void *found;
	void *record;
	struct taker t;
	struct rig rig;

	open_taker(&t, &rig, OLTP_CC_WAIT_DIE);
	rig_insert(&rig, 0, 2 * RIG_PER_BLOCK);
	oltp_txn_begin(rig.w);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 5, &found), OLTP_OK);
	assert_int_equal(oltp_txn_update(rig.w, rig.table, 3000, &all, 1, &record), OLTP_OK);
	taker_take(&t, 0);
	rig_fill_record(record, 3000, 1);
	/* Zeroes, and no signal. */
	assert_int_equal(((const volatile uint8_t *)found)[100], 0);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_LOST);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_INVALID);
	oltp_txn_abort(rig.w);
	/* What it wrote elsewhere is undone, and its locks are free. */
	assert_int_equal(rig_read(&rig, 3000, 0), OLTP_OK);
	assert_int_equal(rig_update(&rig, 3000, 2), OLTP_OK);
	/* One that had nothing to do with it commits. */
	assert_int_equal(rig_read(&rig, 3000, 2), OLTP_OK);
	oltp_memory_revoked(rig.engine, t.addrs[0], OLTP_MEM_BLOCK_BYTES);
	wait_swept(&rig, RIG_PER_BLOCK);
	taker_close(&t, &rig);
}

/*
 * The access that finds out is an atomic one: it takes its course after the signal, and under
 * ThreadSanitizer nobody waits for ever.
 */
static void test_atomic_access(void **state)
{
	(void)state;
	_Atomic uint64_t *word;
	uint64_t none = 0;
	struct taker t;
	struct rig rig;

	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	rig_insert(&rig, 0, 2 * RIG_PER_BLOCK);
	for (uint32_t block = 0; block < 2; block++) {
		taker_take(&t, block);
		word = (_Atomic uint64_t *)t.addrs[block];
		if (block)
			atomic_fetch_add(word, 1);
		else
			assert_true(atomic_compare_exchange_strong(word, &none, 1));
		assert_int_equal(atomic_load(word), 1);
		oltp_memory_revoked(rig.engine, t.addrs[block], OLTP_MEM_BLOCK_BYTES);
	}
	wait_swept(&rig, 2 * RIG_PER_BLOCK);
	taker_close(&t, &rig);
}

/* The host's word comes before anybody looks. */
static void test_told_first(void **state)
{
	(void)state;
	struct taker t;
	struct rig rig;

	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	rig_insert(&rig, 0, 2 * RIG_PER_BLOCK);
	assert_int_equal(oltp_memory_revoked(rig.engine, t.addrs[0], OLTP_MEM_BLOCK_BYTES),
			 OLTP_MEM_BLOCK_BYTES);
	/* Addresses that were never ours are nobody's. */
	assert_int_equal(oltp_memory_revoked(rig.engine, (uint8_t *)(uintptr_t)4096, 4 * MIB), 0);
	for (uint64_t key = 0; key < 2 * RIG_PER_BLOCK; key++)
		assert_int_equal(rig_read(&rig, key, 0), key < RIG_PER_BLOCK ? OLTP_LOST : OLTP_OK);
	wait_swept(&rig, RIG_PER_BLOCK);
	assert_int_equal(rig_scan(&rig, 2 * RIG_PER_BLOCK, NULL), -EOWNERDEAD);
	taker_close(&t, &rig);
}

/* What is on disk is safe from it. */
static void test_cold_records_are_not_lost(void **state)
{
	(void)state;
	uint32_t n_lost = 0;
	struct taker t;
	struct rig rig;

	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	rig_insert(&rig, 0, 4 * RIG_PER_BLOCK);
	oltp_memory_limit(rig.engine, 0, 4 * MIB, 0);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && rig_stats(&rig).held_bytes > 4 * MIB; ms++)
		rig_sleep_ms(1);
	assert_int_equal(rig_stats(&rig).held_bytes, 4 * MIB);
	for (uint32_t i = 0; i < 4; i++) {
		if (!t.addrs[i])
			continue;
		oltp_memory_revoked(rig.engine, t.addrs[i], OLTP_MEM_BLOCK_BYTES);
	}
	oltp_memory_limit(rig.engine, 0, 16 * MIB, 0);
	for (uint64_t key = 0; key < 4 * RIG_PER_BLOCK; key++) {
		enum oltp_rc rc = rig_read(&rig, key, 0);

		assert_true(rc == OLTP_OK || rc == OLTP_LOST);
		n_lost += rc == OLTP_LOST;
	}
	wait_swept(&rig, n_lost);
	assert_true(n_lost > 0 && n_lost <= 2 * RIG_PER_BLOCK);
	taker_close(&t, &rig);
}

struct worker {
	struct rig *rig;
	struct oltp_worker *w;
	_Atomic bool *stop;
	_Atomic uint64_t n_ok, n_lost;
	uint64_t n_wrong;
	pthread_t thread;
};

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	uint64_t key = 17;

	while (!atomic_load(worker->stop)) {
		uint8_t copy[RIG_RECORD_BYTES];
		const void *found;
		enum oltp_rc rc;

		key = (key * 25214903917ull + 11) % (8 * RIG_PER_BLOCK);
		oltp_txn_begin(worker->w);
		rc = oltp_txn_read(worker->w, worker->rig->table, key, &found);
		if (!rc) {
			memcpy(copy, found, sizeof(copy));
			rc = oltp_txn_commit(worker->w);
		}
		if (rc)
			oltp_txn_abort(worker->w);
		worker->n_ok += !rc;
		worker->n_lost += rc == OLTP_LOST;
		/* What commits is right. */
		worker->n_wrong += (!rc && !rig_record_is(copy, key, 0)) ||
				   (rc && rc != OLTP_LOST && rc != OLTP_CONFLICT);
	}
	return NULL;
}

static void test_blocks_go_while_threads_read(void **state)
{
	(void)state;
	struct worker workers[3] = { 0 };
	_Atomic bool stop = false;
	uint64_t n_lost = 0;
	struct taker t;
	struct rig rig;

	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	rig_insert(&rig, 0, 8 * RIG_PER_BLOCK);
	for (int i = 0; i < 3; i++) {
		workers[i].rig = &rig;
		workers[i].stop = &stop;
		assert_int_equal(oltp_worker_create(rig.engine, &workers[i].w), 0);
		pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
	}
	for (uint32_t block = 0; block < 5; block++) {
		const uint64_t n_ok = workers[block % 3].n_ok;

		while (workers[block % 3].n_ok == n_ok)
			rig_sleep_ms(1);
		taker_take(&t, block);
		rig_sleep_ms(block);
		oltp_memory_revoked(rig.engine, t.addrs[block], OLTP_MEM_BLOCK_BYTES);
	}
	for (int i = 0; i < 3; i++)
		while (!workers[i].n_lost)
			rig_sleep_ms(1);
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].n_wrong, 0);
		assert_true(workers[i].n_ok > 0);
		n_lost += workers[i].n_lost;
		oltp_worker_destroy(workers[i].w);
	}
	assert_true(n_lost > 0);
	wait_swept(&rig, 5 * RIG_PER_BLOCK);
	taker_close(&t, &rig);
}

static volatile sig_atomic_t n_others;
static sigjmp_buf others_way_out;

static void on_others(int number)
{
	(void)number;
	n_others++;
	siglongjmp(others_way_out, 1);
}

/* A SIGBUS somewhere else is somebody else's. */
static void test_other_addresses_go_to_the_handler_before(void **state)
{
	(void)state;
	struct sigaction action = { .sa_handler = on_others }, before, after;
	volatile uint8_t *page;
	struct taker t;
	struct rig rig;
	int fd = memfd_create("other", MFD_CLOEXEC);

	sigaction(SIGBUS, &action, &before);
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	assert_int_equal(oltp_memory_catch_revokes(rig.engine), -EEXIST);
	if (!sigsetjmp(others_way_out, 1))
		fail_msg("no signal: %d", page[0]);
	assert_int_equal(n_others, 1);
	taker_close(&t, &rig);
	sigaction(SIGBUS, NULL, &after);
	assert_ptr_equal(after.sa_handler, on_others);
	sigaction(SIGBUS, &before, NULL);
	munmap((void *)page, 4096);
	close(fd);
}

/*
 * Sort keys of lost rows stay behind: who scans them is told, and rows that were to go anyway are
 * no more. Row 0 is not lost: it has the keys that a lost record of zeroes seems to have.
 */
static void test_ordered_indexes_of_lost_rows(void **state)
{
	(void)state;
	struct ordered_rig rows;
	struct taker t;
	struct rig rig;
	uint64_t n = 2 * RIG_PER_BLOCK;

	open_taker(&t, &rig, OLTP_CC_NO_WAIT);
	rows_fill(&rig, &rows, n);
	taker_take(&t, 1);
	assert_int_equal(oltp_memory_revoked(rig.engine, t.addrs[1], OLTP_MEM_BLOCK_BYTES),
			 OLTP_MEM_BLOCK_BYTES);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_LOST);
	oltp_txn_abort(rig.w);
	/* Those that were being added are counted if the sweep came before the abort. */
	for (int ms = 0; ms < 30000 && rig_stats(&rig).lost_records < RIG_PER_BLOCK - 10; ms++)
		rig_sleep_ms(1);
	assert_in_range(rig_stats(&rig).lost_records, RIG_PER_BLOCK - 10, RIG_PER_BLOCK - 5);
	for (int ms = 0; ms < 30000 && !atomic_load(&rig.engine->revoked.swept); ms++)
		rig_sleep_ms(1);
	assert_int_equal(atomic_load(&rig.engine->revoked.times),
			 atomic_load(&rig.engine->revoked.swept));

	for (uint32_t turn = 0; turn < 2; turn++) {
		assert_int_equal(rows_scan(&rig, rows.by_key, 0, 99), OLTP_OK);
		assert_int_equal(rows_seen.n, 100);
		assert_int_equal(rows_scan(&rig, rows.by_group, 0, 9), OLTP_OK);
		assert_int_equal(rows_seen.n, 100);
		assert_int_equal(rows_scan(&rig, rows.by_key, 2400, 2600), OLTP_LOST);
		assert_int_equal(rows_scan(&rig, rows.by_group, 250, 250), OLTP_LOST);
		assert_int_equal(rows_scan(&rig, rows.by_key, n - 10, n), OLTP_OK);
		assert_int_equal(rows_seen.n, 0);
		/* What was being added. */
		assert_int_equal(rows_scan(&rig, rows.by_key, 9000, 9100), OLTP_OK);
		assert_int_equal(rows_seen.n, 0);
		assert_int_equal(rows_scan(&rig, rows.by_group, 900, 910), OLTP_OK);
		assert_int_equal(rows_seen.n, 0);
	}
	oltp_txn_begin(rig.w);
	for (uint64_t key = 9000; key < 9005; key++)
		assert_int_equal(rows_insert(&rig, key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_int_equal(rows_scan(&rig, rows.by_group, 900, 910), OLTP_OK);
	assert_int_equal(rows_seen.n, 5);
	taker_close(&t, &rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_records_are_named),
		cmocka_unit_test(test_transaction_does_not_commit_what_is_gone),
		cmocka_unit_test(test_atomic_access),
		cmocka_unit_test(test_told_first),
		cmocka_unit_test(test_cold_records_are_not_lost),
		cmocka_unit_test(test_blocks_go_while_threads_read),
		cmocka_unit_test(test_other_addresses_go_to_the_handler_before),
		cmocka_unit_test(test_ordered_indexes_of_lost_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
