// SPDX-License-Identifier: GPL-2.0-or-later
/* What transactions of the workloads on YCSB's table are made of: distributions, mixes, growth. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/ycsb_private.h"
#include "oltp-engine/bench/ycsb/ycsb_record.h"
#include "oltp-engine/bench/ycsb/ycsb_workload.h"

#define RECORDS		1000u
#define DRAWS		40000u

struct fixture {
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct ycsb_worker *yw;
};

static void fixture_open(struct fixture *f, const struct ycsb_config *config)
{
	assert_int_equal(oltp_engine_open(NULL, &f->engine), 0);
	assert_int_equal(ycsb_create(f->engine, config, &f->ycsb), 0);
	f->yw = calloc(1, sizeof(*f->yw));
	assert_non_null(f->yw);
	f->yw->ycsb = f->ycsb;
	f->yw->random.state = 4711;
}

static void fixture_close(struct fixture *f)
{
	free(f->yw);
	ycsb_destroy(f->ycsb);
	oltp_engine_close(f->engine);
}

static struct ycsb_config one_class(enum ycsb_keys keys, const double shares[YCSB_READ])
{
	struct ycsb_config config = { .records = RECORDS, .keys = keys, .theta = 0.99,
				      .is_scrambled = true, .seed = 1, .scan_rows = 100,
				      .n_classes = 1,
				      .classes = { { .name = "one", .operations = 1 } } };

	memcpy(config.classes[0].shares, shares, sizeof(config.classes[0].shares));
	return config;
}

/* Binomial: six deviations. The seed is fixed, so what passes once passes always. */
static void assert_share(uint64_t n, uint64_t draws, double share)
{
	double off = fabs((double)n - (double)draws * share);

	if (off > 6 * sqrt((double)draws * share * (1 - share)) + 1)
		fail_msg("%lu of %lu, not %g of them", (unsigned long)n, (unsigned long)draws,
			 share);
}

static void test_shares_of_operations(void **state)
{
	(void)state;
	static const struct ycsb_core *const cores[] = { &ycsb_core_a, &ycsb_core_b, &ycsb_core_c,
							 &ycsb_core_d, &ycsb_core_e,
							 &ycsb_core_f };

	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++) {
		struct ycsb_config config = one_class(cores[i]->keys, cores[i]->shares);
		uint64_t counts[YCSB_OPS] = { 0 }, rows = 0;
		struct ycsb_txn txn;
		struct fixture f;
		double reads = 1;

		fixture_open(&f, &config);
		for (uint32_t n = 0; n < DRAWS; n++) {
			ycsb_draw(f.yw, &txn);
			assert_int_equal(txn.class, 0);
			counts[txn.operations[0].kind]++;
			if (txn.operations[0].kind == YCSB_SCAN) {
				assert_in_range(txn.operations[0].rows, 1, 100);
				rows += txn.operations[0].rows;
			}
			if (txn.operations[0].kind == YCSB_INSERT)
				growth_commit(f.ycsb->growth, txn.numbers[0]);
		}
		for (uint32_t kind = 0; kind < YCSB_READ; kind++) {
			assert_share(counts[kind], DRAWS, cores[i]->shares[kind]);
			reads -= cores[i]->shares[kind];
		}
		assert_share(counts[YCSB_READ], DRAWS, fabs(reads));
		if (counts[YCSB_SCAN])
			assert_true(fabs((double)rows / (double)counts[YCSB_SCAN] - 50.5) < 1.5);
		fixture_close(&f);
	}
}

static void test_shares_of_whole_transactions(void **state)
{
	(void)state;
	struct ycsb_config config = { .records = RECORDS, .operations = 4, .update_share = 0.25,
				      .mix_by_transaction = true, .seed = 1 };
	uint64_t updates = 0;
	struct ycsb_txn txn;
	struct fixture f;

	fixture_open(&f, &config);
	for (uint32_t n = 0; n < DRAWS; n++) {
		ycsb_draw(f.yw, &txn);
		for (uint32_t i = 1; i < 4; i++)
			assert_int_equal(txn.operations[i].kind, txn.operations[0].kind);
		updates += txn.operations[0].kind == YCSB_UPDATE;
	}
	assert_share(updates, DRAWS, 0.25);
	fixture_close(&f);
}

