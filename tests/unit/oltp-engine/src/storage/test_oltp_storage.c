// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks for records: limits, nodes, a provider that refuses, and what is given back first. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

static enum oltp_rc insert_until_full(struct oltp_worker *w, struct oltp_table *table,
				      uint64_t *ret_n)
{
	uint8_t record[RIG_RECORD_BYTES];
	enum oltp_rc rc;

	for (*ret_n = 0;; ++*ret_n) {
		rig_fill_record(record, *ret_n, 0);
		oltp_txn_begin(w);
		rc = oltp_txn_insert(w, table, *ret_n, record) ?: oltp_txn_commit(w);
		if (rc)
			break;
	}
	oltp_txn_abort(w);
	return rc;
}

static void test_limit_is_kept(void **state)
{
	(void)state;
	struct rig rig;
	uint64_t n;

	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB + 4096, false, 0);
	assert_int_equal(insert_until_full(rig.w, rig.table, &n), OLTP_NO_MEMORY);
	assert_int_equal(n, 2 * RIG_PER_BLOCK);
	assert_int_equal(oltp_blocks_native_held(rig.blocks), 4 * MIB);
	assert_int_equal(rig_stats(&rig).held_bytes, 4 * MIB);
	assert_int_equal(rig_stats(&rig).resident_records, n);
	assert_int_equal(rig_stats(&rig).resident_bytes, 4 * MIB);
	/* More is allowed: it goes on. */
	oltp_blocks_native_set_limit(rig.blocks, 6 * MIB, 0);
	rig_insert(&rig, n, n + RIG_PER_BLOCK);
	assert_int_equal(oltp_blocks_native_held(rig.blocks), 6 * MIB);
	assert_int_equal(rig_scan(&rig, n + RIG_PER_BLOCK, NULL), 0);
	rig_close(&rig);
}

static void test_unused_goes_first(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 64 * MIB, false, 0);
	rig_insert(&rig, 0, 3000);
	stats = rig_stats(&rig);
	assert_int_equal(stats.held_bytes, 32 * MIB);
	assert_int_equal(stats.unused_bytes, 28 * MIB);
	stats = rig_demand(&rig, 10 * MIB, 0);
	assert_int_equal(stats.held_bytes, 10 * MIB);
	assert_int_equal(stats.unused_bytes, 6 * MIB);
	assert_int_equal(stats.moved_records, 0);
	/* The same again changes nothing. */
	oltp_blocks_native_set_limit(rig.blocks, 10 * MIB, 0);
	rig_sleep_ms(50);
	assert_int_equal(rig_stats(&rig).held_bytes, 10 * MIB);
	assert_int_equal(rig_stats(&rig).demands, 1);
	assert_int_equal(rig_scan(&rig, 3000, NULL), 0);
	rig_close(&rig);
}

/* What is asked for at once is a part of what is held, lest much lies unused. */
static void test_grows_by_parts(void **state)
{
	(void)state;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 128 * MIB, false, 0);
	rig_insert(&rig, 0, 16 * RIG_PER_BLOCK);
	assert_int_equal(rig_stats(&rig).held_bytes, 32 * MIB);
	rig_insert(&rig, 16 * RIG_PER_BLOCK, 16 * RIG_PER_BLOCK + 1);
	assert_int_equal(rig_stats(&rig).held_bytes, 34 * MIB);
	rig_insert(&rig, 16 * RIG_PER_BLOCK + 1, 32 * RIG_PER_BLOCK + 1);
	assert_int_equal(rig_stats(&rig).held_bytes, 68 * MIB);
	rig_close(&rig);
}

/* Half of the slots are free, but no block is: records are moved together, without a disk. */
static void test_holes_are_closed(void **state)
{
	(void)state;
	const uint32_t n = 2 * RIG_PER_BLOCK;
	struct oltp_memory_stats stats;
	uint8_t record[RIG_RECORD_BYTES];
	struct oltp_worker *other;
	struct oltp_config config = { .node = -1, .blocks = &oltp_blocks_native_ops,
				      .txn_records_max = 2 * RIG_PER_BLOCK };
	struct rig rig = { 0 };

	assert_int_equal(oltp_blocks_native_create(64 * MIB, 0, &rig.blocks), 0);
	config.blocks_ctx = rig.blocks;
	assert_int_equal(oltp_engine_open(&config, &rig.engine), 0);
	oltp_blocks_native_attach(rig.blocks, rig.engine);
	assert_int_equal(oltp_table_create(rig.engine, RIG_RECORD_BYTES, n, &rig.table), 0);
	assert_int_equal(oltp_worker_create(rig.engine, &rig.w), 0);
	assert_int_equal(oltp_worker_create(rig.engine, &other), 0);
	/* Every second insert is taken back in the end. */
	oltp_txn_begin(other);
	for (uint64_t key = 0; key < n; key++) {
		rig_insert(&rig, key, key + 1);
		rig_fill_record(record, n + key, 0);
		assert_int_equal(oltp_txn_insert(other, rig.table, n + key, record), OLTP_OK);
	}
	oltp_txn_abort(other);
	oltp_worker_destroy(other);
	assert_int_equal(rig_stats(&rig).resident_records, n);
	assert_int_equal(rig_stats(&rig).unused_bytes, 24 * MIB);

	stats = rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(stats.held_bytes, 4 * MIB);
	assert_int_equal(stats.unanswered_bytes, 0);
	assert_true(stats.moved_records >= RIG_PER_BLOCK);
	assert_int_equal(rig_scan(&rig, n, NULL), 0);
	for (uint64_t key = 0; key < n; key++)
		assert_int_equal(rig_update(&rig, key, 0), OLTP_OK);
	/* No block more: what is asked for beyond that cannot be given. */
	stats = rig_demand(&rig, 2 * MIB, 100);
	assert_int_equal(stats.held_bytes, 4 * MIB);
	assert_int_equal(stats.unanswered_bytes, 2 * MIB);
	rig_close(&rig);
}

