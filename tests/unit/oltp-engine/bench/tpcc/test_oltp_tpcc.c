// SPDX-License-Identifier: GPL-2.0-or-later
/* The TPC-C-like workload: what each transaction does to the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tpcc_rig.h"

/* Items 1 to 5, of which the last comes from the other warehouse. */
static struct tpcc_txn new_order_txn(void)
{
	struct tpcc_txn txn = {
		.kind = TPCC_NEW_ORDER,
		.w = 1,
		.d = 3,
		.date = 1234567,
		.who = { .w = 1, .d = 3, .c = 17 },
		.new_order = { .n_lines = 5 },
	};

	for (uint32_t i = 0; i < 5; i++)
		txn.new_order.lines[i] = (struct tpcc_order_line){ i + 1, 1, (uint8_t)(i + 2) };
	txn.new_order.lines[4].supply_w = 2;
	return txn;
}

static void get_stocks(struct tpcc_rig *rig, const struct tpcc_txn *txn, struct tpcc_stock *stocks)
{
	for (uint32_t i = 0; i < 5; i++) {
		const struct tpcc_order_line *line = &txn->new_order.lines[i];

		assert_true(tpcc_rig_get(rig, TPCC_STOCK,
					 tpcc_stock_key(line->supply_w, line->item), &stocks[i],
					 sizeof(stocks[i])));
	}
}

static void test_new_order(void **state)
{
	uint64_t key = tpcc_order_key(1, 3, RIG_CUSTOMERS + 1);
	struct tpcc_txn txn = new_order_txn();
	struct tpcc_stock before[5], after[5];
	struct tpcc_rig *rig = *state;
	struct tpcc_district district;
	struct tpcc_new_order new_order;
	struct tpcc_order order;
	const int32_t little = 13, enough = 14;

	/* Four are wanted of item 3, five of item 4: one would leave less than ten. */
	tpcc_rig_put(rig, TPCC_STOCK, tpcc_stock_key(1, 3), offsetof(struct tpcc_stock, quantity),
		     &little, sizeof(little));
	tpcc_rig_put(rig, TPCC_STOCK, tpcc_stock_key(1, 1), offsetof(struct tpcc_stock, quantity),
		     &enough, sizeof(enough));
	get_stocks(rig, &txn, before);
	assert_int_equal(tpcc_rig_run(rig, &tpcc_new_order_ops, &txn), OLTP_OK);
	get_stocks(rig, &txn, after);
	assert_int_equal(after[2].quantity, 13 - 4 + 91);
	assert_int_equal(after[0].quantity, 14 - 2);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(after[i].ytd, before[i].ytd + i + 2);
		assert_int_equal(after[i].orders, before[i].orders + 1);
		assert_int_equal(after[i].remotes, before[i].remotes + (i == 4));
		assert_in_range(after[i].quantity, 10, 100);
	}
	assert_true(tpcc_rig_get(rig, TPCC_DISTRICT, tpcc_district_key(1, 3), &district,
				 sizeof(district)));
	assert_int_equal(district.next_o_id, RIG_CUSTOMERS + 2);
	assert_true(tpcc_rig_get(rig, TPCC_ORDER, key, &order, sizeof(order)));
	assert_int_equal(order.c, 17);
	assert_int_equal(order.entry_date, 1234567);
	assert_int_equal(order.carrier, 0);
	assert_int_equal(order.lines, 5);
	assert_int_equal(order.all_local, 0);
	assert_true(tpcc_rig_get(rig, TPCC_NEW_ORDER_ROW, key, &new_order, sizeof(new_order)));
	for (uint32_t i = 0; i < 5; i++) {
		struct tpcc_item item;
		struct tpcc_line line;

		assert_true(tpcc_rig_get(rig, TPCC_ITEM, i + 1, &item, sizeof(item)));
		assert_true(tpcc_rig_get(rig, TPCC_LINE, tpcc_line_key(key, i + 1), &line,
					 sizeof(line)));
		assert_int_equal(line.item, i + 1);
		assert_int_equal(line.supply_w, i == 4 ? 2 : 1);
		assert_int_equal(line.quantity, i + 2);
		assert_int_equal(line.amount, (i + 2) * item.price);
		assert_int_equal(line.delivery_date, 0);
		assert_memory_equal(line.dist_info, before[i].dist[2], 24);
	}
	assert_int_equal(tpcc_rig_count(rig, TPCC_LINE) > 0, 1);
}

