// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which records are watched, and what is seen of them, in an engine whose time is made up and in
 * which nothing moves; the test itself looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "oltp-engine/src/txn/engine.h"
#include "recency_members.h"

#define TICK	20000000ull

struct lab {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	struct recency_sampler *sampler;
	uint64_t now_ns;
	struct oltp_memory_sample samples[SAMPLES];
};

static struct lab *lab_open(uint64_t capacity)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	assert_int_equal(oltp_engine_open(NULL, &lab->engine), 0);
	assert_int_equal(oltp_table_create(lab->engine, 48, capacity, &lab->table), 0);
	assert_int_equal(oltp_worker_create(lab->engine, &lab->w), 0);
	lab->now_ns = TICK;
	assert_int_equal(recency_create(lab->engine, lab->now_ns, &lab->sampler), 0);
	return lab;
}

static void lab_close(struct lab *lab)
{
	recency_destroy(lab->sampler);
	oltp_worker_destroy(lab->w);
	oltp_engine_close(lab->engine);
	free(lab);
}

static void lab_turn(struct lab *lab, uint32_t n)
{
	while (n--) {
		lab->now_ns += TICK;
		epoch_advance(&lab->engine->epoch);
		recency_turn(lab->sampler, lab->engine->n_tables, lab->now_ns);
	}
}

static void lab_insert(struct lab *lab, struct oltp_table *table, uint64_t first, uint64_t end)
{
	const uint8_t record[48] = { 0 };

	for (uint64_t key = first; key < end; key++) {
		assert_int_equal(oltp_txn_begin(lab->w), OLTP_OK);
		assert_int_equal(oltp_txn_insert(lab->w, table, key, record), OLTP_OK);
		assert_int_equal(oltp_txn_commit(lab->w), OLTP_OK);
	}
}

