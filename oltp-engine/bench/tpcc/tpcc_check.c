// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consistency conditions of section 3.3.2 of the TPC-C specification, over scans of the tables:
 * what is in them is first added up by warehouse, district, order and customer, then compared. Rows
 * of a warehouse or district that does not exist count against a condition of their table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tpcc_private.h"

struct order_sum {
	uint16_t c;
	uint8_t wanted_lines, lines, delivered_lines;
	bool is_there, is_new, has_carrier;
};

struct customer_sum {
	bool is_there;
	int64_t balance, ytd_payment;
	int64_t lines, payments;	/* delivered; both with what was archived */
};

struct district_sum {
	bool is_there;
	int64_t ytd, payments;
	uint32_t next_o;
	uint32_t min_o, max_o;		/* max 0: there is none */
	uint32_t min_new, max_new;
	uint64_t n_new, n_lines, wanted_lines;
	struct order_sum *orders;	/* from min_o up to next_o - 1 */
	struct customer_sum *customers;	/* from 1 */
};

struct warehouse_sum {
	bool is_there;
	int64_t ytd, payments, districts_ytd;
};

struct check {
	struct tpcc *tpcc;
	struct tpcc_verdict *verdict;
	struct tpcc_totals totals;
	struct warehouse_sum *warehouses;	/* from 1 */
	struct district_sum *districts;
	uint64_t n_items, n_stock;
};

/* NULL: there is no such one. */
static struct district_sum *district_of(struct check *check, uint64_t district_key)
{
	uint64_t w = district_key >> 4, d = district_key & 0xf;

	if (!w || w > check->tpcc->config.warehouses || !d || d > TPCC_DISTRICTS)
		return NULL;
	return &check->districts[(w - 1) * TPCC_DISTRICTS + d - 1];
}

static struct customer_sum *customer_of(struct check *check, uint64_t customer_key)
{
	struct district_sum *district = district_of(check, customer_key >> 12);
	uint32_t c = customer_key & 0xfff;

	if (!district || !c || c > check->tpcc->config.customers)
		return NULL;
	return &district->customers[c];
}

static struct order_sum *order_of(struct check *check, uint64_t order_key)
{
	struct district_sum *district = district_of(check, order_key >> 32);
	uint32_t o = (uint32_t)order_key;

	if (!district || !district->orders || o < district->min_o || o >= district->next_o)
		return NULL;
	return &district->orders[o - district->min_o];
}

static int on_warehouse(void *ctx, uint64_t key, const void *record)
{
	const struct tpcc_warehouse *row = record;
	struct check *check = ctx;

	if (!key || key > check->tpcc->config.warehouses) {
		check->verdict->violations[1]++;
		return 0;
	}
	check->warehouses[key].is_there = true;
	check->warehouses[key].ytd = row->ytd;
	return 0;
}

static int on_district(void *ctx, uint64_t key, const void *record)
{
	const struct tpcc_district *row = record;
	struct check *check = ctx;
	struct district_sum *district = district_of(check, key);

	if (!district) {
		check->verdict->violations[2]++;
		return 0;
	}
	district->is_there = true;
	district->ytd = row->ytd;
	district->next_o = row->next_o_id;
	district->payments = row->archived_payments;
	check->warehouses[tpcc_w_of(key)].districts_ytd += row->ytd;
	check->warehouses[tpcc_w_of(key)].payments += row->archived_payments;
	check->totals.orders += row->next_o_id - 1;
	return 0;
}

static int on_customer(void *ctx, uint64_t key, const void *record)
{
	const struct tpcc_customer *row = record;
	struct check *check = ctx;
	struct customer_sum *customer = customer_of(check, key);

	if (!customer) {
		check->verdict->violations[10]++;
		return 0;
	}
	customer->is_there = true;
	customer->balance = row->balance;
	customer->ytd_payment = row->ytd_payment;
	customer->lines += row->archived_lines;
	customer->payments += row->archived_payments;
	check->totals.payments += row->payments;
	check->totals.deliveries += row->deliveries;
	return 0;
}

static int on_history(void *ctx, uint64_t key, const void *record)
{
	const struct tpcc_history *row = record;
	struct check *check = ctx;
	struct district_sum *district = district_of(check, tpcc_district_key(row->w, row->d));
	struct customer_sum *customer = customer_of(check, tpcc_customer_key(row->c_w, row->c_d,
									     row->c));

	if (!district || !customer || tpcc_customer_key(row->c_w, row->c_d, row->c) != key >> 32) {
		check->verdict->violations[9]++;
		return 0;
	}
	district->payments += row->amount;
	check->warehouses[row->w].payments += row->amount;
	customer->payments += row->amount;
	return 0;
}

