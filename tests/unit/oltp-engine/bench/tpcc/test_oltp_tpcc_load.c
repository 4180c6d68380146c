// SPDX-License-Identifier: GPL-2.0-or-later
/* The TPC-C-like workload: what is drawn, and what the tables begin with. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tpcc_rig.h"

static void test_random_values(void **state)
{
	struct random64 random = { .state = 3 };
	char name[16];

	(void)state;
	tpcc_last_name(371, name);
	assert_string_equal(name, "PRICALLYOUGHT");
	tpcc_last_name(0, name);
	assert_string_equal(name, "BARBARBAR");
	tpcc_last_name(999, name);
	assert_string_equal(name, "EINGEINGEING");
	for (uint32_t i = 0; i < 2000; i++) {
		struct tpcc_nurand load = tpcc_nurand_load(&random);
		struct tpcc_nurand run = tpcc_nurand_run(&random, &load);
		uint32_t delta = run.c_last > load.c_last ? run.c_last - load.c_last :
							    load.c_last - run.c_last;
		uint32_t c = tpcc_nurand_draw(&random, 1023, run.c_id, 1, 3000);
		char data[50];

		assert_true(load.c_last <= 255 && load.c_id <= 1023 && load.item <= 8191);
		assert_true(delta >= 65 && delta <= 119 && delta != 96 && delta != 112);
		assert_in_range(c, 1, 3000);
		tpcc_letters(&random, 26, 50, data, sizeof(data));
		memcpy(data + i % 43, "ORIGINAL", 8);
		assert_true(tpcc_is_original(data));
		data[i % 43 + i % 8] = '-';
		assert_false(tpcc_is_original(data));
	}
}

/* By far not uniform: ones are three times as likely as zeros in the low bits. */
static void test_nurand_is_skewed(void **state)
{
	struct random64 random = { .state = 4 };
	uint32_t n_ones = 0;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++)
		n_ones += tpcc_nurand_draw(&random, 255, 0, 0, 1023) & 1;
	assert_in_range(n_ones, 7300, 7700);
}

static void test_mix_is_parsed(void **state)
{
	static const char *const bad[] = { "", "45,43,4,4", "45,43,4,4,4,0", "45,43,4,4,5",
					   "45,43,4,4,x", "-1,101,0,0,0", "200,0,0,0,0", "45;43" };
	uint32_t mix[TPCC_KINDS] = { 9 };

	(void)state;
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tpcc_mix_parse(bad[i], mix), -EINVAL);
		assert_int_equal(mix[0], 9);
	}
	assert_int_equal(tpcc_mix_parse("50,50,0,0,0", mix), 0);
	assert_int_equal(mix[0], 50);
	assert_int_equal(mix[4], 0);
}

static void test_config_is_checked(void **state)
{
	struct tpcc_config bad[8];
	struct oltp_engine *engine;
	struct tpcc *tpcc;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		bad[i] = tpcc_rig_config();
	bad[0].warehouses = 0;
	bad[1].warehouses = TPCC_WAREHOUSES_MAX + 1;
	bad[2].mix[0]++;
	bad[3].items = TPCC_ITEMS + 1;
	bad[4].items = 10;
	bad[5].customers = TPCC_CUSTOMERS + 1;
	bad[6].customers = 10;
	bad[7].keep_orders = RIG_CUSTOMERS - 1;
	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(tpcc_create(engine, &bad[i], &tpcc), -EINVAL);
	oltp_engine_close(engine);
}

static void test_row_counts(void **state)
{
	static const uint64_t rows[TPCC_TABLES] = {
		[TPCC_WAREHOUSE] = RIG_WAREHOUSES,
		[TPCC_DISTRICT] = RIG_WAREHOUSES * 10,
		[TPCC_CUSTOMER] = RIG_WAREHOUSES * 10 * RIG_CUSTOMERS,
		[TPCC_HISTORY] = RIG_WAREHOUSES * 10 * RIG_CUSTOMERS,
		[TPCC_NEW_ORDER_ROW] = RIG_WAREHOUSES * 10 * (RIG_CUSTOMERS - RIG_DELIVERED),
		[TPCC_ORDER] = RIG_WAREHOUSES * 10 * RIG_CUSTOMERS,
		[TPCC_ITEM] = RIG_ITEMS,
		[TPCC_STOCK] = RIG_WAREHOUSES * RIG_ITEMS,
	};
	struct tpcc_rig *rig = *state;

	for (uint32_t i = 0; i < TPCC_TABLES; i++) {
		if (i != TPCC_LINE)
			assert_int_equal(tpcc_rig_count(rig, i), rows[i]);
	}
	/* Five to fifteen for each order. */
	assert_in_range(tpcc_rig_count(rig, TPCC_LINE), rows[TPCC_ORDER] * 9,
			rows[TPCC_ORDER] * 11);
	tpcc_rig_detach(rig);
	tpcc_rig_assert_good(rig);
}