static void lab_use(struct lab *lab, uint64_t key)
{
	const void *record;

	assert_int_equal(oltp_txn_begin(lab->w), OLTP_OK);
	assert_int_equal(oltp_txn_read(lab->w, lab->table, key, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(lab->w), OLTP_OK);
}

static void lab_delete(struct lab *lab, uint64_t key)
{
	assert_int_equal(oltp_txn_begin(lab->w), OLTP_OK);
	assert_int_equal(oltp_txn_delete(lab->w, lab->table, key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(lab->w), OLTP_OK);
}

static uint32_t lab_read(struct lab *lab)
{
	return recency_read(lab->sampler, lab->now_ns, 1, lab->samples, SAMPLES);
}

#define GROUPS	16u

struct groups {
	uint64_t per_group;
	uint32_t counts[GROUPS];
};

static void count_group(void *ctx, const struct recency_member *member)
{
	struct groups *groups = ctx;

	assert_true(member->key / groups->per_group < GROUPS);
	groups->counts[member->key / groups->per_group]++;
}

/*
 * By when they came, keys are watched equally: chi-square with 15 degrees of freedom, which is
 * above 50 once in 80000 times (and here always the same).
 */
static void assert_uniform(const struct recency_sampler *s, uint64_t n_records)
{
	struct groups groups = { .per_group = n_records / GROUPS };
	uint32_t n = each_member(s, count_group, &groups);
	double chi_square = 0, expected = (double)n / GROUPS;

	assert_in_range(n, 256, 1024);
	for (uint32_t i = 0; i < GROUPS; i++)
		chi_square += (groups.counts[i] - expected) * (groups.counts[i] - expected) /
			      expected;
	assert_true(chi_square < 50);
}

static void test_sample_is_uniform_at_any_time(void **state)
{
	(void)state;
	struct lab *lab = lab_open(64000);
	uint32_t n;

	/* Some, then more, then most are gone and others there. */
	lab_insert(lab, lab->table, 0, 16000);
	lab_turn(lab, TURNS_ALL);
	assert_uniform(lab->sampler, 16000);
	lab_insert(lab, lab->table, 16000, 64000);
	lab_turn(lab, TURNS_ALL);
	assert_uniform(lab->sampler, 64000);
	for (uint64_t key = 16000; key < 64000; key++)
		lab_delete(lab, key);
	lab_turn(lab, TURNS_ALL);
	assert_uniform(lab->sampler, 16000);
	lab_insert(lab, lab->table, 16000, 32000);
	lab_turn(lab, TURNS_ALL);
	assert_uniform(lab->sampler, 32000);
	n = lab_read(lab);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(lab->samples[i].table == lab->table && lab->samples[i].is_resident);
		assert_int_equal(lab->samples[i].bytes, 64);
		assert_int_equal(lab->samples[i].stands_for_bytes, 32000ull * 64 / n);
		assert_int_equal(lab->samples[i].reread_ns, 0);
	}
	lab_close(lab);
}

/* Every tick, every tenth, every hundredth, never since. */
static void test_known_rates(void **state)
{
	(void)state;
	static const uint32_t every[] = { 1, 10, 100 };
	struct lab *lab = lab_open(800);
	const uint64_t now = 450;
	uint32_t seen[4] = { 0 }, n;

	lab_insert(lab, lab->table, 0, 800);
	lab_turn(lab, TURNS_ALL);
	for (uint64_t tick = 1; tick <= now; tick++) {
		for (uint64_t key = 0; key < 800; key++) {
			/* More than once in a tick is once. */
			for (int i = 0; key % 4 < 3 && tick % every[key % 4] == 0 && i < 2; i++)
				lab_use(lab, key);
		}
		lab_turn(lab, 1);
	}
	n = lab_read(lab);
	assert_in_range(n, 256, 800);
	for (uint32_t i = 0; i < n; i++) {
		const struct oltp_memory_sample *s = &lab->samples[i];
		bool is_known = false;

		/* A use in tick t has the time of the look before it. */
		for (uint32_t k = 0; k < 3; k++) {
			uint64_t last = now - now % every[k];

			if (s->last_ns == (now - last + 1) * TICK &&
			    s->before_ns == s->last_ns + every[k] * TICK) {
				seen[k]++;
				is_known = true;
			}
		}
		if (s->before_ns == OLTP_NOT_KNOWN && s->last_ns >= now * TICK) {
			seen[3]++;
			is_known = true;
		}
		assert_true(is_known);
		assert_true(s->watched_ns >= now * TICK);
	}
	for (uint32_t k = 0; k < 4; k++)
		assert_in_range(seen[k], n / 8, n / 2);
	lab_close(lab);
}

static void hold_keys(struct lab *lab)
{
	void *record;

	assert_int_equal(oltp_txn_begin(lab->w), OLTP_OK);
	for (uint64_t key = 0; key < 100; key++)
		assert_int_equal(oltp_txn_update(lab->w, lab->table, key,
						 &(struct oltp_span){ 0, 8 }, 1, &record),
				 OLTP_OK);
}

/* Who holds a record uses it. */
static void test_held_is_used(void **state)
{
	(void)state;
	struct lab *lab = lab_open(100);
	uint32_t n;

	lab_insert(lab, lab->table, 0, 100);
	lab_turn(lab, TURNS_ALL);
	hold_keys(lab);
	lab_turn(lab, 3);
	n = lab_read(lab);
	assert_int_equal(n, 100);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(lab->samples[i].last_ns, 0);
	oltp_txn_abort(lab->w);
	lab_turn(lab, 5);
	n = lab_read(lab);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(lab->samples[i].last_ns, 5 * TICK);
		assert_int_equal(lab->samples[i].before_ns, 6 * TICK);
	}
	lab_close(lab);
}

static uint32_t count_younger(const struct lab *lab, uint32_t n, uint64_t ns)
{
	uint32_t n_younger = 0;

	for (uint32_t i = 0; i < n; i++)
		n_younger += lab->samples[i].watched_ns <= ns;
	return n_younger;
}

static void test_deleted_are_forgotten(void **state)
{
	(void)state;
	struct lab *lab = lab_open(100);

	assert_int_equal(lab_read(lab), 0);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 0);
	lab_insert(lab, lab->table, 0, 100);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 100);
	for (uint64_t key = 0; key < 50; key++)
		lab_delete(lab, key);
	lab_turn(lab, 1);
	assert_int_equal(lab_read(lab), 50);
	/* Others in their place are watched from then on. */
	lab_insert(lab, lab->table, 1000, 1050);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 100);
	assert_int_equal(count_younger(lab, 100, TURNS_ALL * TICK), 50);
	/* Also if nobody looked in between. */
	for (uint64_t key = 50; key < 75; key++)
		lab_delete(lab, key);
	lab_insert(lab, lab->table, 2000, 2025);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 100);
	assert_int_equal(count_younger(lab, 100, TURNS_ALL * TICK), 25);
	lab_close(lab);
}