/* First turn: which orders there are. */
static int on_order_range(void *ctx, uint64_t key, const void *record)
{
	struct check *check = ctx;
	struct district_sum *district = district_of(check, key >> 32);
	uint32_t o = (uint32_t)key;

	(void)record;
	if (!district) {
		check->verdict->violations[2]++;
		return 0;
	}
	if (!district->max_o || o < district->min_o)
		district->min_o = o;
	if (o > district->max_o)
		district->max_o = o;
	return 0;
}

static int on_order(void *ctx, uint64_t key, const void *record)
{
	const struct tpcc_order *row = record;
	struct check *check = ctx;
	struct district_sum *district = district_of(check, key >> 32);
	struct order_sum *order = order_of(check, key);

	if (district)
		district->wanted_lines += row->lines;
	if (!order)
		return 0;
	order->is_there = true;
	order->c = row->c;
	order->wanted_lines = row->lines;
	order->has_carrier = row->carrier;
	return 0;
}

static int on_new_order(void *ctx, uint64_t key, const void *record)
{
	struct check *check = ctx;
	struct district_sum *district = district_of(check, key >> 32);
	struct order_sum *order = order_of(check, key);
	uint32_t o = (uint32_t)key;

	(void)record;
	if (district) {
		if (!district->n_new || o < district->min_new)
			district->min_new = o;
		if (o > district->max_new)
			district->max_new = o;
		district->n_new++;
	}
	if (order)
		order->is_new = true;
	if (!order || !order->is_there)
		check->verdict->violations[5]++;
	return 0;
}

static int on_line(void *ctx, uint64_t key, const void *record)
{
	const struct tpcc_line *row = record;
	struct check *check = ctx;
	struct district_sum *district = district_of(check, key >> 36);
	struct order_sum *order = order_of(check, key >> 4);
	struct customer_sum *customer;

	if (district)
		district->n_lines++;
	if (!order || !order->is_there) {
		check->verdict->violations[6]++;
		return 0;
	}
	order->lines++;
	order->delivered_lines += row->delivery_date != 0;
	customer = customer_of(check, key >> 36 << 12 | order->c);
	if (customer && row->delivery_date)
		customer->lines += row->amount;
	return 0;
}

static int on_item(void *ctx, uint64_t key, const void *record)
{
	(void)key;
	(void)record;
	((struct check *)ctx)->n_items++;
	return 0;
}

static int on_stock(void *ctx, uint64_t key, const void *record)
{
	(void)key;
	(void)record;
	((struct check *)ctx)->n_stock++;
	return 0;
}

static uint32_t n_districts(const struct check *check)
{
	return check->tpcc->config.warehouses * TPCC_DISTRICTS;
}

static int alloc_orders(struct check *check)
{
	for (uint32_t i = 0; i < n_districts(check); i++) {
		struct district_sum *district = &check->districts[i];

		if (!district->max_o || district->next_o <= district->min_o)
			continue;
		district->orders = calloc(district->next_o - district->min_o,
					  sizeof(*district->orders));
		if (!district->orders)
			return -ENOMEM;
	}
	return 0;
}

static int check_open(struct check *check)
{
	check->warehouses = calloc(check->tpcc->config.warehouses + 1ul,
				   sizeof(*check->warehouses));
	check->districts = calloc(n_districts(check), sizeof(*check->districts));
	if (!check->warehouses || !check->districts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_districts(check); i++) {
		check->districts[i].customers = calloc(check->tpcc->config.customers + 1ul,
						       sizeof(struct customer_sum));
		if (!check->districts[i].customers)
			return -ENOMEM;
	}
	return 0;
}

static void check_close(struct check *check)
{
	for (uint32_t i = 0; check->districts && i < n_districts(check); i++) {
		free(check->districts[i].orders);
		free(check->districts[i].customers);
	}
	free(check->districts);
	free(check->warehouses);
}

static int read_tables(struct check *check)
{
	struct oltp_table **tables = check->tpcc->tables;

	return oltp_table_scan(tables[TPCC_WAREHOUSE], on_warehouse, check) ?:
	       oltp_table_scan(tables[TPCC_DISTRICT], on_district, check) ?:
	       oltp_table_scan(tables[TPCC_ORDER], on_order_range, check) ?:
	       alloc_orders(check) ?:
	       oltp_table_scan(tables[TPCC_ORDER], on_order, check) ?:
	       oltp_table_scan(tables[TPCC_NEW_ORDER_ROW], on_new_order, check) ?:
	       oltp_table_scan(tables[TPCC_LINE], on_line, check) ?:
	       oltp_table_scan(tables[TPCC_CUSTOMER], on_customer, check) ?:
	       oltp_table_scan(tables[TPCC_HISTORY], on_history, check) ?:
	       oltp_table_scan(tables[TPCC_ITEM], on_item, check) ?:
	       oltp_table_scan(tables[TPCC_STOCK], on_stock, check);
}

