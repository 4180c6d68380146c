// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree of ordered indexes against a model, alone and with several threads, and its memory. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/index/tree.h"
#include "tests/lib/chance.h"

#define KEYS	3000u

struct fixture {
	struct oltp_engine *engine;
	struct tree tree;
	bool there[KEYS];
};

static uint64_t next_random(uint64_t *state)
{
	return chance_step(state) >> 33;
}

/* In the order of i; the first and the last one are those of the key space. */
static struct tree_key key_at(uint32_t i)
{
	if (!i)
		return TREE_KEY_MIN;
	if (i == KEYS - 1)
		return TREE_KEY_MAX;
	return (struct tree_key){ i / 3 * 1000003ull, i % 3 * 77 };
}

static uint32_t key_number(struct tree_key key)
{
	if (tree_key_equal(key, TREE_KEY_MAX))
		return KEYS - 1;
	return (uint32_t)(key.sort / 1000003 * 3 + key.primary / 77);
}

static struct fixture *fixture_create(const struct oltp_config *config)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(oltp_engine_open(config, &f->engine), 0);
	assert_int_equal(tree_init(&f->tree, &f->engine->leaves, &f->engine->inners), 0);
	return f;
}

static void fixture_destroy(struct fixture *f)
{
	oltp_engine_close(f->engine);
	free(f);
}

static void add(struct fixture *f, uint32_t i)
{
	struct tree_change change;

	assert_int_equal(tree_insert(&f->tree, key_at(i), &change), f->there[i] ? -EEXIST : 0);
	f->there[i] = true;
}

static void take(struct fixture *f, uint32_t i)
{
	tree_remove(&f->tree, key_at(i), false);
	f->there[i] = false;
}

/* The keys from first to last, and what leaves say they are responsible for. */
static uint32_t check_upwards(const struct fixture *f, uint32_t first, uint32_t last)
{
	struct tree_key at = key_at(first), end = key_at(last);
	uint32_t i = first, n_leaves = 0;
	struct tree_leaf leaf;

	for (;;) {
		tree_read(&f->tree, at, end, &leaf);
		n_leaves++;
		assert_false(tree_key_less(at, leaf.low));
		assert_false(tree_key_less(leaf.high, at));
		for (uint32_t k = 0; k < leaf.n; k++, i++) {
			while (!f->there[i])
				i++;
			assert_int_equal(key_number(leaf.keys[k]), i);
			assert_true(i <= last);
			assert_false(tree_key_less(leaf.keys[k], leaf.low));
			assert_false(tree_key_less(leaf.high, leaf.keys[k]));
		}
		if (!tree_key_less(leaf.high, end))
			break;
		at = tree_key_next(leaf.high);
	}
	for (; i <= last; i++)
		assert_false(f->there[i]);
	return n_leaves;
}

static uint32_t check_downwards(const struct fixture *f, uint32_t first, uint32_t last)
{
	struct tree_key at = key_at(last), end = key_at(first);
	uint32_t i = last + 1, n_leaves = 0;
	struct tree_leaf leaf;

	for (;;) {
		tree_read(&f->tree, at, end, &leaf);
		n_leaves++;
		for (uint32_t k = 0; k < leaf.n; k++) {
			do
				assert_true(i-- > first);
			while (!f->there[i]);
			assert_int_equal(key_number(leaf.keys[k]), i);
		}
		if (!tree_key_less(end, leaf.low))
			break;
		at = tree_key_prev(leaf.low);
	}
	while (i-- > first)
		assert_false(f->there[i]);
	return n_leaves;
}

/* Every leaf once; none is empty unless it is the only one. */
static void check_all(const struct fixture *f)
{
	uint32_t n_leaves = check_upwards(f, 0, KEYS - 1), n = 0;

	assert_int_equal(check_downwards(f, 0, KEYS - 1), n_leaves);
	assert_int_equal(f->engine->leaves.n_used, n_leaves);
	for (uint32_t i = 0; i < KEYS; i++)
		n += f->there[i];
	assert_true(n_leaves <= (n ?: 1));
}

enum order {
	UPWARDS,
	DOWNWARDS,
	MIXED,
	ORDERS,
};

