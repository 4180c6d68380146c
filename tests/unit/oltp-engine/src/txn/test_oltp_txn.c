// SPDX-License-Identifier: GPL-2.0-or-later
/* Transactions through the public header: rollback, locks within one, limits, memory. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp.h"
#include "tests/lib/chance.h"

#define RECORD_BYTES	200u
#define RECORDS		50u

struct fixture {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w, *other;
};

static void fill(uint8_t *bytes, uint64_t key, uint8_t version)
{
	for (uint32_t i = 0; i < RECORD_BYTES; i++)
		bytes[i] = (uint8_t)(key * 31 + i * 7 + version);
}

static void fixture_open(struct fixture *f, const struct oltp_config *config)
{
	uint8_t bytes[RECORD_BYTES];

	assert_int_equal(oltp_engine_open(config, &f->engine), 0);
	assert_int_equal(oltp_table_create(f->engine, RECORD_BYTES, RECORDS, &f->table), 0);
	assert_int_equal(oltp_worker_create(f->engine, &f->w), 0);
	assert_int_equal(oltp_worker_create(f->engine, &f->other), 0);
	for (uint64_t key = 0; key < RECORDS; key++) {
		assert_int_equal(oltp_txn_begin(f->w), OLTP_OK);
		fill(bytes, key, 0);
		assert_int_equal(oltp_txn_insert(f->w, f->table, key, bytes), OLTP_OK);
		assert_int_equal(oltp_txn_commit(f->w), OLTP_OK);
	}
}

static void fixture_close(struct fixture *f)
{
	oltp_worker_destroy(f->w);
	oltp_worker_destroy(f->other);
	oltp_engine_close(f->engine);
}

static int check_record(void *ctx, uint64_t key, const void *record)
{
	uint8_t expected[RECORD_BYTES];
	uint64_t *n = ctx;

	(*n)++;
	fill(expected, key, 0);
	return memcmp(expected, record, RECORD_BYTES) ? -EILSEQ : 0;
}

/* G2: exactly the records of fixture_open, byte for byte. */
static void assert_untouched(struct fixture *f)
{
	uint64_t n = 0;

	assert_int_equal(oltp_table_scan(f->table, check_record, &n), 0);
	assert_int_equal(n, RECORDS);
}

static uint8_t *update(struct oltp_worker *w, struct oltp_table *table, uint64_t key,
		       uint32_t offset, uint32_t bytes)
{
	struct oltp_span span = { offset, bytes };
	void *record;

	assert_int_equal(oltp_txn_update(w, table, key, &span, 1, &record), OLTP_OK);
	return record;
}

static void test_abort_restores_every_byte(void **state)
{
	(void)state;
	struct fixture f;
	uint8_t bytes[RECORD_BYTES] = { 0 };

	fixture_open(&f, NULL);
	assert_int_equal(oltp_txn_begin(f.w), OLTP_OK);
	for (uint64_t key = 0; key < 20; key++) {
		uint8_t *record = update(f.w, f.table, key, (uint32_t)key, 101);

		memset(record + key, 0xee, 101);
		/* Overlapping, twice: of two images of a byte the older is the right one. */
		record = update(f.w, f.table, key, 50, 90);
		memset(record + 50, 0x11, 90);
	}
	for (uint64_t key = 1000; key < 1010; key++)
		assert_int_equal(oltp_txn_insert(f.w, f.table, key, bytes), OLTP_OK);
	/* An inserted record may be updated before it goes. */
	memset(update(f.w, f.table, 1005, 0, RECORD_BYTES), 0x77, RECORD_BYTES);
	oltp_txn_abort(f.w);
	assert_untouched(&f);

	/* Nothing stays locked and the keys are free. */
	assert_int_equal(oltp_txn_begin(f.other), OLTP_OK);
	for (uint64_t key = 0; key < 20; key++)
		update(f.other, f.table, key, 0, 1);
	for (uint64_t key = 1000; key < 1010; key++)
		assert_int_equal(oltp_txn_insert(f.other, f.table, key, bytes), OLTP_OK);
	oltp_txn_abort(f.other);
	assert_untouched(&f);
	fixture_close(&f);
}