/* ---- a provider with two nodes that counts, refuses and gives less ------------------------- */

struct provider {
	uint64_t bytes_per_add;		/* gives at most so much at once */
	int refuse;			/* -errno for the next calls; 0: gives */
	uint32_t n_adds, n_refused;
	uint64_t out[2];		/* by node */
	uint64_t back;
};

static int provider_add(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr,
			uint64_t *ret_bytes)
{
	struct provider *p = ctx;
	void *addr;

	p->n_adds++;
	if (p->refuse || node > 1) {
		p->n_refused++;
		return p->refuse ?: -EINVAL;
	}
	if (bytes > p->bytes_per_add)
		bytes = p->bytes_per_add;
	addr = aligned_alloc(OLTP_MEM_BLOCK_BYTES, bytes);
	assert_non_null(addr);
	memset(addr, 0, bytes);
	p->out[node] += bytes;
	*ret_addr = addr;
	*ret_bytes = bytes;
	return 0;
}

static void provider_release(void *ctx, void *addr, uint64_t bytes)
{
	struct provider *p = ctx;

	/* Each block was an allocation of its own. */
	assert_int_equal(bytes, OLTP_MEM_BLOCK_BYTES);
	p->back += bytes;
	free(addr);
}

static const struct oltp_block_ops provider_ops = { provider_add, provider_release };

static void test_refusal_is_not_asked_again(void **state)
{
	(void)state;
	struct provider p = { .bytes_per_add = OLTP_MEM_BLOCK_BYTES, .refuse = -ENOMEM };
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	uint64_t n;

	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .node = 0,
						.blocks = &provider_ops, .blocks_ctx = &p },
					  &engine), 0);
	assert_int_equal(oltp_table_create(engine, RIG_RECORD_BYTES, 100, &table), 0);
	assert_int_equal(oltp_worker_create(engine, &w), 0);
	/* Nothing was said yet: the provider is not even asked. */
	assert_int_equal(insert_until_full(w, table, &n), OLTP_NO_MEMORY);
	assert_int_equal(p.n_adds, 0);
	oltp_memory_limit(engine, 0, 8 * MIB, 0);
	oltp_memory_limit(engine, OLTP_NODES_MAX, 8 * MIB, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(insert_until_full(w, table, &n), OLTP_NO_MEMORY);
	assert_int_equal(n, 0);
	assert_int_equal(p.n_refused, 1);
	/* News. It gives less than what is asked for, which is fine. */
	p.refuse = 0;
	oltp_memory_limit(engine, 0, 4 * MIB, 0);
	assert_int_equal(insert_until_full(w, table, &n), OLTP_NO_MEMORY);
	assert_int_equal(n, 2 * RIG_PER_BLOCK);
	assert_int_equal(p.n_adds, 3);
	assert_int_equal(p.out[0], 4 * MIB);
	oltp_worker_destroy(w);
	oltp_engine_close(engine);
	assert_int_equal(p.back, p.out[0]);
}

static uint64_t used_on(const struct oltp_table *table, uint32_t node)
{
	uint64_t n = 0;

	for (uint32_t part = 0; part < SLAB_PARTS; part++)
		n += counter_read(&table->slabs[node][part].n_used);
	return n;
}

