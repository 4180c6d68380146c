// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consistency conditions of the TPC-C-like workload: they hold after everything that workers
 * do, under every scheme, and each fails when what it is about is damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "oltp-engine/bench/options.h"
#include "tpcc_rig.h"

#define CONDITION(n)	(1u << (n))
/* More transactions of the tiny database than there are in it, and yet soon through. */
#define ENOUGH		1000u
#define WAIT_SECONDS	120u

static struct tpcc_rig rig;

static int setup(void **state)
{
	struct tpcc_config config = tpcc_rig_config();

	(void)state;
	tpcc_rig_open(&rig, &config, OLTP_CC_NO_WAIT);
	tpcc_rig_detach(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tpcc_rig_close(&rig);
	return 0;
}

static uint32_t violated(struct tpcc_verdict *verdict)
{
	uint32_t set = 0;

	tpcc_verify(rig.tpcc, verdict);
	assert_int_equal(verdict->scan_rc, 0);
	for (uint32_t i = 0; i <= TPCC_CONDITIONS; i++)
		set |= verdict->violations[i] ? CONDITION(i) : 0;
	return set;
}

/* A number goes up by one: which conditions fail? All is well before, and once it is undone. */
static void check_damage(enum tpcc_table table, uint64_t key, uint32_t offset, uint32_t bytes,
			 uint32_t expected)
{
	struct tpcc_verdict verdict;
	uint8_t row[1024];
	uint64_t value = 0;

	tpcc_rig_assert_good(&rig);
	assert_true(tpcc_rig_get(&rig, table, key, row, offset + bytes));
	memcpy(&value, row + offset, bytes);
	value++;
	tpcc_rig_put(&rig, table, key, offset, &value, bytes);
	assert_int_equal(violated(&verdict), expected);
	assert_false(verdict.is_good);
	value--;
	tpcc_rig_put(&rig, table, key, offset, &value, bytes);
	tpcc_rig_assert_good(&rig);
}

#define CHECK_DAMAGE(table, key, type, member, expected)				\
	check_damage(table, key, offsetof(type, member), sizeof(((type *)0)->member), expected)

static void check_deletion(enum tpcc_table table, uint64_t key, uint32_t expected)
{
	struct tpcc_verdict verdict;

	tpcc_rig_assert_good(&rig);
	tpcc_rig_delete(&rig, table, key);
	assert_int_equal(violated(&verdict), expected);
	assert_false(verdict.is_good);
}

static void test_condition_1(void **state)
{
	(void)state;
	CHECK_DAMAGE(TPCC_WAREHOUSE, 2, struct tpcc_warehouse, ytd, CONDITION(1) | CONDITION(8));
}

static void test_condition_2(void **state)
{
	(void)state;
	CHECK_DAMAGE(TPCC_DISTRICT, tpcc_district_key(2, 10), struct tpcc_district, next_o_id,
		     CONDITION(2));
	/* The newest of the new orders. */
	check_deletion(TPCC_NEW_ORDER_ROW, tpcc_order_key(1, 1, RIG_CUSTOMERS),
		       CONDITION(2) | CONDITION(5));
}

/* One from the middle. */
static void test_condition_3(void **state)
{
	(void)state;
	check_deletion(TPCC_NEW_ORDER_ROW, tpcc_order_key(1, 4, RIG_CUSTOMERS - 3),
		       CONDITION(3) | CONDITION(5));
}

/* A line too many of one order and one too few of another: only the sum is right. */
static void test_conditions_4_and_6(void **state)
{
	uint64_t key = tpcc_order_key(2, 5, 3), other = tpcc_order_key(2, 5, 4);
	struct tpcc_verdict verdict;
	struct tpcc_order order;
	struct tpcc_line line;

	(void)state;
	CHECK_DAMAGE(TPCC_ORDER, key, struct tpcc_order, lines, CONDITION(4) | CONDITION(6));
	assert_true(tpcc_rig_get(&rig, TPCC_ORDER, key, &order, sizeof(order)));
	assert_true(tpcc_rig_get(&rig, TPCC_LINE, tpcc_line_key(key, order.lines), &line,
				 sizeof(line)));
	check_deletion(TPCC_LINE, tpcc_line_key(key, order.lines), CONDITION(4) | CONDITION(6));
	assert_int_equal(oltp_txn_begin(rig.worker), OLTP_OK);
	/* A number that no line has. */
	assert_int_equal(oltp_txn_insert(rig.worker, rig.tpcc->tables[TPCC_LINE],
					 tpcc_line_key(other, 0), &line), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.worker), OLTP_OK);
	assert_int_equal(violated(&verdict), CONDITION(6));
	assert_int_equal(verdict.violations[6], 2);
}