static void test_commit_keeps_and_unlocks(void **state)
{
	(void)state;
	struct fixture f;
	const void *record;

	fixture_open(&f, NULL);
	assert_int_equal(oltp_txn_begin(f.w), OLTP_OK);
	memset(update(f.w, f.table, 3, 10, 5) + 10, 0xaa, 5);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);
	assert_int_equal(oltp_txn_begin(f.other), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.other, f.table, 3, &record), OLTP_OK);
	for (int i = 10; i < 15; i++)
		assert_int_equal(((const uint8_t *)record)[i], 0xaa);
	assert_int_equal(oltp_txn_commit(f.other), OLTP_OK);
	fixture_close(&f);
}

static void test_conflict_dooms_until_abort(void **state)
{
	(void)state;
	struct fixture f;
	struct oltp_worker_stats stats;
	struct oltp_span span = { 0, 1 };
	const void *record;
	void *writable;

	fixture_open(&f, NULL);
	oltp_txn_begin(f.w);
	oltp_txn_begin(f.other);
	update(f.w, f.table, 1, 0, 1);
	memset(update(f.other, f.table, 2, 0, 4), 0xcc, 4);
	assert_int_equal(oltp_txn_read(f.other, f.table, 1, &record), OLTP_CONFLICT);
	/* Doomed: everything but abort is refused. */
	assert_int_equal(oltp_txn_read(f.other, f.table, 5, &record), OLTP_INVALID);
	assert_int_equal(oltp_txn_update(f.other, f.table, 5, &span, 1, &writable), OLTP_INVALID);
	assert_int_equal(oltp_txn_insert(f.other, f.table, 99, &f), OLTP_INVALID);
	assert_int_equal(oltp_txn_commit(f.other), OLTP_INVALID);
	assert_int_equal(oltp_txn_begin(f.other), OLTP_INVALID);
	oltp_txn_abort(f.other);
	oltp_txn_abort(f.w);
	assert_untouched(&f);
	oltp_worker_stats_read(f.other, &stats);
	assert_int_equal(stats.conflicts, 1);
	assert_int_equal(stats.aborts, 1);
	fixture_close(&f);
}

static void test_readers_share_and_keep_writers_out(void **state)
{
	(void)state;
	struct fixture f;
	struct oltp_span span = { 0, 1 };
	const void *record;
	void *writable;

	fixture_open(&f, NULL);
	oltp_txn_begin(f.w);
	oltp_txn_begin(f.other);
	assert_int_equal(oltp_txn_read(f.w, f.table, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.other, f.table, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_update(f.other, f.table, 1, &span, 1, &writable), OLTP_CONFLICT);
	oltp_txn_abort(f.other);
	/* Alone now: to read, read, write and read again is its own business. */
	assert_int_equal(oltp_txn_read(f.w, f.table, 1, &record), OLTP_OK);
	((uint8_t *)update(f.w, f.table, 1, 0, 1))[0] = 42;
	assert_int_equal(oltp_txn_read(f.w, f.table, 1, &record), OLTP_OK);
	assert_int_equal(*(const uint8_t *)record, 42);
	update(f.w, f.table, 1, 0, 1);
	oltp_txn_begin(f.other);
	assert_int_equal(oltp_txn_read(f.other, f.table, 1, &record), OLTP_CONFLICT);
	oltp_txn_abort(f.other);
	oltp_txn_abort(f.w);
	assert_untouched(&f);
	oltp_txn_begin(f.other);
	update(f.other, f.table, 1, 0, 1);
	oltp_txn_abort(f.other);
	fixture_close(&f);
}

static void test_insert_is_invisible_until_commit(void **state)
{
	(void)state;
	struct fixture f;
	uint8_t bytes[RECORD_BYTES] = { 1 };
	const void *record;

	fixture_open(&f, NULL);
	oltp_txn_begin(f.w);
	assert_int_equal(oltp_txn_insert(f.w, f.table, 500, bytes), OLTP_OK);
	assert_int_equal(oltp_txn_insert(f.w, f.table, 500, bytes), OLTP_EXISTS);
	assert_int_equal(oltp_txn_read(f.w, f.table, 500, &record), OLTP_OK);
	oltp_txn_begin(f.other);
	assert_int_equal(oltp_txn_read(f.other, f.table, 500, &record), OLTP_CONFLICT);
	oltp_txn_abort(f.other);
	oltp_txn_begin(f.other);
	assert_int_equal(oltp_txn_insert(f.other, f.table, 500, bytes), OLTP_CONFLICT);
	oltp_txn_abort(f.other);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);
	oltp_txn_begin(f.other);
	assert_int_equal(oltp_txn_insert(f.other, f.table, 500, bytes), OLTP_EXISTS);
	assert_int_equal(oltp_txn_read(f.other, f.table, 500, &record), OLTP_OK);
	assert_memory_equal(record, bytes, RECORD_BYTES);
	oltp_txn_commit(f.other);
	fixture_close(&f);
}