/* The same item twice: its stock goes down twice. */
static void test_new_order_with_an_item_twice(void **state)
{
	struct tpcc_txn txn = new_order_txn();
	struct tpcc_stock before[5], after[5];
	struct tpcc_rig *rig = *state;

	txn.new_order.lines[1].item = 1;
	get_stocks(rig, &txn, before);
	assert_int_equal(tpcc_rig_run(rig, &tpcc_new_order_ops, &txn), OLTP_OK);
	get_stocks(rig, &txn, after);
	assert_int_equal(after[0].ytd, before[0].ytd + 2 + 3);
	assert_int_equal(after[0].orders, before[0].orders + 2);
}

/* All is done, then found out that the last item does not exist: nothing stays behind. */
static void test_rollback_leaves_nothing(void **state)
{
	struct tpcc_txn txn = new_order_txn();
	struct tpcc_rig *rig = *state;
	uint64_t content;

	txn.new_order.has_unused_item = true;
	txn.new_order.lines[4].item = RIG_ITEMS + 1;
	content = tpcc_rig_content(rig);
	for (uint32_t i = 0; i < 50; i++) {
		txn.d = txn.who.d = (uint8_t)(i % TPCC_DISTRICTS + 1);
		assert_int_equal(tpcc_rig_run(rig, &tpcc_new_order_ops, &txn), OLTP_NOT_FOUND);
	}
	assert_int_equal(tpcc_rig_content(rig), content);
	/* Were it committed, it would be seen. */
	txn.new_order.has_unused_item = false;
	txn.new_order.lines[4].item = RIG_ITEMS;
	assert_int_equal(tpcc_rig_run(rig, &tpcc_new_order_ops, &txn), OLTP_OK);
	assert_int_not_equal(tpcc_rig_content(rig), content);
}

static void get_payment_rows(struct tpcc_rig *rig, const struct tpcc_txn *txn, uint64_t key,
			     struct tpcc_warehouse *warehouse, struct tpcc_district *district,
			     struct tpcc_customer *customer)
{
	assert_true(tpcc_rig_get(rig, TPCC_WAREHOUSE, txn->w, warehouse, sizeof(*warehouse)));
	assert_true(tpcc_rig_get(rig, TPCC_DISTRICT, tpcc_district_key(txn->w, txn->d), district,
				 sizeof(*district)));
	assert_true(tpcc_rig_get(rig, TPCC_CUSTOMER, key, customer, sizeof(*customer)));
}