static void test_condition_5(void **state)
{
	(void)state;
	CHECK_DAMAGE(TPCC_ORDER, tpcc_order_key(1, 9, RIG_CUSTOMERS), struct tpcc_order, carrier,
		     CONDITION(5) | CONDITION(7));
}

static void test_condition_7(void **state)
{
	uint64_t line = tpcc_line_key(tpcc_order_key(1, 2, 1), 1);
	const int64_t null = 0;
	struct tpcc_verdict verdict;

	(void)state;
	tpcc_rig_assert_good(&rig);
	/* It was delivered, and its amount is 0: the sums stay as they are. */
	tpcc_rig_put(&rig, TPCC_LINE, line, offsetof(struct tpcc_line, delivery_date), &null,
		     sizeof(null));
	assert_int_equal(violated(&verdict), CONDITION(7));
	assert_int_equal(verdict.violations[7], 1);
}

static void test_condition_8(void **state)
{
	uint64_t key = tpcc_history_key(tpcc_customer_key(1, 3, 4), 1);

	(void)state;
	CHECK_DAMAGE(TPCC_HISTORY, key, struct tpcc_history, amount,
		     CONDITION(8) | CONDITION(9) | CONDITION(10));
	check_deletion(TPCC_HISTORY, key, CONDITION(8) | CONDITION(9) | CONDITION(10));
}

/* Paid in another district of the same warehouse: only the sum of the warehouse is right. */
static void test_condition_9(void **state)
{
	(void)state;
	CHECK_DAMAGE(TPCC_HISTORY, tpcc_history_key(tpcc_customer_key(1, 3, 4), 1),
		     struct tpcc_history, d, CONDITION(9));
	CHECK_DAMAGE(TPCC_DISTRICT, tpcc_district_key(1, 3), struct tpcc_district, ytd,
		     CONDITION(1) | CONDITION(9));
}

static void test_conditions_10_and_12(void **state)
{
	uint64_t key = tpcc_customer_key(2, 8, 11);

	(void)state;
	CHECK_DAMAGE(TPCC_CUSTOMER, key, struct tpcc_customer, balance,
		     CONDITION(10) | CONDITION(12));
	CHECK_DAMAGE(TPCC_CUSTOMER, key, struct tpcc_customer, ytd_payment, CONDITION(12));
	CHECK_DAMAGE(TPCC_CUSTOMER, key, struct tpcc_customer, archived_lines,
		     CONDITION(10) | CONDITION(12));
	CHECK_DAMAGE(TPCC_CUSTOMER, key, struct tpcc_customer, archived_payments, CONDITION(10));
}

/* What fulfils all conditions and yet is not what workers committed. */
static void test_books(void **state)
{
	struct tpcc_verdict verdict;

	(void)state;
	CHECK_DAMAGE(TPCC_CUSTOMER, tpcc_customer_key(1, 1, 1), struct tpcc_customer, payments, 0);
	CHECK_DAMAGE(TPCC_CUSTOMER, tpcc_customer_key(1, 1, 1), struct tpcc_customer, deliveries,
		     0);
	rig.tpcc->books.commits[TPCC_NEW_ORDER]++;
	assert_int_equal(violated(&verdict), 0);
	assert_int_equal(verdict.lost_orders, 1);
	assert_false(verdict.is_good);
	rig.tpcc->books.commits[TPCC_NEW_ORDER]--;
	check_deletion(TPCC_STOCK, tpcc_stock_key(1, 1), 0);
}