static void test_not_found_and_bad_arguments(void **state)
{
	(void)state;
	struct fixture f;
	struct oltp_span bad[] = { { RECORD_BYTES, 1 }, { 0, RECORD_BYTES + 1 },
				   { UINT32_MAX, 2 }, { 1, UINT32_MAX } };
	const void *record;
	void *writable;

	fixture_open(&f, NULL);
	assert_int_equal(oltp_txn_read(f.w, f.table, 1, &record), OLTP_INVALID);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_INVALID);
	oltp_txn_abort(f.w);
	oltp_txn_begin(f.w);
	assert_int_equal(oltp_txn_read(f.w, f.table, UINT64_MAX, &record), OLTP_NOT_FOUND);
	for (int i = 0; i < 4; i++)
		assert_int_equal(oltp_txn_update(f.w, f.table, 1, &bad[i], 1, &writable),
				 OLTP_INVALID);
	/* Neither ends the transaction. */
	assert_int_equal(oltp_txn_read(f.w, f.table, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);

	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .cc = (enum oltp_cc)7 },
					  &f.engine), -EINVAL);
	/* Rounded up in 32 bits, this would be a buffer of no bytes. */
	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .txn_undo_bytes = UINT32_MAX },
					  &f.engine), -EINVAL);
	assert_int_equal(oltp_table_create(f.engine, 0, 1, &f.table), -EINVAL);
	assert_int_equal(oltp_table_create(f.engine, 8, 0, &f.table), -EINVAL);
	assert_int_equal(oltp_table_create(f.engine, (1u << 20) + 1, 1, &f.table), -EINVAL);
	fixture_close(&f);
}

static void test_limits_of_a_transaction(void **state)
{
	(void)state;
	struct oltp_config config = { .txn_records_max = 4, .txn_undo_bytes = 300 };
	struct oltp_span span = { 0, 100 };
	struct fixture f;
	const void *record;
	void *writable;
	enum oltp_rc rc = OLTP_OK;
	uint64_t n = 0;

	fixture_open(&f, &config);
	oltp_txn_begin(f.w);
	for (uint64_t key = 0; key < 4; key++)
		assert_int_equal(oltp_txn_read(f.w, f.table, key, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.w, f.table, 4, &record), OLTP_FULL);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_INVALID);
	oltp_txn_abort(f.w);

	oltp_txn_begin(f.w);
	for (n = 0; n < 4; n++) {
		rc = oltp_txn_update(f.w, f.table, n, &span, 1, &writable);
		if (rc)
			break;
		memset(writable, 0xdd, 100);
	}
	assert_int_equal(rc, OLTP_FULL);
	assert_true(n >= 2);
	oltp_txn_abort(f.w);
	assert_untouched(&f);
	fixture_close(&f);
}

static void test_hints_change_nothing(void **state)
{
	(void)state;
	struct oltp_hint hints[200];
	struct fixture f;
	const void *record;

	fixture_open(&f, NULL);
	for (uint32_t i = 0; i < 200; i++)
		hints[i] = (struct oltp_hint){ i * 3, i, i % 5 ? 100 : 0, i % 2 ? f.table : NULL };
	oltp_txn_begin(f.w);
	oltp_txn_prefetch(f.w, f.table, hints, 200);
	/* In order, out of order, not announced, announced but absent. */
	assert_int_equal(oltp_txn_read(f.w, f.table, 0, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.w, f.table, 9, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.w, f.table, 3, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.w, f.table, 7, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.w, f.table, 597, &record), OLTP_NOT_FOUND);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);
	oltp_txn_begin(f.w);
	assert_int_equal(oltp_txn_read(f.w, f.table, 7, &record), OLTP_OK);
	oltp_txn_commit(f.w);
	fixture_close(&f);
}