/* The same whoever filled what. */
static void test_load_does_not_depend_on_threads(void **state)
{
	struct tpcc_config config = tpcc_rig_config();
	struct tpcc_rig *rig = *state, other;
	struct tpcc_stock a, b;
	struct tpcc_customer c, d;

	assert_int_equal(oltp_engine_open(NULL, &other.engine), 0);
	assert_int_equal(tpcc_create(other.engine, &config, &other.tpcc), 0);
	assert_int_equal(tpcc_load(other.tpcc, 5, NULL), 0);
	assert_int_equal(oltp_worker_create(other.engine, &other.worker), 0);
	for (uint32_t i = 1; i <= RIG_ITEMS; i++) {
		assert_true(tpcc_rig_get(rig, TPCC_STOCK, tpcc_stock_key(2, i), &a, sizeof(a)));
		assert_true(tpcc_rig_get(&other, TPCC_STOCK, tpcc_stock_key(2, i), &b, sizeof(b)));
		assert_memory_equal(&a, &b, sizeof(a));
	}
	assert_true(tpcc_rig_get(rig, TPCC_CUSTOMER, tpcc_customer_key(2, 10, 9), &c, sizeof(c)));
	assert_true(tpcc_rig_get(&other, TPCC_CUSTOMER, tpcc_customer_key(2, 10, 9), &d,
				 sizeof(d)));
	/* But for the date. */
	d.since = c.since;
	assert_memory_equal(&c, &d, sizeof(c));
	oltp_worker_destroy(other.worker);
	tpcc_destroy(other.tpcc);
	oltp_engine_close(other.engine);
}

static void test_loaded_items_and_stock(void **state)
{
	struct tpcc_rig *rig = *state;
	uint32_t n_original = 0;

	for (uint32_t i = 1; i <= RIG_ITEMS; i++) {
		struct tpcc_item item;

		assert_true(tpcc_rig_get(rig, TPCC_ITEM, i, &item, sizeof(item)));
		assert_in_range(item.image, 1, 10000);
		assert_in_range(item.price, 100, 10000);
		assert_in_range(strnlen(item.name, 24), 14, 24);
		assert_in_range(strnlen(item.data, 50), 26, 50);
		n_original += tpcc_is_original(item.data);
		for (uint32_t w = 1; w <= RIG_WAREHOUSES; w++) {
			struct tpcc_stock stock;

			assert_true(tpcc_rig_get(rig, TPCC_STOCK, tpcc_stock_key(w, i), &stock,
						 sizeof(stock)));
			assert_in_range(stock.quantity, 10, 100);
			assert_int_equal(stock.ytd | stock.orders | stock.remotes, 0);
			for (uint32_t d = 0; d < TPCC_DISTRICTS; d++)
				assert_int_equal(strnlen(stock.dist[d], 24), 24);
			assert_in_range(strnlen(stock.data, 50), 26, 50);
			n_original += tpcc_is_original(stock.data);
		}
	}
	/* One in ten of 360: the seed is fixed, so is the number. */
	assert_in_range(n_original, 18, 60);
	assert_false(tpcc_rig_get(rig, TPCC_ITEM, RIG_ITEMS + 1, &(struct tpcc_item){ 0 }, 1));
}

static void test_loaded_customers(void **state)
{
	struct tpcc_rig *rig = *state;
	uint32_t n_bad = 0;

	for (uint32_t d = 1; d <= TPCC_DISTRICTS; d++) {
		struct tpcc_district district;

		assert_true(tpcc_rig_get(rig, TPCC_DISTRICT, tpcc_district_key(1, d), &district,
					 sizeof(district)));
		assert_int_equal(district.ytd, RIG_CUSTOMERS * 1000);
		assert_int_equal(district.next_o_id, RIG_CUSTOMERS + 1);
		assert_in_range(district.tax, 0, 2000);
		for (uint32_t c = 1; c <= RIG_CUSTOMERS; c++) {
			uint64_t key = tpcc_customer_key(1, d, c);
			struct tpcc_customer customer;
			struct tpcc_history history;
			char last[16];

			assert_true(tpcc_rig_get(rig, TPCC_CUSTOMER, key, &customer,
						 sizeof(customer)));
			tpcc_last_name(c - 1, last);
			assert_memory_equal(customer.last, last, 16);
			assert_in_range(strnlen(customer.first, 16), 8, 16);
			assert_memory_equal(customer.middle, "OE", 2);
			assert_memory_equal(customer.address.zip + 4, "11111", 5);
			assert_in_range(customer.discount, 0, 5000);
			assert_int_equal(customer.credit_limit, 5000000);
			assert_int_equal(customer.balance, -1000);
			assert_int_equal(customer.ytd_payment, 1000);
			assert_int_equal(customer.payments, 1);
			assert_int_equal(customer.deliveries, 0);
			assert_in_range(strnlen(customer.data, 500), 300, 500);
			assert_true(!memcmp(customer.credit, "GC", 2) ||
				    !memcmp(customer.credit, "BC", 2));
			n_bad += customer.credit[0] == 'B';
			assert_true(tpcc_rig_get(rig, TPCC_HISTORY, tpcc_history_key(key, 1),
						 &history, sizeof(history)));
			assert_int_equal(history.amount, 1000);
			assert_in_range(strnlen(history.data, 24), 12, 24);
		}
	}
	assert_in_range(n_bad, 20, 60);
}