static void test_a_row_too_many_hides_no_missing_one(void **state)
{
	const struct tpcc_item item = { .price = 1 };
	struct tpcc_verdict verdict;

	(void)state;
	assert_int_equal(oltp_txn_begin(rig.worker), OLTP_OK);
	assert_int_equal(oltp_txn_insert(rig.worker, rig.tpcc->tables[TPCC_ITEM], RIG_ITEMS + 1,
					 &item), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.worker), OLTP_OK);
	tpcc_rig_delete(&rig, TPCC_STOCK, tpcc_stock_key(1, 1));
	tpcc_verify(rig.tpcc, &verdict);
	assert_int_equal(verdict.missing_rows, 2);
	assert_false(verdict.is_good);
}

static uint64_t committed(struct oltp_pool *pool)
{
	struct oltp_totals totals;

	oltp_pool_totals(pool, &totals);
	assert_int_equal(totals.failed, 0);
	return totals.committed;
}

static void wait_commits(struct oltp_pool *pool, uint64_t n)
{
	struct timespec pause = { 0, 5000000 };

	for (uint32_t i = 0; committed(pool) < n; i++) {
		assert_true(i < WAIT_SECONDS * 200);
		nanosleep(&pause, NULL);
	}
}

/* Four unpinned workers, one of them replaced on the way. */
static void run_pool(struct tpcc_rig *r)
{
	struct oltp_pool_config config = { .engine = r->engine, .workload = &r->workload,
					   .no_pin = true };
	struct oltp_pool *pool;

	assert_int_equal(oltp_pool_create(&config, &pool), 0);
	for (uint32_t cpu = 0; cpu < 4; cpu++)
		assert_int_equal(oltp_pool_add(pool, cpu), 0);
	wait_commits(pool, ENOUGH / 2);
	assert_int_equal(oltp_pool_remove(pool, 2, NULL), 0);
	assert_int_equal(oltp_pool_add(pool, 9), 0);
	wait_commits(pool, ENOUGH);
	oltp_pool_destroy(pool);
}

static void check_run(const struct tpcc_config *config, enum oltp_cc cc)
{
	struct class_figures figures;
	struct tpcc_rig r;

	tpcc_rig_open(&r, config, cc);
	tpcc_rig_detach(&r);
	run_pool(&r);
	tpcc_rig_assert_good(&r);
	for (uint32_t i = 0; i < TPCC_KINDS; i++) {
		classes_read(tpcc_classes(r.tpcc), i, &figures);
		assert_int_equal(figures.failed, 0);
		assert_int_equal(figures.committed, r.tpcc->books.commits[i]);
		assert_true(figures.committed > 0);
	}
	tpcc_rig_close(&r);
}

static void test_every_scheme(void **state)
{
	struct tpcc_config config = tpcc_rig_config();

	(void)state;
	for (uint32_t cc = 0; strcmp(oltp_cc_name(cc), "unknown") != 0; cc++) {
		/* All in one place, and each at home with visits. */
		config.warehouses = 1;
		config.home_of_worker = false;
		check_run(&config, cc);
		config.warehouses = 3;
		config.home_of_worker = true;
		check_run(&config, cc);
	}
}

/* Old orders and histories go: as many stay as were asked for, and all conditions hold. */
static void test_recycling(void **state)
{
	struct tpcc_config config = tpcc_rig_config();
	uint32_t n_districts = RIG_WAREHOUSES * TPCC_DISTRICTS;
	struct tpcc_rig r;

	(void)state;
	config.keep_orders = RIG_CUSTOMERS + 5;
	tpcc_rig_open(&r, &config, OLTP_CC_WAIT_DIE);
	tpcc_rig_detach(&r);
	run_pool(&r);
	tpcc_rig_assert_good(&r);
	assert_true(r.tpcc->books.commits[TPCC_NEW_ORDER] > ENOUGH / 4);
	assert_in_range(tpcc_rig_count(&r, TPCC_ORDER), n_districts * RIG_CUSTOMERS,
			n_districts * config.keep_orders);
	assert_in_range(tpcc_rig_count(&r, TPCC_LINE), 1,
			n_districts * config.keep_orders * TPCC_LINES_MAX);
	assert_int_equal(tpcc_rig_count(&r, TPCC_HISTORY), n_districts * RIG_CUSTOMERS);
	tpcc_rig_close(&r);
}