static void replace(struct oltp_worker *w, struct oltp_table *table, uint64_t key,
		    const uint8_t *bytes)
{
	assert_int_equal(oltp_txn_begin(w), OLTP_OK);
	assert_int_equal(oltp_txn_delete(w, table, key), OLTP_OK);
	if (bytes)
		assert_int_equal(oltp_txn_insert(w, table, key, bytes), OLTP_OK);
	assert_int_equal(oltp_txn_commit(w), OLTP_OK);
}

/* Announced while another one runs, whatever becomes of that, and of the hints. */
static void test_hints_of_the_next_change_nothing(void **state)
{
	(void)state;
	struct oltp_hint now[2] = { { .key = 1, .bytes = 8 }, { .key = 2, .bytes = 8 } };
	struct oltp_hint next[200] = { { .key = 3, .bytes = 8 }, { .key = 4 } };
	uint8_t bytes[RECORD_BYTES];
	const void *record;
	struct fixture f;

	fixture_open(&f, NULL);
	for (uint32_t round = 0; round < 6; round++) {
		/* Committed or aborted and run again; announced twice; too many. */
		for (uint32_t attempt = 0; attempt < 2; attempt++) {
			oltp_txn_begin(f.w);
			oltp_txn_prefetch(f.w, f.table, now, 2);
			if (!attempt)
				oltp_txn_prefetch_next(f.w, f.table, next, round == 5 ? 200 : 2);
			if (!attempt && round == 3)
				oltp_txn_prefetch_next(f.w, f.table, next + 1, 1);
			assert_int_equal(oltp_txn_read(f.w, f.table, 1, &record), OLTP_OK);
			if (round % 2 && !attempt)
				oltp_txn_abort(f.w);
			else
				assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);
		}
		/* The row has moved since, or the array is one of other hints by now. */
		fill(bytes, 3, (uint8_t)round);
		replace(f.other, f.table, 3, bytes);
		next[1].key = round == 4 ? 5 : 4;
		oltp_txn_begin(f.w);
		oltp_txn_prefetch(f.w, f.table, next, 2);
		assert_int_equal(oltp_txn_read(f.w, f.table, 3, &record), OLTP_OK);
		assert_memory_equal(record, bytes, RECORD_BYTES);
		fill(bytes, next[1].key, 0);
		assert_memory_equal(update(f.w, f.table, next[1].key, 0, 8), bytes, RECORD_BYTES);
		assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);
	}
	fixture_close(&f);
}

/* Where announcing has found a row, another one may be by the time of the access, or none. */
static void test_what_was_announced_may_change(void **state)
{
	(void)state;
	const struct oltp_hint hints[] = {
		{ .key = 7, .bytes = 8 }, { .key = 8, .bytes = 8 }, { .key = 9, .bytes = 8 },
	};
	uint8_t bytes[RECORD_BYTES];
	const void *record;
	struct fixture f;

	fixture_open(&f, NULL);
	assert_int_equal(oltp_txn_begin(f.w), OLTP_OK);
	oltp_txn_prefetch(f.w, f.table, hints, 3);
	fill(bytes, 7, 1);
	replace(f.other, f.table, 7, bytes);
	replace(f.other, f.table, 8, NULL);
	/* Most likely where row 8 was. */
	assert_int_equal(oltp_txn_begin(f.other), OLTP_OK);
	assert_int_equal(oltp_txn_insert(f.other, f.table, RECORDS, bytes), OLTP_OK);
	assert_int_equal(oltp_txn_commit(f.other), OLTP_OK);
	assert_int_equal(oltp_txn_read(f.w, f.table, 7, &record), OLTP_OK);
	assert_memory_equal(record, bytes, RECORD_BYTES);
	assert_int_equal(oltp_txn_read(f.w, f.table, 8, &record), OLTP_NOT_FOUND);
	fill(bytes, 9, 0);
	assert_memory_equal(update(f.w, f.table, 9, 0, 8), bytes, RECORD_BYTES);
	assert_int_equal(oltp_txn_commit(f.w), OLTP_OK);
	fixture_close(&f);
}

