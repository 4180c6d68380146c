// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables that are added while others look at all that there are. The two threads tell each other
 * how far they are by relaxed stores only: what makes a table whole for who sees it must be what
 * the engine does. Under the thread sanitizer a missing barrier is a race.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "oltp-engine/src/txn/revoked.h"

#define RECORD_BYTES	1008u

struct adder {
	struct oltp_engine *engine;
	struct oltp_table *table;
	int rc;
	_Atomic bool is_done;
};

static void *adder_main(void *arg)
{
	struct adder *adder = arg;

	adder->rc = oltp_table_create(adder->engine, RECORD_BYTES, 16, &adder->table);
	atomic_store_explicit(&adder->is_done, true, memory_order_relaxed);
	return NULL;
}

static struct oltp_engine *open_engine(void)
{
	struct oltp_engine *engine;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	return engine;
}

static void with_added(void (*look)(struct oltp_engine *engine))
{
	struct adder adder = { .engine = open_engine() };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, adder_main, &adder), 0);
	while (!atomic_load_explicit(&adder.is_done, memory_order_relaxed))
		sched_yield();
	look(adder.engine);
	pthread_join(thread, NULL);
	assert_int_equal(adder.rc, 0);
	oltp_engine_close(adder.engine);
}

/* As they are declared; else the lock and the counters of a slab lie on two cache lines. */
static void test_slabs_begin_with_a_cache_line(void **state)
{
	struct oltp_engine *engine = open_engine();

	(void)state;
	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++) {
		struct oltp_table *table;
		/* The compiler may take for granted what is tested here. */
		volatile uintptr_t at;

		assert_int_equal(oltp_table_create(engine, RECORD_BYTES, 16, &table), 0);
		at = (uintptr_t)table->slabs;
		assert_int_equal(at % CACHE_PAD_BYTES, 0);
	}
	oltp_engine_close(engine);
}

static void look_for_lost(struct oltp_engine *engine)
{
	atomic_fetch_add(&engine->revoked.times, 1);
	revoked_sweep(engine);
	assert_int_equal(engine->revoked.swept, 1);
	assert_int_equal(engine->revoked.records, 0);
}

static void test_revoked_sweep(void **state)
{
	(void)state;
	with_added(look_for_lost);
}

static void look_for_room(struct oltp_engine *engine)
{
	_Atomic bool quit = false;
	struct evict evict;
	struct shrink shrink = { .engine = engine, .evict = &evict, .quit = &quit };

	assert_int_equal(evict_init(&evict, engine), 0);
	assert_int_equal(shrink_node(&shrink, 0, OLTP_MEM_BLOCK_BYTES, UINT64_MAX), 0);
	evict_finish(&evict);
}

static void test_shrink(void **state)
{
	(void)state;
	with_added(look_for_room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slabs_begin_with_a_cache_line),
		cmocka_unit_test(test_revoked_sweep),
		cmocka_unit_test(test_shrink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