/* A permutation of 0 to KEYS - 1: 7919 has no divisor in common with KEYS. */
static uint32_t nth(enum order order, uint32_t i)
{
	return order == UPWARDS ? i : order == DOWNWARDS ? KEYS - 1 - i : i * 7919 % KEYS;
}

static void test_all_sizes_up_and_down(void **state)
{
	(void)state;

	for (enum order in = 0; in < ORDERS; in++) {
		for (enum order out = 0; out < ORDERS; out++) {
			struct fixture *f = fixture_create(NULL);

			for (uint32_t i = 0; i < KEYS; i++) {
				add(f, nth(in, i));
				/* Around every size at which one of few leaves splits. */
				if (i < 100 || i % 997 == 0)
					check_all(f);
			}
			check_all(f);
			for (uint32_t i = 0; i < KEYS; i++) {
				take(f, nth(out, i));
				if (i > KEYS - 100 || i % 997 == 0)
					check_all(f);
			}
			check_all(f);
			assert_int_equal(f->engine->leaves.n_used, 1);
			/* What is left of the height: one node for each level. */
			assert_true(f->engine->inners.n_used <= 4);
			fixture_destroy(f);
		}
	}
}

static void test_order_decides_how_full_leaves_are(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(NULL);

	for (uint32_t i = 0; i < KEYS; i++)
		add(f, i);
	assert_int_equal(f->engine->leaves.n_used, KEYS / TREE_LEAF_KEYS);
	fixture_destroy(f);
}

static void test_random_operations(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(NULL);
	uint64_t random = 1;

	for (uint32_t i = 0; i < 100000; i++) {
		/* Grows and shrinks, and works where it has just been as well as elsewhere. */
		bool grows = i / 10000 % 2 == 0;
		uint32_t width = i / 1000 % 3 ? KEYS : 100;
		uint32_t k = (uint32_t)(next_random(&random) % width) * (KEYS / width);

		if (next_random(&random) % 4 ? grows : !grows)
			add(f, k);
		else
			take(f, k);
		if (i % 200 == 0) {
			uint32_t first = (uint32_t)(next_random(&random) % KEYS);
			uint32_t last = first + (uint32_t)(next_random(&random) % (KEYS - first));

			check_upwards(f, first, last);
			check_downwards(f, first, last);
		}
		if (i % 5000 == 0)
			check_all(f);
	}
	check_all(f);
	fixture_destroy(f);
}

static void test_change_tells_what_was_split(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(NULL);
	uint64_t random = 7;
	uint32_t n_splits = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t k = (uint32_t)(next_random(&random) % KEYS);
		struct tree_leaf before, after, right;
		struct tree_change change;

		if (f->there[k])
			continue;
		tree_read(&f->tree, key_at(k), key_at(k), &before);
		assert_int_equal(before.n, 0);
		assert_int_equal(tree_insert(&f->tree, key_at(k), &change), 0);
		f->there[k] = true;
		assert_ptr_equal(change.word, before.word);
		assert_int_equal(change.before, before.version & TREE_VERSION_MASK);
		assert_true(change.after != change.before);
		assert_int_equal(change.after, atomic_load(before.word) & TREE_VERSION_MASK);
		tree_read(&f->tree, before.low, before.low, &after);
		assert_ptr_equal(after.word, before.word);
		tree_read(&f->tree, before.high, before.high, &right);
		if (change.new_word) {
			n_splits++;
			assert_ptr_equal(right.word, change.new_word);
			assert_int_equal(right.version & TREE_VERSION_MASK, change.new_version);
			assert_true(tree_key_equal(right.low, tree_key_next(after.high)));
		} else {
			assert_ptr_equal(right.word, before.word);
		}
		/* Taking out changes nothing that node sets have. */
		tree_remove(&f->tree, key_at(k), true);
		assert_int_equal(change.after, atomic_load(before.word) & TREE_VERSION_MASK);
		assert_int_equal(tree_insert(&f->tree, key_at(k), &change), 0);
		assert_true(change.after != change.before);
	}
	assert_true(n_splits > KEYS / 100);
	fixture_destroy(f);
}