static void test_worker_destroyed_in_a_transaction(void **state)
{
	(void)state;
	struct fixture f;

	fixture_open(&f, NULL);
	oltp_txn_begin(f.other);
	memset(update(f.other, f.table, 7, 0, 9), 0, 9);
	oltp_worker_destroy(f.other);
	f.other = NULL;
	assert_untouched(&f);
	oltp_txn_begin(f.w);
	update(f.w, f.table, 7, 0, 1);
	oltp_txn_abort(f.w);
	fixture_close(&f);
}

/* A memory source that fails at the nth request and counts what it has out. */
struct source {
	int left;
	int out;
};

static void *source_alloc(void *ctx, size_t bytes, int node)
{
	struct source *source = ctx;
	void *addr;

	(void)node;
	if (source->left-- <= 0)
		return NULL;
	addr = aligned_alloc(OLTP_MEM_BLOCK_BYTES, bytes);
	memset(addr, 0, bytes);
	source->out++;
	return addr;
}

static void source_free(void *ctx, void *addr, size_t bytes)
{
	struct source *source = ctx;

	(void)bytes;
	free(addr);
	source->out--;
}

/* Inserts until memory ends; what was committed is there, what was not is not. */
static void run_out_of_memory(int allowed)
{
	static const struct oltp_mem_ops ops = { source_alloc, source_free };
	struct source source = { allowed, 0 };
	struct oltp_config config = { .mem = &ops, .mem_ctx = &source };
	uint8_t bytes[1000] = { 0 };
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	const void *record;
	enum oltp_rc rc = OLTP_OK;
	uint64_t key = 0;

	assert_int_equal(oltp_engine_open(&config, &engine), 0);
	if (!allowed) {
		assert_int_equal(oltp_table_create(engine, sizeof(bytes), 100, &table), -ENOMEM);
		oltp_engine_close(engine);
		return;
	}
	assert_int_equal(oltp_table_create(engine, sizeof(bytes), 100, &table), 0);
	assert_int_equal(oltp_worker_create(engine, &w), 0);
	for (;;) {
		oltp_txn_begin(w);
		rc = oltp_txn_insert(w, table, key, bytes);
		if (rc)
			break;
		assert_int_equal(oltp_txn_commit(w), OLTP_OK);
		key++;
	}
	assert_int_equal(rc, OLTP_NO_MEMORY);
	oltp_txn_abort(w);
	oltp_txn_begin(w);
	if (key)
		assert_int_equal(oltp_txn_read(w, table, key - 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(w, table, key, &record), OLTP_NOT_FOUND);
	oltp_txn_commit(w);
	oltp_worker_destroy(w);
	oltp_engine_close(engine);
	assert_int_equal(source.out, 0);
}

static void test_out_of_memory_at_every_request(void **state)
{
	(void)state;
	for (int allowed = 0; allowed < 5; allowed++)
		run_out_of_memory(allowed);
}

static void test_records_of_aborted_inserts_are_used_again(void **state)
{
	(void)state;
	static const struct oltp_mem_ops ops = { source_alloc, source_free };
	/* One block for the index, one for records. */
	struct source source = { 2, 0 };
	struct oltp_config config = { .mem = &ops, .mem_ctx = &source };
	uint8_t bytes[1000] = { 0 };
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;

	assert_int_equal(oltp_engine_open(&config, &engine), 0);
	assert_int_equal(oltp_table_create(engine, sizeof(bytes), 100, &table), 0);
	/* 10000 records of a kilobyte are five blocks; and the worker changes now and then. */
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(oltp_worker_create(engine, &w), 0);
		for (uint64_t n = 0; n < 100; n++) {
			oltp_txn_begin(w);
			assert_int_equal(oltp_txn_insert(w, table, n, bytes), OLTP_OK);
			oltp_txn_abort(w);
		}
		oltp_worker_destroy(w);
	}
	oltp_engine_close(engine);
	assert_int_equal(source.out, 0);
}

static void test_workers_come_and_go(void **state)
{
	(void)state;
	static struct oltp_worker *workers[OLTP_WORKERS_MAX + 1];
	struct oltp_engine *engine;
	uint32_t n = 0;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	while (!oltp_worker_create(engine, &workers[n]))
		assert_true(++n <= OLTP_WORKERS_MAX);
	assert_int_equal(n, OLTP_WORKERS_MAX);
	assert_int_equal(oltp_worker_create(engine, &workers[n]), -ENOSPC);
	oltp_worker_destroy(workers[17]);
	assert_int_equal(oltp_worker_create(engine, &workers[17]), 0);
	while (n--)
		oltp_worker_destroy(workers[n]);
	oltp_engine_close(engine);
}