static void check_order(struct tpcc_rig *rig, uint32_t o, const struct tpcc_order *order)
{
	bool is_delivered = o <= RIG_DELIVERED;
	uint64_t key = tpcc_order_key(1, 1, o);
	struct tpcc_new_order new_order;
	struct tpcc_line line;

	assert_in_range(order->lines, 5, 15);
	assert_int_equal(order->all_local, 1);
	assert_in_range(order->carrier, is_delivered ? 1 : 0, is_delivered ? 10 : 0);
	assert_int_equal(tpcc_rig_get(rig, TPCC_NEW_ORDER_ROW, key, &new_order, sizeof(new_order)),
			 !is_delivered);
	for (uint32_t n = 1; n <= order->lines; n++) {
		assert_true(tpcc_rig_get(rig, TPCC_LINE, tpcc_line_key(key, n), &line,
					 sizeof(line)));
		assert_in_range(line.item, 1, RIG_ITEMS);
		assert_int_equal(line.supply_w, 1);
		assert_int_equal(line.quantity, 5);
		assert_int_equal(line.delivery_date, is_delivered ? order->entry_date : 0);
		assert_in_range(line.amount, is_delivered ? 0 : 1, is_delivered ? 0 : 999999);
		assert_int_equal(strnlen(line.dist_info, 24), 24);
	}
	assert_false(tpcc_rig_get(rig, TPCC_LINE, tpcc_line_key(key, order->lines + 1u), &line, 1));
}

/* Each customer has one, in random order. */
static void test_loaded_orders(void **state)
{
	struct tpcc_rig *rig = *state;
	uint8_t orders_of[RIG_CUSTOMERS + 1] = { 0 };
	uint32_t n_in_place = 0;

	for (uint32_t o = 1; o <= RIG_CUSTOMERS; o++) {
		struct tpcc_order order;

		assert_true(tpcc_rig_get(rig, TPCC_ORDER, tpcc_order_key(1, 1, o), &order,
					 sizeof(order)));
		assert_in_range(order.c, 1, RIG_CUSTOMERS);
		orders_of[order.c]++;
		n_in_place += order.c == o;
		check_order(rig, o, &order);
	}
	for (uint32_t c = 1; c <= RIG_CUSTOMERS; c++)
		assert_int_equal(orders_of[c], 1);
	assert_true(n_in_place < RIG_CUSTOMERS / 2);
}

/* What is drawn is within the rules, for every kind. */
static void test_drawn_transactions(void **state)
{
	struct tpcc_rig *rig = *state;
	uint32_t n_remote_lines = 0, n_lines = 0, n_unused = 0, n_remote = 0, n_named = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		struct tpcc_txn txn = { .w = 2, .d = 4 };

		tpcc_new_order_ops.draw(rig->tw, &txn);
		assert_in_range(txn.new_order.n_lines, 5, 15);
		assert_in_range(txn.who.c, 1, RIG_CUSTOMERS);
		n_unused += txn.new_order.has_unused_item;
		for (uint32_t n = 0; n < txn.new_order.n_lines; n++) {
			const struct tpcc_order_line *line = &txn.new_order.lines[n];

			assert_in_range(line->item, 1, RIG_ITEMS + txn.new_order.has_unused_item);
			assert_in_range(line->quantity, 1, 10);
			assert_in_range(line->supply_w, 1, RIG_WAREHOUSES);
			n_lines++;
			n_remote_lines += line->supply_w != 2;
		}
		tpcc_payment_ops.draw(rig->tw, &txn);
		assert_in_range(txn.amount, 100, 500000);
		assert_in_range(txn.who.d, 1, TPCC_DISTRICTS);
		n_remote += txn.who.w != 2;
		n_named += !txn.who.c;
	}
	/* The seed is fixed. 1% of the lines, 1% of the orders, 15% and 60% of the payments. */
	assert_in_range(n_remote_lines * 1000 / n_lines, 8, 12);
	assert_in_range(n_unused, 150, 250);
	assert_in_range(n_remote, 2800, 3200);
	assert_in_range(n_named, 11700, 12300);
}

int main(void)
{
#define WITH_RIG(test) \
	cmocka_unit_test_setup_teardown(test, tpcc_rig_setup, tpcc_rig_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_values),
		cmocka_unit_test(test_nurand_is_skewed),
		cmocka_unit_test(test_mix_is_parsed),
		cmocka_unit_test(test_config_is_checked),
		WITH_RIG(test_row_counts),
		WITH_RIG(test_load_does_not_depend_on_threads),
		WITH_RIG(test_loaded_items_and_stock),
		WITH_RIG(test_loaded_customers),
		WITH_RIG(test_loaded_orders),
		WITH_RIG(test_drawn_transactions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