static void check_payment(struct tpcc_rig *rig, const struct tpcc_txn *txn, uint64_t key,
			  bool is_bad)
{
	struct tpcc_warehouse warehouse, warehouse_after;
	struct tpcc_district district, district_after;
	struct tpcc_customer customer, after;
	struct tpcc_history history;
	char data[25] = { 0 };

	tpcc_rig_put(rig, TPCC_CUSTOMER, key, offsetof(struct tpcc_customer, credit),
		     is_bad ? "BC" : "GC", 2);
	get_payment_rows(rig, txn, key, &warehouse, &district, &customer);
	assert_int_equal(tpcc_rig_run(rig, &tpcc_payment_ops, txn), OLTP_OK);
	get_payment_rows(rig, txn, key, &warehouse_after, &district_after, &after);
	assert_int_equal(warehouse_after.ytd, warehouse.ytd + txn->amount);
	assert_int_equal(district_after.ytd, district.ytd + txn->amount);
	assert_int_equal(after.balance, customer.balance - txn->amount);
	assert_int_equal(after.ytd_payment, customer.ytd_payment + txn->amount);
	assert_int_equal(after.payments, customer.payments + 1);
	assert_true(tpcc_rig_get(rig, TPCC_HISTORY, tpcc_history_key(key, after.payments), &history,
				 sizeof(history)));
	assert_int_equal(history.amount, txn->amount);
	assert_int_equal(history.date, txn->date);
	assert_int_equal(tpcc_customer_key(history.c_w, history.c_d, history.c), key);
	assert_int_equal(history.w, txn->w);
	assert_int_equal(history.d, txn->d);
	memcpy(data, warehouse.name, 10);
	memcpy(data + 10, "    ", 4);
	memcpy(data + 14, district.name, 10);
	assert_memory_equal(history.data, data, 24);
	if (is_bad) {
		assert_memory_equal(after.data, "5 7 2 4 1 1234.05 ", 18);
		assert_memory_equal(after.data + 18, customer.data, 500 - 18);
	} else {
		assert_memory_equal(after.data, customer.data, 500);
	}
}

static void test_payment(void **state)
{
	const struct tpcc_txn txn = {
		.kind = TPCC_PAYMENT, .w = 1, .d = 4, .date = 77,
		.who = { .w = 2, .d = 7, .c = 5 },
		.amount = 123405,
	};
	struct tpcc_rig *rig = *state;

	check_payment(rig, &txn, tpcc_customer_key(2, 7, 5), false);
	check_payment(rig, &txn, tpcc_customer_key(2, 7, 5), true);
}

