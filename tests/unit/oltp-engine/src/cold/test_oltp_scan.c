// SPDX-License-Identifier: GPL-2.0-or-later
/* A scan of a table that has to wait: nobody who waits for an epoch waits for it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define COLD_RECORDS	4000u

/* A scan on a thread of its own. */
struct walker {
	struct oltp_table *table;
	pthread_t thread;
	_Atomic uint32_t n_shown;
	uint64_t n_wrong;	/* records that are not as rig_insert made them */
	uint64_t keys;		/* sum */
	int rc;
};

static int see(void *ctx, uint64_t key, const void *record)
{
	struct walker *walker = ctx;

	walker->n_wrong += !rig_record_is(record, key, 0);
	walker->keys += key;
	atomic_fetch_add(&walker->n_shown, 1);
	return 0;
}

static void *walker_main(void *arg)
{
	struct walker *walker = arg;

	walker->rc = oltp_table_scan(walker->table, see, walker);
	return NULL;
}

static void walker_start(struct walker *walker, struct oltp_table *table)
{
	*walker = (struct walker){ .table = table };
	assert_int_equal(pthread_create(&walker->thread, NULL, walker_main, walker), 0);
}

static void walker_end(struct walker *walker, uint32_t n, uint64_t keys)
{
	pthread_join(walker->thread, NULL);
	assert_int_equal(walker->rc, 0);
	assert_int_equal(walker->n_shown, n);
	assert_int_equal(walker->n_wrong, 0);
	assert_int_equal(walker->keys, keys);
}

static void wait_until(const _Atomic uint32_t *number, uint32_t value)
{
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && atomic_load(number) != value; ms++)
		rig_sleep_ms(1);
	assert_int_equal(atomic_load(number), value);
}

/* Everybody who is in an epoch now leaves it. */
static bool an_epoch_passes(struct rig *rig)
{
	struct epoch *epoch = &rig->engine->epoch;

	return epoch_wait(epoch, epoch_advance(epoch),
			  clock_now_ns() + RIG_DEADLINE_MS * 1000000ull);
}

static uint64_t bucket_of(const struct rig *rig, uint64_t key)
{
	const struct index *index = &rig->table->index;

	return (uint64_t)(index_bucket_of(index, index_hash(key)) - index->buckets);
}

/* The next key in the same bucket of the index: a scan shows its record just after this one. */
static uint64_t neighbour_of(const struct rig *rig, uint64_t key)
{
	uint64_t other = key + 1;

	while (bucket_of(rig, other) != bucket_of(rig, key))
		other++;
	return other;
}

static struct record *find(const struct rig *rig, uint64_t key, struct index_ref *ret_ref)
{
	struct record *record = index_find(&rig->table->index, key, index_hash(key), ret_ref);

	assert_non_null(record);
	return record;
}

/* The record, which is locked, goes to another slot, as evict_move does it. Returns the copy. */
static struct record *move(struct rig *rig, struct record *record, const struct index_ref *ref)
{
	struct record *copy = storage_slot_alloc_present(rig->table, 0, LOCK_TS_MANAGER);

	assert_non_null(copy);
	atomic_store(&copy->key, atomic_load(&record->key));
	memcpy(copy->data, record->data, RIG_RECORD_BYTES);
	index_ref_move(ref, (uint64_t)(uintptr_t)copy);
	return copy;
}

/*
 * The scan waits for a record that somebody holds. Meanwhile the record moves, and its slot becomes
 * free as soon as an epoch has passed: the scan shows the record where it is now.
 */
static void test_wait_for_a_lock(void **state)
{
	struct record *record, *copy;
	struct walker walker;
	struct index_ref ref;
	struct rig rig;
	uint64_t seen, other;

	(void)state;
	rig_open(&rig, OLTP_CC_WOUND_WAIT, 8 * MIB, false, 0);
	other = neighbour_of(&rig, 1);
	rig_insert(&rig, 1, 2);
	rig_insert(&rig, other, other + 1);
	record = find(&rig, other, &ref);
	assert_true(lock_try_exclusive(&record->lock, LOCK_TS_MANAGER, &seen));
	walker_start(&walker, rig.table);
	wait_until(&walker.n_shown, 1);
	assert_true(an_epoch_passes(&rig));
	copy = move(&rig, record, &ref);
	assert_true(an_epoch_passes(&rig));
	memset(record->data, 0xff, RIG_RECORD_BYTES);
	storage_slot_free(&rig.engine->storage, record);
	/* The old slot stays locked, as one that has a new record which is not in the index yet. */
	lock_release_exclusive(&copy->lock, 0);
	walker_end(&walker, 2, 1 + other);
	lock_release_exclusive(&record->lock, 0);
	rig_close(&rig);
}

/* What the scan waits for is deleted: it goes on, and shows what comes after. */
static void test_wait_for_a_record_that_goes(void **state)
{
	uint64_t others[2], seen;
	struct record *record;
	struct walker walker;
	struct index_ref ref;
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, false, 0);
	others[0] = neighbour_of(&rig, 1);
	others[1] = neighbour_of(&rig, others[0]);
	rig_insert(&rig, 1, 2);
	rig_insert(&rig, others[0], others[0] + 1);
	rig_insert(&rig, others[1], others[1] + 1);
	record = find(&rig, others[0], &ref);
	assert_true(lock_try_exclusive(&record->lock, LOCK_TS_MANAGER, &seen));
	walker_start(&walker, rig.table);
	wait_until(&walker.n_shown, 1);
	index_remove(&rig.table->index, index_hash(others[0]), &ref);
	/* Still locked: only in the index can the scan see that the record has gone. */
	walker_end(&walker, 2, 1 + others[1]);
	storage_slot_free(&rig.engine->storage, record);
	lock_release_exclusive(&record->lock, 0);
	rig_close(&rig);
}

/* A disk on which the first read of a scan takes until it is let go. */
struct slow_disk {
	_Atomic uint32_t is_waiting, may_go;
};

static int32_t hold_up(void *ctx, const struct io_request *request, int32_t result)
{
	struct slow_disk *disk = ctx;

	if (request->class == IO_SCAN && !atomic_load(&disk->may_go)) {
		atomic_store(&disk->is_waiting, 1);
		wait_until(&disk->may_go, 1);
	}
	return result;
}

/* More records are on disk than a scan reads at once. */
static void test_wait_for_the_disk(void **state)
{
	struct slow_disk disk = { 0, 0 };
	struct walker walker;
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_hook(&rig, hold_up, &disk);
	rig_insert(&rig, 0, COLD_RECORDS);
	assert_int_equal(rig_demand(&rig, 0, RIG_DEADLINE_MS).held_bytes, 0);
	walker_start(&walker, rig.table);
	wait_until(&disk.is_waiting, 1);
	assert_true(an_epoch_passes(&rig));
	atomic_store(&disk.may_go, 1);
	walker_end(&walker, COLD_RECORDS, COLD_RECORDS * (COLD_RECORDS - 1ull) / 2);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_for_a_lock),
		cmocka_unit_test(test_wait_for_a_record_that_goes),
		cmocka_unit_test(test_wait_for_the_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