static void test_kept_leaf_stays_and_is_used(void **state)
{
	(void)state;
	struct fixture *f = fixture_create(NULL);
	struct tree_leaf leaf, again;
	uint64_t used;

	for (uint32_t i = 0; i < 300; i++)
		add(f, i);
	used = f->engine->leaves.n_used;
	tree_read(&f->tree, key_at(100), key_at(100), &leaf);
	for (uint32_t i = 0; i < 300; i++) {
		if (tree_key_less(key_at(i), leaf.low) || tree_key_less(leaf.high, key_at(i)))
			continue;
		tree_remove(&f->tree, key_at(i), true);
		f->there[i] = false;
	}
	assert_int_equal(f->engine->leaves.n_used, used);
	check_upwards(f, 0, KEYS - 1);
	check_downwards(f, 0, KEYS - 1);
	tree_read(&f->tree, key_at(100), key_at(100), &again);
	assert_ptr_equal(again.word, leaf.word);
	add(f, 100);
	assert_int_equal(f->engine->leaves.n_used, used);
	take(f, 100);
	assert_int_equal(f->engine->leaves.n_used, used - 1);
	assert_true(atomic_load(leaf.word) & TREE_OBSOLETE);
	check_all(f);
	fixture_destroy(f);
}

/* ---- memory -------------------------------------------------------------------------------- */

struct source {
	uint32_t n_blocks, n_max;
};

static void *source_alloc(void *ctx, size_t bytes, int node)
{
	struct source *source = ctx;
	void *addr;

	(void)node;
	if (source->n_blocks == source->n_max)
		return NULL;
	addr = aligned_alloc(OLTP_MEM_BLOCK_BYTES, bytes);
	assert_non_null(addr);
	source->n_blocks++;
	return memset(addr, 0, bytes);
}

static void source_free(void *ctx, void *addr, size_t bytes)
{
	struct source *source = ctx;

	(void)bytes;
	free(addr);
	source->n_blocks--;
}

static const struct oltp_mem_ops source_ops = { source_alloc, source_free };

/* Like rows of a queue: millions go through, and few are there at a time. */
static void test_memory_is_bounded_by_what_is_there(void **state)
{
	(void)state;
	struct source source = { .n_max = UINT32_MAX };
	struct oltp_config config = { .mem = &source_ops, .mem_ctx = &source, .node = -1 };
	struct fixture *f = fixture_create(&config);
	struct tree_change change;

	assert_int_equal(source.n_blocks, 2);
	for (uint64_t i = 0; i < 200000; i++) {
		assert_int_equal(tree_insert(&f->tree, (struct tree_key){ i, i }, &change), 0);
		if (i >= 5000)
			tree_remove(&f->tree, (struct tree_key){ i - 5000, i - 5000 }, false);
	}
	assert_true(f->engine->leaves.n_used <= 5000 / TREE_LEAF_KEYS + 2);
	assert_true(f->engine->leaves.n_retired <= 64);
	assert_true(f->engine->inners.n_used <= 16);
	assert_int_equal(source.n_blocks, 2);
	fixture_destroy(f);
	assert_int_equal(source.n_blocks, 0);
}

/* Nodes that a reader may still look at are not used again before it ends. */
static void test_retired_nodes_wait_for_readers(void **state)
{
	(void)state;
	struct source source = { .n_max = UINT32_MAX };
	struct oltp_config config = { .mem = &source_ops, .mem_ctx = &source, .node = -1 };
	struct fixture *f = fixture_create(&config);
	struct oltp_worker *reader;
	struct tree_change change;
	uint32_t n_most = OLTP_MEM_BLOCK_BYTES / TREE_LEAF_BYTES - 100;

	assert_int_equal(oltp_worker_create(f->engine, &reader), 0);
	assert_int_equal(oltp_txn_begin(reader), OLTP_OK);
	for (uint64_t i = 0; f->engine->leaves.n_retired < n_most; i++) {
		assert_int_equal(tree_insert(&f->tree, (struct tree_key){ i, i }, &change), 0);
		if (i >= 100)
			tree_remove(&f->tree, (struct tree_key){ i - 100, i - 100 }, false);
	}
	assert_null(f->engine->leaves.free);
	assert_int_equal(oltp_txn_commit(reader), OLTP_OK);
	for (uint64_t i = 0; i < 10000; i++) {
		struct tree_key key = { i << 40, 1 };

		assert_int_equal(tree_insert(&f->tree, key, &change), 0);
		tree_remove(&f->tree, key, false);
	}
	for (uint64_t i = 1; i < 10000; i++)
		assert_int_equal(tree_insert(&f->tree, (struct tree_key){ i << 40, 1 }, &change),
				 0);
	assert_true(f->engine->leaves.n_retired < n_most);
	assert_int_equal(source.n_blocks, 2);
	oltp_worker_destroy(reader);
	fixture_destroy(f);
}