/* Customers of the same name and another first name each; the one in the middle is meant. */
static void add_namesakes(struct tpcc_rig *rig, uint32_t n)
{
	static const char *const firsts[] = { "Carlotta", "Carla", "Zoe", "Berta", "Carlos" };

	for (uint32_t i = 0; i < n; i++) {
		uint64_t key = tpcc_customer_key(1, 2, RIG_CUSTOMERS + 1 + i);
		struct tpcc_customer customer = { .credit = { 'G', 'C' } };

		memcpy(customer.last, "OUGHTOUGHTOUGHT", 15);
		memcpy(customer.first, firsts[i], strlen(firsts[i]));
		assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
		assert_int_equal(oltp_txn_insert(rig->worker, rig->tpcc->tables[TPCC_CUSTOMER],
						 key, &customer), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
	}
}

static uint64_t find_by_name(struct tpcc_rig *rig, const struct tpcc_who *who)
{
	uint64_t key;

	assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
	assert_int_equal(tpcc_who_find(rig->tw, who, &key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
	return key;
}

static void test_customer_by_name(void **state)
{
	const struct tpcc_who who = { .w = 1, .d = 2, .name = 111 };
	struct tpcc_who known = { .w = 2, .d = 9 };
	struct tpcc_rig *rig = *state;
	uint64_t key;

	/* To begin with each has a name of its own. */
	for (uint32_t c = 1; c <= RIG_CUSTOMERS; c++) {
		known.name = (uint16_t)(c - 1);
		assert_int_equal(find_by_name(rig, &known), tpcc_customer_key(2, 9, c));
	}
	assert_int_equal(oltp_txn_begin(rig->worker), OLTP_OK);
	assert_int_equal(tpcc_who_find(rig->tw, &who, &key), OLTP_NOT_FOUND);
	assert_int_equal(oltp_txn_commit(rig->worker), OLTP_OK);
	add_namesakes(rig, 5);
	/* Berta, Carla, Carlos, Carlotta, Zoe. */
	assert_int_equal(find_by_name(rig, &who), tpcc_customer_key(1, 2, RIG_CUSTOMERS + 5));
	tpcc_rig_delete(rig, TPCC_CUSTOMER, tpcc_customer_key(1, 2, RIG_CUSTOMERS + 3));
	/* Of four the second: Carla. */
	assert_int_equal(find_by_name(rig, &who), tpcc_customer_key(1, 2, RIG_CUSTOMERS + 2));
}

static void test_payment_by_name(void **state)
{
	const struct tpcc_txn txn = {
		.kind = TPCC_PAYMENT, .w = 1, .d = 4, .date = 77,
		.who = { .w = 2, .d = 7, .name = 4 },
		.amount = 123405,
	};

	check_payment(*state, &txn, tpcc_customer_key(2, 7, 5), true);
}

static uint64_t lines_shown(struct tpcc_rig *rig, uint64_t order_key)
{
	uint64_t sum = 0;
	struct tpcc_line line;

	for (uint32_t n = 1; n <= TPCC_LINES_MAX; n++) {
		if (tpcc_rig_get(rig, TPCC_LINE, tpcc_line_key(order_key, n), &line, sizeof(line)))
			sum += line.item + line.supply_w + line.quantity + line.amount +
			       (uint64_t)line.delivery_date;
	}
	return sum;
}

/* The latest order is shown, also of a customer with several. */
static void test_order_status(void **state)
{
	const struct tpcc_txn status = { .kind = TPCC_ORDER_STATUS, .w = 1, .d = 3,
					 .who = { .w = 1, .d = 3, .name = 16 } };
	struct tpcc_txn order = new_order_txn();
	struct tpcc_rig *rig = *state;
	struct tpcc_customer customer;

	for (uint32_t i = 1; i <= 3; i++) {
		uint64_t key = tpcc_order_key(1, 3, RIG_CUSTOMERS + i), before;

		order.new_order.lines[0].quantity++;
		assert_int_equal(tpcc_rig_run(rig, &tpcc_new_order_ops, &order), OLTP_OK);
		assert_true(tpcc_rig_get(rig, TPCC_CUSTOMER, tpcc_customer_key(1, 3, 17), &customer,
					 sizeof(customer)));
		before = rig->tw->shown;
		assert_int_equal(tpcc_rig_run(rig, &tpcc_order_status_ops, &status), OLTP_OK);
		assert_int_equal(rig->tw->shown - before,
				 (uint64_t)customer.balance + lines_shown(rig, key));
	}
}

static void test_delivery(void **state)
{
	const struct tpcc_txn txn = { .kind = TPCC_DELIVERY, .w = 2, .d = 1, .date = 99,
				      .carrier = 8 };
	uint64_t n_new = tpcc_rig_count(*state, TPCC_NEW_ORDER_ROW);
	struct tpcc_customer before[TPCC_DISTRICTS + 1];
	struct tpcc_order order;
	struct tpcc_rig *rig = *state;

	for (uint32_t d = 1; d <= TPCC_DISTRICTS; d++) {
		uint64_t key = tpcc_order_key(2, d, RIG_DELIVERED + 1);

		assert_true(tpcc_rig_get(rig, TPCC_ORDER, key, &order, sizeof(order)));
		assert_true(tpcc_rig_get(rig, TPCC_CUSTOMER, tpcc_customer_key(2, d, order.c),
					 &before[d], sizeof(before[d])));
	}
	assert_int_equal(tpcc_rig_run(rig, &tpcc_delivery_ops, &txn), OLTP_OK);
	assert_int_equal(tpcc_rig_count(rig, TPCC_NEW_ORDER_ROW), n_new - TPCC_DISTRICTS);
	for (uint32_t d = 1; d <= TPCC_DISTRICTS; d++) {
		uint64_t key = tpcc_order_key(2, d, RIG_DELIVERED + 1);
		struct tpcc_customer after;
		struct tpcc_line line;
		int64_t sum = 0;

		assert_false(tpcc_rig_get(rig, TPCC_NEW_ORDER_ROW, key, &line, 1));
		assert_true(tpcc_rig_get(rig, TPCC_ORDER, key, &order, sizeof(order)));
		assert_int_equal(order.carrier, 8);
		for (uint32_t n = 1; n <= order.lines; n++) {
			assert_true(tpcc_rig_get(rig, TPCC_LINE, tpcc_line_key(key, n), &line,
						 sizeof(line)));
			assert_int_equal(line.delivery_date, 99);
			sum += line.amount;
		}
		assert_true(tpcc_rig_get(rig, TPCC_CUSTOMER, tpcc_customer_key(2, d, order.c),
					 &after, sizeof(after)));
		assert_int_equal(after.balance, before[d].balance + sum);
		assert_int_equal(after.deliveries, before[d].deliveries + 1);
	}
}

/* Until nothing is left, and then some. */
static void test_delivery_of_nothing(void **state)
{
	const struct tpcc_txn txn = { .kind = TPCC_DELIVERY, .w = 2, .d = 1, .date = 99,
				      .carrier = 8 };
	uint64_t n_new = tpcc_rig_count(*state, TPCC_NEW_ORDER_ROW), content;
	uint32_t of_district = RIG_CUSTOMERS - RIG_DELIVERED;
	struct tpcc_rig *rig = *state;

	for (uint32_t i = 0; i < of_district; i++)
		assert_int_equal(tpcc_rig_run(rig, &tpcc_delivery_ops, &txn), OLTP_OK);
	assert_int_equal(tpcc_rig_count(rig, TPCC_NEW_ORDER_ROW),
			 n_new - of_district * TPCC_DISTRICTS);
	content = tpcc_rig_content(rig);
	assert_int_equal(tpcc_rig_run(rig, &tpcc_delivery_ops, &txn), OLTP_OK);
	assert_int_equal(tpcc_rig_content(rig), content);
}

static void test_stock_level(void **state)
{
	struct tpcc_txn txn = { .kind = TPCC_STOCK_LEVEL, .w = 2, .d = 6 };
	bool is_among[RIG_ITEMS + 1] = { false };
	struct tpcc_rig *rig = *state;

	for (uint32_t o = RIG_CUSTOMERS - 19; o <= RIG_CUSTOMERS; o++) {
		uint64_t key = tpcc_order_key(2, 6, o);
		struct tpcc_line line;

		for (uint32_t n = 1; tpcc_rig_get(rig, TPCC_LINE, tpcc_line_key(key, n), &line,
						  sizeof(line)); n++)
			is_among[line.item] = true;
	}
	for (txn.threshold = 10; txn.threshold <= 60; txn.threshold += 5) {
		uint64_t n_low = 0, before = rig->tw->shown;

		for (uint32_t i = 1; i <= RIG_ITEMS; i++) {
			struct tpcc_stock stock;

			assert_true(tpcc_rig_get(rig, TPCC_STOCK, tpcc_stock_key(2, i), &stock,
						 sizeof(stock)));
			n_low += is_among[i] && stock.quantity < txn.threshold;
		}
		assert_int_equal(tpcc_rig_run(rig, &tpcc_stock_level_ops, &txn), OLTP_OK);
		assert_int_equal(rig->tw->shown - before, n_low);
	}
}

int main(void)
{
#define WITH_RIG(test) \
	cmocka_unit_test_setup_teardown(test, tpcc_rig_setup, tpcc_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_new_order),
		WITH_RIG(test_new_order_with_an_item_twice),
		WITH_RIG(test_rollback_leaves_nothing),
		WITH_RIG(test_payment),
		WITH_RIG(test_customer_by_name),
		WITH_RIG(test_payment_by_name),
		WITH_RIG(test_order_status),
		WITH_RIG(test_delivery),
		WITH_RIG(test_delivery_of_nothing),
		WITH_RIG(test_stock_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