static void judge_orders(const struct district_sum *district, uint64_t *violations)
{
	uint32_t n = district->orders ? district->next_o - district->min_o : 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct order_sum *order = &district->orders[i];

		if (!order->is_there)
			continue;
		violations[5] += order->has_carrier == order->is_new;
		violations[6] += order->lines != order->wanted_lines;
		violations[7] += order->delivered_lines != (order->has_carrier ? order->lines : 0);
	}
}

static void judge_district(const struct district_sum *district, uint64_t *violations)
{
	violations[2] += !district->is_there || district->next_o != district->max_o + 1 ||
			 (district->n_new && district->next_o != district->max_new + 1);
	violations[3] += district->n_new &&
			 district->max_new - district->min_new + 1 != district->n_new;
	violations[4] += district->wanted_lines != district->n_lines;
	violations[9] += district->ytd != district->payments;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void judge(struct check *check)
{
	const struct tpcc_config *config = &check->tpcc->config;
	struct tpcc_verdict *verdict = check->verdict;

	for (uint32_t w = 1; w <= config->warehouses; w++) {
		const struct warehouse_sum *warehouse = &check->warehouses[w];

		verdict->violations[1] += !warehouse->is_there ||
					  warehouse->ytd != warehouse->districts_ytd;
		verdict->violations[8] += warehouse->ytd != warehouse->payments;
	}
	for (uint32_t i = 0; i < n_districts(check); i++) {
		judge_district(&check->districts[i], verdict->violations);
		judge_orders(&check->districts[i], verdict->violations);
		for (uint32_t c = 1; c <= config->customers; c++) {
			const struct customer_sum *sum = &check->districts[i].customers[c];

			verdict->violations[10] += !sum->is_there ||
						   sum->balance != sum->lines - sum->payments;
			verdict->violations[12] += sum->balance + sum->ytd_payment != sum->lines;
		}
	}
	/* Apart, or a row too many in one table would make up for one missing in the other. */
	verdict->missing_rows = distance(config->items, check->n_items) +
				distance((uint64_t)config->warehouses * config->items,
					 check->n_stock);
}

static void compare_books(struct check *check)
{
	const struct tpcc_totals *begun = &check->tpcc->begun_with, *now = &check->totals;
	const struct tpcc_books *books = &check->tpcc->books;
	struct tpcc_verdict *verdict = check->verdict;

	verdict->rollbacks = books->rollbacks;
	verdict->lost_orders = distance(now->orders,
					begun->orders + books->commits[TPCC_NEW_ORDER]);
	verdict->lost_payments = distance(now->payments,
					  begun->payments + books->commits[TPCC_PAYMENT]);
	verdict->lost_deliveries = distance(now->deliveries, begun->deliveries + books->deliveries);
}

void tpcc_verify(struct tpcc *tpcc, struct tpcc_verdict *ret_verdict)
{
	struct check check = { .tpcc = tpcc, .verdict = ret_verdict };
	uint64_t n_wrong;

	*ret_verdict = (struct tpcc_verdict){ 0 };
	ret_verdict->scan_rc = check_open(&check) ?: read_tables(&check);
	if (!ret_verdict->scan_rc) {
		judge(&check);
		compare_books(&check);
	}
	check_close(&check);
	n_wrong = ret_verdict->missing_rows + ret_verdict->lost_orders +
		  ret_verdict->lost_payments + ret_verdict->lost_deliveries;
	for (uint32_t i = 0; i <= TPCC_CONDITIONS; i++)
		n_wrong += ret_verdict->violations[i];
	ret_verdict->is_good = !ret_verdict->scan_rc && !n_wrong;
}

int tpcc_totals_read(struct tpcc *tpcc, struct tpcc_totals *ret_totals)
{
	struct tpcc_verdict verdict = { 0 };
	struct check check = { .tpcc = tpcc, .verdict = &verdict };
	int rc;

	rc = check_open(&check) ?:
	     oltp_table_scan(tpcc->tables[TPCC_DISTRICT], on_district, &check) ?:
	     oltp_table_scan(tpcc->tables[TPCC_CUSTOMER], on_customer, &check);
	check_close(&check);
	if (!rc)
		*ret_totals = check.totals;
	return rc;
}