static void test_records_are_placed_on_the_node_asked_for(void **state)
{
	(void)state;
	struct provider p = { .bytes_per_add = OLTP_MEM_BLOCK_BYTES };
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	uint64_t n;

	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .node = 1,
						.blocks = &provider_ops, .blocks_ctx = &p },
					  &engine), 0);
	assert_int_equal(oltp_table_create(engine, RIG_RECORD_BYTES, 100, &table), 0);
	assert_int_equal(oltp_worker_create(engine, &w), 0);
	oltp_memory_limit(engine, 0, 2 * MIB, 0);
	oltp_memory_limit(engine, 1, 2 * MIB, 0);
	assert_int_equal(insert_until_full(w, table, &n), OLTP_NO_MEMORY);
	/* Its own node's first, then what there is elsewhere. */
	assert_int_equal(n, 2 * RIG_PER_BLOCK);
	assert_int_equal(used_on(table, 0), RIG_PER_BLOCK);
	assert_int_equal(used_on(table, 1), RIG_PER_BLOCK);
	assert_int_equal(p.out[0], 2 * MIB);
	assert_int_equal(p.out[1], 2 * MIB);
	for (uint64_t key = 0; key < n; key++) {
		struct index_ref ref;
		struct record *record = index_find(&table->index, key, index_hash(key), &ref);

		assert_int_equal(storage_block_of(&engine->storage, record)->node,
				 key < RIG_PER_BLOCK ? 1 : 0);
	}
	oltp_worker_destroy(w);
	oltp_engine_close(engine);
	assert_int_equal(p.back, p.out[0] + p.out[1]);
}

static void test_provider_must_be_whole(void **state)
{
	(void)state;
	static const struct oltp_block_ops no_add = { NULL, provider_release };
	static const struct oltp_block_ops no_release = { provider_add, NULL };
	struct oltp_engine *engine;

	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .blocks = &no_add }, &engine),
			 -EINVAL);
	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .blocks = &no_release }, &engine),
			 -EINVAL);
	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .node = OLTP_NODES_MAX }, &engine),
			 -EINVAL);
}

/* A block goes from one table to another, with records of another size. */
static void test_block_changes_tables(void **state)
{
	(void)state;
	uint8_t small[40] = { 7 };
	struct oltp_table *second;
	const void *found;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	rig_insert(&rig, 0, 2 * RIG_PER_BLOCK);
	assert_int_equal(oltp_table_create(rig.engine, sizeof(small), 50000, &second), 0);
	rig_demand(&rig, 2 * MIB, RIG_DEADLINE_MS);
	rig_demand(&rig, 4 * MIB, 0);
	for (uint64_t key = 0; key < 10000; key++) {
		enum oltp_rc rc;

		do {
			oltp_txn_begin(rig.w);
			rc = oltp_txn_insert(rig.w, second, key, small) ?: oltp_txn_commit(rig.w);
			oltp_txn_abort(rig.w);
			if (rc == OLTP_COLD)
				rc = oltp_cold_wait(rig.w) ?: OLTP_CONFLICT;
		} while (rc == OLTP_CONFLICT);
		assert_int_equal(rc, OLTP_OK);
	}
	oltp_txn_begin(rig.w);
	assert_int_equal(oltp_txn_read(rig.w, second, 9999, &found), OLTP_OK);
	assert_memory_equal(found, small, sizeof(small));
	oltp_txn_abort(rig.w);
	assert_int_equal(rig_scan(&rig, 2 * RIG_PER_BLOCK, NULL), 0);
	rig_close(&rig);
}

/* A worker gives up what the manager has tried to do in vain, not what it had no time for. */
static void test_waiting_has_an_end(void **state)
{
	const uint64_t second = 1000000000ull, since = 77 * second;
	struct room room;

	(void)state;
	room_init(&room);
	/* Nobody makes room. */
	assert_false(room_is_hopeless(&room, 0, since, since + 10 * second));
	assert_true(room_is_hopeless(&room, 0, since, since + 11 * second));
	room_manage(&room);
	room_tried(&room);
	assert_false(room_is_hopeless(&room, 1, since, since + 11 * second));
	room_tried(&room);
	room_tried(&room);
	assert_false(room_is_hopeless(&room, 1, since, since + 11 * second));
	assert_false(room_is_hopeless(&room, 1, since, since + 60 * second));
	assert_true(room_is_hopeless(&room, 1, since, since + 61 * second));
	room_tried(&room);
	assert_false(room_is_hopeless(&room, 1, since, since + 10 * second));
	assert_true(room_is_hopeless(&room, 1, since, since + 11 * second));
	room_finish(&room);
}

/* The manager counts its tries. */
static void test_tries_are_counted(void **state)
{
	struct rig rig;
	uint64_t n;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	n = atomic_load(&rig.engine->room.n_tries);
	for (int i = 0; i < 20000 && atomic_load(&rig.engine->room.n_tries) < n + 2; i++) {
		room_want(&rig.engine->room, rig.table);
		usleep(1000);
	}
	assert_true(atomic_load(&rig.engine->room.n_tries) >= n + 2);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_is_kept),
		cmocka_unit_test(test_unused_goes_first),
		cmocka_unit_test(test_grows_by_parts),
		cmocka_unit_test(test_holes_are_closed),
		cmocka_unit_test(test_refusal_is_not_asked_again),
		cmocka_unit_test(test_records_are_placed_on_the_node_asked_for),
		cmocka_unit_test(test_provider_must_be_whole),
		cmocka_unit_test(test_block_changes_tables),
		cmocka_unit_test(test_waiting_has_an_end),
		cmocka_unit_test(test_tries_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
