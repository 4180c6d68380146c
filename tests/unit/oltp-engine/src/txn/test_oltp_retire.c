// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A block that a transaction empties while the memory is being given back. The transaction has its
 * slot freed and has yet to store the lock word: the block must not be gone by then. Where the two
 * meet is made certain by stopping them in functions that they call there.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"

#define RECORD_BYTES	1008u
#define KEY		7u

enum stage {
	STAGE_NONE,
	STAGE_CLOSED,	/* the block is closed, and no more is moved out of it */
	STAGE_ADVANCED,	/* a transaction that begins now began after the epoch did */
	STAGE_FREED,	/* its slot is free; its lock word is not stored yet */
	STAGE_SHRUNK,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum stage stage;
static _Atomic bool quit;
static _Thread_local bool is_deleter;

static void stage_enter(enum stage next)
{
	pthread_mutex_lock(&lock);
	stage = next;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void stage_await(enum stage awaited)
{
	pthread_mutex_lock(&lock);
	while (stage < awaited)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static bool stage_is(enum stage expected)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = stage == expected;
	pthread_mutex_unlock(&lock);
	return is;
}

void __real_evict_flush(struct evict *e);
void __wrap_evict_flush(struct evict *e);
uint64_t __real_epoch_advance(struct epoch *epoch);
uint64_t __wrap_epoch_advance(struct epoch *epoch);
void __real_storage_slot_free(struct storage *storage, struct record *record);
void __wrap_storage_slot_free(struct storage *storage, struct record *record);

/* After the first pass over the block's records time is over. */
void __wrap_evict_flush(struct evict *e)
{
	__real_evict_flush(e);
	if (stage_is(STAGE_NONE)) {
		atomic_store(&quit, true);
		stage_enter(STAGE_CLOSED);
	}
}

uint64_t __wrap_epoch_advance(struct epoch *epoch)
{
	uint64_t now = __real_epoch_advance(epoch);

	if (stage_is(STAGE_CLOSED)) {
		stage_enter(STAGE_ADVANCED);
		stage_await(STAGE_FREED);
	}
	return now;
}

void __wrap_storage_slot_free(struct storage *storage, struct record *record)
{
	__real_storage_slot_free(storage, record);
	if (is_deleter) {
		stage_enter(STAGE_FREED);
		stage_await(STAGE_SHRUNK);
	}
}

struct deleter {
	struct oltp_worker *worker;
	struct oltp_table *table;
	enum oltp_rc rc;
};

static void *deleter_main(void *arg)
{
	struct deleter *d = arg;

	is_deleter = true;
	stage_await(STAGE_ADVANCED);
	oltp_txn_begin(d->worker);
	d->rc = oltp_txn_delete(d->worker, d->table, KEY) ?: oltp_txn_commit(d->worker);
	return NULL;
}

static void test_block_emptied_meanwhile_stays(void **state)
{
	uint8_t data[RECORD_BYTES] = { 0 };
	struct deleter deleter = { .rc = OLTP_INVALID };
	struct oltp_engine *engine;
	struct storage *storage;
	struct evict evict;
	struct shrink shrink;
	pthread_t thread;

	(void)state;
	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	storage = &engine->storage;
	assert_int_equal(oltp_table_create(engine, RECORD_BYTES, 16, &deleter.table), 0);
	assert_int_equal(oltp_worker_create(engine, &deleter.worker), 0);
	assert_int_equal(oltp_txn_begin(deleter.worker), OLTP_OK);
	assert_int_equal(oltp_txn_insert(deleter.worker, deleter.table, KEY, data), OLTP_OK);
	assert_int_equal(oltp_txn_commit(deleter.worker), OLTP_OK);
	assert_int_equal(evict_init(&evict, engine), 0);
	shrink = (struct shrink){ .engine = engine, .evict = &evict, .quit = &quit };
	assert_int_equal(pthread_create(&thread, NULL, deleter_main, &deleter), 0);

	assert_int_equal(shrink_node(&shrink, 0, OLTP_MEM_BLOCK_BYTES, UINT64_MAX), 0);
	assert_true(stage_is(STAGE_FREED));
	assert_int_equal(storage->n_blocks, 1);
	assert_ptr_equal(storage->blocks[0]->table, deleter.table);
	assert_int_equal(storage->blocks[0]->state, BLOCK_OPEN);
	stage_enter(STAGE_SHRUNK);
	pthread_join(thread, NULL);
	assert_int_equal(deleter.rc, OLTP_OK);

	/* Nobody is in it any more. */
	atomic_store(&quit, false);
	assert_int_equal(shrink_node(&shrink, 0, OLTP_MEM_BLOCK_BYTES, UINT64_MAX),
			 OLTP_MEM_BLOCK_BYTES);
	assert_int_equal(storage->n_blocks, 0);
	evict_finish(&evict);
	oltp_worker_destroy(deleter.worker);
	oltp_engine_close(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block_emptied_meanwhile_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