/* Without deliveries undelivered orders go as well. */
static void test_recycling_without_delivery(void **state)
{
	struct tpcc_config config = tpcc_rig_config();
	struct tpcc_rig r;

	(void)state;
	config.keep_orders = RIG_CUSTOMERS;
	assert_int_equal(tpcc_mix_parse("50,50,0,0,0", config.mix), 0);
	tpcc_rig_open(&r, &config, OLTP_CC_NO_WAIT);
	tpcc_rig_detach(&r);
	run_pool(&r);
	tpcc_rig_assert_good(&r);
	assert_int_equal(tpcc_rig_count(&r, TPCC_ORDER),
			 RIG_WAREHOUSES * TPCC_DISTRICTS * RIG_CUSTOMERS);
	tpcc_rig_close(&r);
}

/* What the workload has to say of itself, as the programs ask for it. */
static bool verify_fields(const struct bench_workload_ops *ops, void *tpcc, char *text,
			  size_t bytes)
{
	FILE *out = fmemopen(text, bytes, "w");
	struct fields fields;
	bool is_good;

	assert_non_null(out);
	fields_begin(&fields, out, FIELDS_JSON);
	ops->describe(tpcc, &fields);
	is_good = ops->verify(tpcc, &fields);
	fields_end(&fields);
	fclose(out);
	return is_good;
}

static void test_as_a_workload(void **state)
{
	const struct bench_workload *workload = bench_workload_find("tpcc");
	const struct bench_workload_ops *ops = workload->ops;
	struct bench_options options = bench_options_default;
	struct oltp_config config = { .node = -1 };
	struct bench_progress progress = { 0 };
	char text[4096];
	struct tpcc_rig r;
	void *tpcc;

	(void)state;
	assert_null(ops->check(workload, &options));
	/* The estimate is for the real scale. */
	options.tpcc.orders = 0;
	assert_in_range(ops->memory_bytes(workload, &options), 80ull << 20, 150ull << 20);
	options.tpcc = tpcc_rig_config();
	ops->configure(workload, &options, &config);
	assert_true(config.txn_records_max >= TPCC_RECORDS_MAX);
	assert_int_equal(oltp_engine_open(&config, &r.engine), 0);
	assert_int_equal(ops->create(workload, r.engine, &options, &tpcc), 0);
	assert_int_equal(ops->load(tpcc, 3, &progress), 0);
	assert_int_equal(progress.done, RIG_WAREHOUSES);
	assert_int_equal(progress.total, RIG_WAREHOUSES);
	r.tpcc = tpcc;
	r.workload = ops->pool(tpcc);
	assert_int_equal(oltp_worker_create(r.engine, &r.worker), 0);
	run_pool(&r);
	assert_true(verify_fields(ops, tpcc, text, sizeof(text)));
	assert_non_null(strstr(text, "\"mix\":\"45,43,4,4,4\""));
	assert_non_null(strstr(text, "\"lost_updates\":0}"));
	tpcc_rig_delete(&r, TPCC_ITEM, 1);
	tpcc_rig_put(&r, TPCC_WAREHOUSE, 1, offsetof(struct tpcc_warehouse, ytd),
		     &(int64_t){ 5 }, sizeof(int64_t));
	assert_false(verify_fields(ops, tpcc, text, sizeof(text)));
	assert_non_null(strstr(text, "\"consistency_violations\":{\"1\":1,\"2\":0,"));
	assert_non_null(strstr(text, "\"missing_rows\":1"));
	assert_non_null(strstr(text, "\"lost_updates\":3}"));
	oltp_worker_destroy(r.worker);
	ops->destroy(tpcc);
	oltp_engine_close(r.engine);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_a_row_too_many_hides_no_missing_one),
		WITH_RIG(test_condition_1),
		WITH_RIG(test_condition_2),
		WITH_RIG(test_condition_3),
		WITH_RIG(test_conditions_4_and_6),
		WITH_RIG(test_condition_5),
		WITH_RIG(test_condition_7),
		WITH_RIG(test_condition_8),
		WITH_RIG(test_condition_9),
		WITH_RIG(test_conditions_10_and_12),
		WITH_RIG(test_books),
		cmocka_unit_test(test_every_scheme),
		cmocka_unit_test(test_recycling),
		cmocka_unit_test(test_recycling_without_delivery),
		cmocka_unit_test(test_as_a_workload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