/*
 * Records whose memory was taken: until the index is told, which nobody does here, what is in their
 * place looks like a record with key 0 that was never used.
 */
static void test_lost_are_no_records(void **state)
{
	(void)state;
	struct lab *lab = lab_open(100);
	struct block **blocks;
	void *lost;
	size_t n;

	lab_insert(lab, lab->table, 0, 100);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 100);
	assert_int_equal(storage_blocks_list(&lab->engine->storage, &blocks, &n), 0);
	lost = NULL;
	for (size_t i = 0; i < n; i++) {
		if (blocks[i]->table == lab->table) {
			assert_null(lost);
			lost = blocks[i]->addr;
		}
	}
	free(blocks);
	assert_non_null(lost);
	assert_int_equal(oltp_memory_revoked(lab->engine, lost, OLTP_MEM_BLOCK_BYTES),
			 OLTP_MEM_BLOCK_BYTES);
	/* Those that were watched are forgotten, and none is found anew. */
	lab_turn(lab, 1);
	assert_int_equal(lab_read(lab), 0);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 0);
	lab_close(lab);
	/* The engine has not. */
	assert_int_equal(munmap(lost, OLTP_MEM_BLOCK_BYTES), 0);
}

/* Some of a bucket would not be a uniform sample: of those that are too full there is none. */
static void test_whole_buckets_or_none(void **state)
{
	(void)state;
	struct lab *lab = lab_open(1);

	lab_insert(lab, lab->table, 0, 1000);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 1000);
	lab_insert(lab, lab->table, 1000, 5000);
	lab_turn(lab, TURNS_ALL);
	assert_int_equal(lab_read(lab), 0);
	lab_close(lab);
}

/* Each table by its share of the memory, but none without; room for few only. */
static void test_tables_share(void **state)
{
	(void)state;
	struct lab *lab = lab_open(60000);
	struct oltp_table *small, *empty;
	uint32_t n, n_small = 0;
	uint64_t bytes = 0;

	assert_int_equal(oltp_table_create(lab->engine, 48, 600, &small), 0);
	assert_int_equal(oltp_table_create(lab->engine, 48, 1000000, &empty), 0);
	lab_insert(lab, lab->table, 0, 60000);
	lab_insert(lab, small, 0, 600);
	lab_turn(lab, TURNS_ALL);
	n = lab_read(lab);
	for (uint32_t i = 0; i < n; i++) {
		n_small += lab->samples[i].table == small;
		bytes += lab->samples[i].stands_for_bytes;
	}
	assert_in_range(n_small, 4, 64);
	assert_in_range(n - n_small, 256, 1024);
	assert_in_range(bytes, 60600 * 64 - n, 60600 * 64);
	/* Told how many there are, whatever there is room for. */
	memset(lab->samples, 0, sizeof(lab->samples));
	assert_int_equal(recency_read(lab->sampler, lab->now_ns, 1, lab->samples, 10), n);
	assert_non_null(lab->samples[9].table);
	assert_null(lab->samples[10].table);
	/* Then the empty one grows to be the largest. */
	lab_insert(lab, empty, 0, 200000);
	lab_turn(lab, TURNS_ALL);
	n = lab_read(lab);
	n_small = 0;
	for (uint32_t i = 0; i < n; i++)
		n_small += lab->samples[i].table != empty;
	assert_in_range(n_small, 16, 256);
	assert_in_range(n - n_small, 256, 1024);
	lab_close(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample_is_uniform_at_any_time),
		cmocka_unit_test(test_known_rates),
		cmocka_unit_test(test_held_is_used),
		cmocka_unit_test(test_deleted_are_forgotten),
		cmocka_unit_test(test_lost_are_no_records),
		cmocka_unit_test(test_whole_buckets_or_none),
		cmocka_unit_test(test_tables_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