static void test_without_memory_nothing_changes(void **state)
{
	(void)state;
	struct source source = { .n_max = 2 };
	struct oltp_config config = { .mem = &source_ops, .mem_ctx = &source, .node = -1 };
	struct fixture *f = fixture_create(&config);
	struct tree_leaf before, after;
	struct tree_change change;
	uint64_t n = 0;

	while (!tree_insert(&f->tree, (struct tree_key){ n * 2, n }, &change))
		n++;
	/* One block of leaves, all full. */
	assert_int_equal(n, (OLTP_MEM_BLOCK_BYTES / TREE_LEAF_BYTES - 1) * TREE_LEAF_KEYS);
	for (uint64_t i = 0; i < n; i += 1111) {
		struct tree_key key = { i * 2 + 1, 0 };

		tree_read(&f->tree, key, key, &before);
		assert_int_equal(tree_insert(&f->tree, key, &change), -ENOMEM);
		tree_read(&f->tree, key, key, &after);
		assert_ptr_equal(before.word, after.word);
		assert_int_equal(before.version, after.version);
		assert_int_equal(after.n, 0);
	}
	/* Room in a leaf is enough. */
	tree_remove(&f->tree, (struct tree_key){ 200, 100 }, false);
	assert_int_equal(tree_insert(&f->tree, (struct tree_key){ 201, 0 }, &change), 0);
	source.n_max = 3;
	assert_int_equal(tree_insert(&f->tree, (struct tree_key){ 203, 0 }, &change), 0);
	fixture_destroy(f);

	/* Neither is there a tree without memory, nor does half of one stay. */
	for (source.n_max = 0; source.n_max < 2; source.n_max++) {
		struct oltp_engine *engine;
		struct tree tree;

		assert_int_equal(oltp_engine_open(&config, &engine), 0);
		assert_int_equal(tree_init(&tree, &engine->leaves, &engine->inners), -ENOMEM);
		assert_int_equal(engine->leaves.n_used + engine->inners.n_used, 0);
		oltp_engine_close(engine);
	}
	assert_int_equal(source.n_blocks, 0);
}

/* ---- threads ------------------------------------------------------------------------------- */

#define WRITERS		3u
#define SPREAD		4096u	/* keys of each writer, and as many that stay */
#define STEPS		20000u

struct shared {
	struct fixture *f;
	_Atomic uint32_t n_running;
	pthread_mutex_t lock;
	bool has_failed;
};

struct writer {
	struct shared *shared;
	uint32_t number;
	bool there[SPREAD];
};

static void report(struct shared *shared)
{
	pthread_mutex_lock(&shared->lock);
	shared->has_failed = true;
	pthread_mutex_unlock(&shared->lock);
}

/* Keys of the writers lie between each other; those of number WRITERS stay. */
static struct tree_key shared_key(uint32_t writer, uint32_t i)
{
	return (struct tree_key){ i, writer };
}

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	struct fixture *f = w->shared->f;
	uint64_t random = w->number + 1;
	struct oltp_worker *worker;
	struct tree_change change;

	if (oltp_worker_create(f->engine, &worker))
		abort();
	for (uint32_t step = 0; step < STEPS; step++) {
		/* Ranges empty out and fill up, so that leaves come and go. */
		uint32_t base = step / 1000 * 512 % SPREAD;
		uint32_t i = (base + (uint32_t)(next_random(&random) % 512)) % SPREAD;
		struct tree_key key = shared_key(w->number, i);
		struct tree_leaf leaf;

		oltp_txn_begin(worker);
		if (step / 500 % 2) {
			tree_remove(&f->tree, key, false);
			w->there[i] = false;
		} else {
			if (tree_insert(&f->tree, key, &change) != (w->there[i] ? -EEXIST : 0))
				report(w->shared);
			w->there[i] = true;
		}
		tree_read(&f->tree, key, key, &leaf);
		if (leaf.n != w->there[i])
			report(w->shared);
		oltp_txn_commit(worker);
	}
	oltp_worker_destroy(worker);
	atomic_fetch_sub(&w->shared->n_running, 1);
	return NULL;
}