/* The probability of each rank, r from 0. */
static double zipf_share(uint32_t r, uint64_t n, double theta)
{
	double zeta = 0;

	for (uint64_t i = 1; i <= n; i++)
		zeta += pow((double)i, -theta);
	return pow(r + 1.0, -theta) / zeta;
}

static void test_latest_follows_the_inserts(void **state)
{
	(void)state;
	struct ycsb_config config = one_class(YCSB_KEYS_LATEST, ycsb_core_d.shares);
	uint64_t by_age[3] = { 0 }, reads = 0, inserts = 0;
	struct ycsb_txn txn;
	struct fixture f;

	fixture_open(&f, &config);
	for (uint32_t n = 0; n < DRAWS; n++) {
		uint64_t frontier = growth_frontier(f.ycsb->growth), age;

		ycsb_draw(f.yw, &txn);
		if (txn.operations[0].kind == YCSB_INSERT) {
			assert_int_equal(txn.numbers[0], RECORDS + inserts);
			assert_int_equal(txn.hints[0].key, RECORDS + inserts);
			growth_commit(f.ycsb->growth, txn.numbers[0]);
			inserts++;
			continue;
		}
		assert_true(txn.hints[0].key < frontier);
		age = frontier - 1 - txn.hints[0].key;
		assert_true(age < RECORDS);
		if (age < 3)
			by_age[age]++;
		reads++;
	}
	assert_true(inserts > 0);
	for (uint32_t age = 0; age < 3; age++)
		assert_share(by_age[age], reads, zipf_share(age, RECORDS, 0.99));
	fixture_close(&f);
}

/* Draws until every key of the window must have come; counts[key] is how often each did. */
static void draw_window(struct fixture *f, uint64_t *counts)
{
	struct ycsb_txn txn;

	memset(counts, 0, RECORDS * sizeof(*counts));
	for (uint32_t n = 0; n < DRAWS; n++) {
		ycsb_draw(f->yw, &txn);
		assert_true(txn.hints[0].key < RECORDS);
		counts[txn.hints[0].key]++;
	}
}

static void assert_window(const uint64_t *counts, uint64_t first, uint64_t n)
{
	for (uint64_t key = 0; key < RECORDS; key++) {
		bool is_inside = (key + RECORDS - first) % RECORDS < n;

		if (is_inside)
			assert_share(counts[key], DRAWS, 1.0 / (double)n);
		else
			assert_int_equal(counts[key], 0);
	}
}

static void test_window(void **state)
{
	(void)state;
	struct ycsb_config config = one_class(YCSB_KEYS_WINDOW, ycsb_core_c.shares);
	uint64_t counts[RECORDS], distinct = 0;
	struct fixture f;

	config.is_scrambled = false;
	fixture_open(&f, &config);
	draw_window(&f, counts);
	assert_window(counts, 0, RECORDS);
	assert_int_equal(ycsb_set_window(f.ycsb, 100, 50), 0);
	draw_window(&f, counts);
	assert_window(counts, 100, 50);
	/* Around the end, and from beyond it. */
	assert_int_equal(ycsb_set_window(f.ycsb, RECORDS - 10, 30), 0);
	draw_window(&f, counts);
	assert_window(counts, RECORDS - 10, 30);
	assert_int_equal(ycsb_set_window(f.ycsb, 3 * RECORDS + 7, 1), 0);
	draw_window(&f, counts);
	assert_window(counts, 7, 1);
	assert_int_equal(ycsb_set_window(f.ycsb, 0, 5 * RECORDS), 0);
	draw_window(&f, counts);
	assert_window(counts, 0, RECORDS);
	assert_int_equal(ycsb_set_window(f.ycsb, 0, 0), -EINVAL);
	fixture_close(&f);

	/* Scrambled: as many, but anywhere. */
	config.is_scrambled = true;
	fixture_open(&f, &config);
	assert_int_equal(ycsb_set_window(f.ycsb, 0, 50), 0);
	draw_window(&f, counts);
	for (uint64_t key = 0; key < RECORDS; key++)
		distinct += counts[key] > 0;
	assert_int_equal(distinct, 50);
	fixture_close(&f);
}

