// SPDX-License-Identifier: GPL-2.0-or-later
/* The hash index against what was put in, with full buckets, holes and several threads. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/src/txn/engine.h"

#define RECORDS	20000u

struct fixture {
	struct mem mem;
	struct index index;
	struct record *records;
	struct index_ref *refs;
};

/* capacity 1: two buckets, so everything is in overflow chains. */
static struct fixture *fixture_create(uint64_t capacity)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	mem_init(&f->mem, NULL, NULL, -1);
	assert_int_equal(index_init(&f->index, &f->mem, capacity), 0);
	f->records = aligned_alloc(64, RECORDS * sizeof(*f->records));
	f->refs = calloc(RECORDS, sizeof(*f->refs));
	for (uint64_t i = 0; i < RECORDS; i++)
		atomic_init(&f->records[i].key, i * 7919);
	return f;
}

static void fixture_destroy(struct fixture *f)
{
	index_finish(&f->index);
	mem_finish(&f->mem);
	free(f->records);
	free(f->refs);
	free(f);
}

static int insert(struct fixture *f, uint64_t i, struct record **ret_existing)
{
	uint64_t key = f->records[i].key, version;

	return index_insert(&f->index, &f->records[i], key, index_hash(key), &f->refs[i],
			    ret_existing, &version);
}

static struct record *find(struct fixture *f, uint64_t key, struct index_ref *ret_ref)
{
	return index_find(&f->index, key, index_hash(key), ret_ref);
}

/* The short way finds what index_find does, or says that it does not know. True: it knew. */
static bool is_found_at_once(struct fixture *f, uint64_t key, const struct record *expected)
{
	_Atomic uint64_t *slot = index_guess_slot(&f->index, index_hash(key));
	struct index_ref ref;
	const struct record *record = index_find_at(slot, key, &ref);

	if (!record)
		return false;
	assert_ptr_equal(record, expected);
	assert_true(index_ref_is_live(&ref));
	return true;
}

static void insert_find_remove(uint64_t capacity, uint64_t n)
{
	struct fixture *f = fixture_create(capacity);
	struct record *existing = NULL;
	struct index_ref ref;
	uint64_t n_at_once = 0;

	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(insert(f, i, &existing), 0);
	for (uint64_t i = 0; i < n; i++) {
		assert_ptr_equal(find(f, i * 7919, &ref), &f->records[i]);
		assert_true(index_ref_is_live(&ref));
		n_at_once += is_found_at_once(f, i * 7919, &f->records[i]);
		assert_false(is_found_at_once(f, i * 7919 + 1, NULL));
		assert_int_equal(insert(f, i, &existing), -EEXIST);
		assert_ptr_equal(existing, &f->records[i]);
		assert_null(find(f, i * 7919 + 1, &ref));
	}
	/* All but those in overflow buckets, and behind another key with the same tag. */
	assert_true(n_at_once >= (capacity < n ? INDEX_SLOTS - 1 : n * 9 / 10));
	/* Holes: every third goes, the others stay, and the holes are filled again. */
	for (uint64_t i = 0; i < n; i += 3) {
		assert_ptr_equal(find(f, i * 7919, &ref), &f->records[i]);
		index_remove(&f->index, index_hash(i * 7919), &ref);
		assert_false(index_ref_is_live(&ref));
		assert_false(is_found_at_once(f, i * 7919, NULL));
	}
	for (uint64_t i = 0; i < n; i++)
		assert_ptr_equal(find(f, i * 7919, &ref), i % 3 ? &f->records[i] : NULL);
	for (uint64_t i = 0; i < n; i += 3)
		assert_int_equal(insert(f, i, &existing), 0);
	for (uint64_t i = 0; i < n; i++)
		assert_ptr_equal(find(f, i * 7919, &ref), &f->records[i]);
	fixture_destroy(f);
}

static void test_sized_right(void **state)
{
	(void)state;
	insert_find_remove(RECORDS, RECORDS);
}

static void test_far_too_small(void **state)
{
	(void)state;
	insert_find_remove(1, 500);
}

static int count_record(void *ctx, const struct index_ref *ref)
{
	const struct record *record = (void *)(uintptr_t)(ref->entry & INDEX_ADDR_MASK);
	uint8_t *seen = ctx;
	uint64_t i = atomic_load(&record->key) / 7919;

	seen[i]++;
	return 0;
}

static int stop_at_once(void *ctx, const struct index_ref *ref)
{
	(void)ctx;
	(void)ref;
	return -EINTR;
}

static int walk_all(const struct index *index, int (*fn)(void *, const struct index_ref *),
		    void *ctx)
{
	int rc = 0;

	for (uint64_t b = 0; !rc && b < index->n_buckets; b++)
		rc = index_walk_bucket(index, b, fn, ctx);
	return rc;
}

static void test_walk_sees_each_once(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(RECORDS / 50);
	uint8_t *seen = calloc(RECORDS, 1);
	struct record *existing;

	for (uint64_t i = 0; i < RECORDS / 2; i++)
		assert_int_equal(insert(f, i, &existing), 0);
	assert_int_equal(walk_all(&f->index, count_record, seen), 0);
	for (uint64_t i = 0; i < RECORDS; i++)
		assert_int_equal(seen[i], i < RECORDS / 2);
	assert_int_equal(walk_all(&f->index, stop_at_once, NULL), -EINTR);
	free(seen);
	fixture_destroy(f);
}

static void test_hash_has_no_collisions_and_spreads(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(4 * 1024);
	uint32_t counts[1025] = { 0 };
	uint32_t most = 0;

	for (uint64_t key = 0; key < 4096; key++) {
		struct index_bucket *bucket = index_bucket_of(&f->index, index_hash(key));
		uint64_t at = (uint64_t)(bucket - f->index.buckets);

		assert_true(at < f->index.n_buckets);
		counts[at]++;
	}
	for (uint64_t b = 0; b < f->index.n_buckets; b++)
		most = counts[b] > most ? counts[b] : most;
	/* Poisson with mean 4: 17 in any of 1025 buckets is rarer than one in a thousand. */
	assert_true(most < 17);
	fixture_destroy(f);
}

/* All threads insert all records; each key must be won by exactly one. */
#define THREADS	4

struct racer {
	struct fixture *f;
	struct record *mine;
	uint64_t won;
};

static void *racer_main(void *arg)
{
	struct racer *r = arg;

	for (uint64_t i = 0; i < RECORDS / 4; i++) {
		struct record *record = &r->mine[i];
		struct record *existing;
		struct index_ref ref;
		uint64_t key = i, version;
		int rc;

		atomic_init(&record->key, key);
		rc = index_insert(&r->f->index, record, key, index_hash(key), &ref, &existing,
				  &version);
		if (!rc)
			r->won++;
		else if (rc != -EEXIST || existing == record)
			abort();
		if (!index_find(&r->f->index, key, index_hash(key), &ref))
			abort();
	}
	return NULL;
}

static void test_one_of_several_inserters_wins(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(RECORDS / 40);
	struct racer racers[THREADS];
	pthread_t threads[THREADS];
	uint64_t won = 0;

	for (int i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){ f, &f->records[(uint32_t)i * (RECORDS / 4)], 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, racer_main, &racers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		won += racers[i].won;
	}
	assert_int_equal(won, RECORDS / 4);
	fixture_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sized_right),
		cmocka_unit_test(test_far_too_small),
		cmocka_unit_test(test_walk_sees_each_once),
		cmocka_unit_test(test_hash_has_no_collisions_and_spreads),
		cmocka_unit_test(test_one_of_several_inserters_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