/* One walk over all: in order, every key that stays, and nothing that never was. */
static void walk(struct shared *shared, struct oltp_worker *worker, bool down)
{
	const struct tree *tree = &shared->f->tree;
	struct tree_key at = down ? TREE_KEY_MAX : TREE_KEY_MIN;
	struct tree_key end = down ? TREE_KEY_MIN : TREE_KEY_MAX;
	struct tree_key last = at;
	uint32_t n_staying = 0;
	bool has_last = false;

	for (;;) {
		struct tree_leaf leaf;

		oltp_txn_begin(worker);
		tree_read(tree, at, end, &leaf);
		oltp_txn_commit(worker);
		for (uint32_t k = 0; k < leaf.n; k++) {
			struct tree_key key = leaf.keys[k];

			if (has_last && !(down ? tree_key_less(key, last) :
						 tree_key_less(last, key)))
				report(shared);
			if (key.primary > WRITERS || key.sort >= SPREAD)
				report(shared);
			n_staying += key.primary == WRITERS;
			last = key;
			has_last = true;
		}
		if (down ? tree_key_equal(leaf.low, end) : tree_key_equal(leaf.high, end))
			break;
		at = down ? tree_key_prev(leaf.low) : tree_key_next(leaf.high);
	}
	if (n_staying != SPREAD / 16)
		report(shared);
}

static void *reader_main(void *arg)
{
	struct shared *shared = arg;
	struct oltp_worker *worker;

	if (oltp_worker_create(shared->f->engine, &worker))
		abort();
	do {
		walk(shared, worker, false);
		walk(shared, worker, true);
	} while (atomic_load(&shared->n_running));
	oltp_worker_destroy(worker);
	return NULL;
}

static void test_threads(void **state)
{
	(void)state;
	struct shared shared = { .f = fixture_create(NULL), .n_running = WRITERS,
				 .lock = PTHREAD_MUTEX_INITIALIZER };
	struct writer *writers = calloc(WRITERS, sizeof(*writers));
	pthread_t threads[WRITERS + 1];
	struct tree_change change;

	for (uint32_t i = 0; i < SPREAD; i += 16)
		assert_int_equal(tree_insert(&shared.f->tree, shared_key(WRITERS, i), &change),
				 0);
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i].shared = &shared;
		writers[i].number = i;
		assert_int_equal(pthread_create(&threads[i], NULL, writer_main, &writers[i]), 0);
	}
	assert_int_equal(pthread_create(&threads[WRITERS], NULL, reader_main, &shared), 0);
	for (uint32_t i = 0; i <= WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_false(shared.has_failed);
	for (uint32_t i = 0; i < SPREAD; i++) {
		for (uint32_t w = 0; w < WRITERS; w++) {
			struct tree_key key = shared_key(w, i);
			struct tree_leaf leaf;

			tree_read(&shared.f->tree, key, key, &leaf);
			assert_int_equal(leaf.n, writers[w].there[i]);
			tree_remove(&shared.f->tree, key, false);
		}
		tree_remove(&shared.f->tree, shared_key(WRITERS, i), false);
	}
	assert_int_equal(shared.f->engine->leaves.n_used, 1);
	free(writers);
	fixture_destroy(shared.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sizes_up_and_down),
		cmocka_unit_test(test_order_decides_how_full_leaves_are),
		cmocka_unit_test(test_random_operations),
		cmocka_unit_test(test_change_tells_what_was_split),
		cmocka_unit_test(test_kept_leaf_stays_and_is_used),
		cmocka_unit_test(test_memory_is_bounded_by_what_is_there),
		cmocka_unit_test(test_retired_nodes_wait_for_readers),
		cmocka_unit_test(test_without_memory_nothing_changes),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