static void test_weights_of_classes(void **state)
{
	(void)state;
	static const double weights[][3] = { { 1, 1, 1 }, { 3, 1, 0 }, { 0, 0.5, 0.125 },
					     { 0, 0, 7 } };
	struct ycsb_config config = { .records = RECORDS, .n_classes = 3, .seed = 1 };
	struct ycsb_txn txn;
	struct fixture f;

	for (uint32_t i = 0; i < 3; i++)
		config.classes[i] = (struct ycsb_class){ .name = &"abc"[i], .operations = i + 1 };
	fixture_open(&f, &config);
	for (size_t w = 0; w < sizeof(weights) / sizeof(weights[0]); w++) {
		double sum = weights[w][0] + weights[w][1] + weights[w][2];
		uint64_t counts[3] = { 0 };

		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(ycsb_set_weight(f.ycsb, i, weights[w][i]), 0);
		for (uint32_t n = 0; n < DRAWS; n++) {
			ycsb_draw(f.yw, &txn);
			assert_int_equal(txn.mix->operations, txn.class + 1);
			counts[txn.class]++;
		}
		for (uint32_t i = 0; i < 3; i++)
			assert_share(counts[i], DRAWS, weights[w][i] / sum);
	}
	assert_int_equal(ycsb_set_weight(f.ycsb, 3, 1), -EINVAL);
	assert_int_equal(ycsb_set_weight(f.ycsb, 0, -1), -EINVAL);
	assert_int_equal(ycsb_set_weight(f.ycsb, 0, NAN), -EINVAL);
	fixture_close(&f);
}

static void test_growth_passes_only_what_committed(void **state)
{
	(void)state;
	struct growth *growth = malloc(sizeof(*growth));
	uint64_t number;

	assert_non_null(growth);
	growth_init(growth, 10, UINT64_MAX);
	for (uint64_t i = 10; i < 15; i++) {
		assert_true(growth_take(growth, &number));
		assert_int_equal(number, i);
	}
	growth_commit(growth, 12);
	growth_commit(growth, 11);
	assert_int_equal(growth_frontier(growth), 10);
	growth_commit(growth, 10);
	assert_int_equal(growth_frontier(growth), 13);
	growth_commit(growth, 14);
	assert_int_equal(growth_frontier(growth), 13);
	/* As far ahead of 13 as may be. */
	for (uint64_t i = 15; i < 13 + GROWTH_AHEAD; i++)
		assert_true(growth_take(growth, &number));
	assert_false(growth_take(growth, &number));
	growth_commit(growth, 13);
	assert_int_equal(growth_frontier(growth), 15);
	assert_true(growth_take(growth, &number));
	assert_int_equal(number, 13 + GROWTH_AHEAD);

	growth_init(growth, 5, 7);
	assert_true(growth_take(growth, &number));
	assert_true(growth_take(growth, &number));
	assert_int_equal(number, 6);
	assert_false(growth_take(growth, &number));
	free(growth);
}

static void *grow(void *arg)
{
	struct growth *growth = arg;
	uint64_t number;

	while (growth_take(growth, &number))
		growth_commit(growth, number);
	return NULL;
}

static void test_growth_by_several_threads_leaves_no_gap(void **state)
{
	(void)state;
	struct growth *growth = malloc(sizeof(*growth));
	pthread_t threads[3];

	assert_non_null(growth);
	growth_init(growth, 0, 20 * GROWTH_AHEAD);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, grow, growth), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	/* All that were taken, whoever was last: a number that is stuck would end the loops. */
	assert_int_equal(growth_frontier(growth), atomic_load(&growth->next));
	assert_int_equal(growth_frontier(growth), 20 * GROWTH_AHEAD);
	free(growth);
}

static void test_full_table_reads_instead_of_inserting(void **state)
{
	(void)state;
	struct ycsb_config config = one_class(YCSB_KEYS_LATEST, ycsb_core_d.shares);
	uint64_t inserts = 0;
	struct ycsb_txn txn;
	struct fixture f;

	config.records_max = RECORDS + 20;
	fixture_open(&f, &config);
	for (uint32_t n = 0; n < DRAWS; n++) {
		ycsb_draw(f.yw, &txn);
		if (txn.operations[0].kind == YCSB_INSERT) {
			growth_commit(f.ycsb->growth, txn.numbers[0]);
			inserts++;
		}
	}
	assert_int_equal(inserts, 20);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_of_operations),
		cmocka_unit_test(test_shares_of_whole_transactions),
		cmocka_unit_test(test_latest_follows_the_inserts),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_weights_of_classes),
		cmocka_unit_test(test_growth_passes_only_what_committed),
		cmocka_unit_test(test_growth_by_several_threads_leaves_no_gap),
		cmocka_unit_test(test_full_table_reads_instead_of_inserting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