/*
 * Inserters of the same keys that all abort, with readers of records that come and go
 * all the time: a reader must never see a record under the wrong key.
 */
struct churn {
	struct oltp_engine *engine;
	struct oltp_table *table;
	uint32_t number;
	pthread_barrier_t *start;
	_Atomic uint64_t *wrong;
};

static void *churn_main(void *arg)
{
	struct churn *c = arg;
	struct oltp_worker *w;
	uint64_t random = c->number + 1;

	if (oltp_worker_create(c->engine, &w))
		abort();
	pthread_barrier_wait(c->start);
	for (int i = 0; i < 60000; i++) {
		uint64_t record[4], key;
		const void *found;

		chance_step(&random);
		key = (random >> 33) % 16;
		oltp_txn_begin(w);
		if (i % 2) {
			for (int j = 0; j < 4; j++)
				record[j] = key;
			/* Somebody may find the record before it is taken back, and wait. */
			if (oltp_txn_insert(w, c->table, key, record) == OLTP_OK && i % 64 == 1)
				sched_yield();
		} else if (oltp_txn_read(w, c->table, key, &found) == OLTP_OK) {
			memcpy(record, found, sizeof(record));
			for (int j = 0; j < 4; j++)
				*c->wrong += record[j] != key;
		}
		oltp_txn_abort(w);
	}
	oltp_worker_destroy(w);
	return NULL;
}

static void churn(enum oltp_cc cc)
{
	struct oltp_engine *engine;
	struct oltp_table *table;
	_Atomic uint64_t wrong = 0;
	struct churn churns[4];
	pthread_barrier_t start;
	pthread_t threads[4];

	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .cc = cc }, &engine), 0);
	assert_int_equal(oltp_table_create(engine, 32, 4, &table), 0);
	pthread_barrier_init(&start, NULL, 4);
	for (uint32_t i = 0; i < 4; i++) {
		churns[i] = (struct churn){ engine, table, i, &start, &wrong };
		assert_int_equal(pthread_create(&threads[i], NULL, churn_main, &churns[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	assert_int_equal(wrong, 0);
	oltp_engine_close(engine);
}

static void test_records_that_come_and_go_no_wait(void **state)
{
	(void)state;
	churn(OLTP_CC_NO_WAIT);
}

static void test_records_that_come_and_go_wait_die(void **state)
{
	(void)state;
	churn(OLTP_CC_WAIT_DIE);
}

static void test_records_that_come_and_go_wound_wait(void **state)
{
	(void)state;
	churn(OLTP_CC_WOUND_WAIT);
}

static void test_strerror_has_all(void **state)
{
	(void)state;
	for (int rc = OLTP_OK; rc <= OLTP_INVALID; rc++)
		assert_string_not_equal(oltp_strerror((enum oltp_rc)rc), "unknown result");
	assert_string_equal(oltp_strerror((enum oltp_rc)99), "unknown result");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abort_restores_every_byte),
		cmocka_unit_test(test_commit_keeps_and_unlocks),
		cmocka_unit_test(test_conflict_dooms_until_abort),
		cmocka_unit_test(test_readers_share_and_keep_writers_out),
		cmocka_unit_test(test_insert_is_invisible_until_commit),
		cmocka_unit_test(test_not_found_and_bad_arguments),
		cmocka_unit_test(test_limits_of_a_transaction),
		cmocka_unit_test(test_hints_change_nothing),
		cmocka_unit_test(test_hints_of_the_next_change_nothing),
		cmocka_unit_test(test_what_was_announced_may_change),
		cmocka_unit_test(test_worker_destroyed_in_a_transaction),
		cmocka_unit_test(test_out_of_memory_at_every_request),
		cmocka_unit_test(test_records_of_aborted_inserts_are_used_again),
		cmocka_unit_test(test_workers_come_and_go),
		cmocka_unit_test(test_records_that_come_and_go_no_wait),
		cmocka_unit_test(test_records_that_come_and_go_wait_die),
		cmocka_unit_test(test_records_that_come_and_go_wound_wait),
		cmocka_unit_test(test_strerror_has_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
