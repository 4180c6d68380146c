// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * New-Order (section 2.4 of the specification). Stock comes before the district, whose lock every
 * other new order of the district wants, and the warehouse, which every payment wants, comes last.
 *
 * If an item does not exist, the order is rolled back (2.4.2.3): nothing has been changed then, as
 * all stock is looked up first.
 */
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"

#define RATE_ONE	10000u	/* rates are in 1/10000 */

struct wanted {
	uint32_t item, supply_w, quantity;
};

struct new_order {
	uint32_t w, d, customer, n;
	const struct wanted *wanted;
	struct tpcc_row stocks[TPCC_LINES_MAX];
	struct tpcc_line lines[TPCC_LINES_MAX];
	uint64_t total;
	bool all_local;
};

static enum oltp_rc open_stocks(struct call *c, struct new_order *order, bool *ret_has_all)
{
	enum oltp_rc rc = OLTP_OK;

	*ret_has_all = true;
	for (uint32_t i = 0; i < order->n; i++) {
		const struct wanted *wanted = &order->wanted[i];

		tpcc_name(&order->stocks[i], "tpcc:s:%u:%u", wanted->supply_w, wanted->item);
		rc = call_need(c, &order->stocks[i].name) ?: rc;
	}
	rc = tpcc_need(c, "tpcc:d:%u:%u", order->w, order->d) ?: rc;
	rc = tpcc_need(c, "tpcc:c:%u:%u:%u", order->w, order->d, order->customer) ?: rc;
	rc = tpcc_need(c, "tpcc:w:%u", order->w) ?: rc;
	for (uint32_t i = 0; !rc && i < order->n; i++) {
		rc = tpcc_open(c, &order->stocks[i], true);
		*ret_has_all &= order->stocks[i].hash.head.id != 0;
	}
	return rc;
}

static enum oltp_rc take_stock(struct call *c, struct new_order *order, uint32_t i)
{
	const struct wanted *wanted = &order->wanted[i];
	struct tpcc_row *row = &order->stocks[i];
	struct tpcc_line *line = &order->lines[i];
	struct tpcc_stock stock;
	struct tpcc_goods goods;
	enum oltp_rc rc;

	rc = tpcc_get(c, row, "a", &stock, sizeof(stock)) ?:
	     tpcc_get(c, row, "x", &goods, sizeof(goods));
	if (rc)
		return rc;
	stock.quantity -= (int32_t)wanted->quantity;
	if (stock.quantity < 10)
		stock.quantity += 91;
	stock.ytd += wanted->quantity;
	stock.orders++;
	stock.remotes += wanted->supply_w != order->w;
	*line = (struct tpcc_line){
		.item = wanted->item,
		.amount = wanted->quantity * goods.price,
		.supply_w = (uint16_t)wanted->supply_w,
		.quantity = (uint8_t)wanted->quantity,
	};
	memcpy(line->dist_info, goods.dist[order->d - 1], sizeof(line->dist_info));
	order->total += line->amount;
	return tpcc_put(c, row, "a", &stock, sizeof(stock)) ?: hash_close(c, &row->hash);
}

static enum oltp_rc take_number(struct call *c, const struct new_order *order, uint32_t *ret_o,
				uint32_t *ret_tax)
{
	struct tpcc_district district;
	struct tpcc_row row;
	char field[16];
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:d:%u:%u", order->w, order->d);
	rc = tpcc_must_open(c, &row, true) ?:
	     tpcc_get(c, &row, "a", &district, sizeof(district));
	if (rc)
		return rc;
	*ret_o = district.next_o++;
	*ret_tax = district.tax;
	snprintf(field, sizeof(field), "n%u", *ret_o);
	return tpcc_put(c, &row, "a", &district, sizeof(district)) ?:
	       tpcc_put(c, &row, field, ret_o, sizeof(*ret_o)) ?: hash_close(c, &row.hash);
}

static enum oltp_rc add_order(struct call *c, const struct new_order *order, uint32_t o)
{
	const struct tpcc_order head = {
		.entry_date = tpcc_now(),
		.c = order->customer,
		.lines = (uint8_t)order->n,
		.all_local = order->all_local,
	};
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:o:%u:%u:%u", order->w, order->d, o);
	rc = call_need(c, &row.name) ?: hash_make(c, &row.name, &row.hash);
	if (!rc && row.hash.head.n_fields)
		rc = tpcc_bad_row(c, &row);
	if (!rc)
		rc = tpcc_put(c, &row, "a", &head, sizeof(head));
	for (uint32_t i = 0; !rc && i < order->n; i++) {
		char field[16];

		snprintf(field, sizeof(field), "%u", i + 1);
		rc = tpcc_put(c, &row, field, &order->lines[i], sizeof(order->lines[i]));
	}
	return rc ?: hash_close(c, &row.hash);
}

static enum oltp_rc note_customer(struct call *c, const struct new_order *order, uint32_t o,
				  uint32_t *ret_discount)
{
	struct tpcc_customer customer;
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:c:%u:%u:%u", order->w, order->d, order->customer);
	rc = tpcc_must_open(c, &row, true) ?:
	     tpcc_get(c, &row, "a", &customer, sizeof(customer));
	if (rc)
		return rc;
	*ret_discount = customer.discount;
	customer.last_o = o;
	return tpcc_put(c, &row, "a", &customer, sizeof(customer)) ?: hash_close(c, &row.hash);
}

static enum oltp_rc read_tax(struct call *c, uint32_t w, uint32_t *ret_tax)
{
	struct tpcc_warehouse warehouse;
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:w:%u", w);
	rc = tpcc_must_open(c, &row, false) ?:
	     tpcc_get(c, &row, "a", &warehouse, sizeof(warehouse));
	if (!rc)
		*ret_tax = warehouse.tax;
	return rc;
}

static enum oltp_rc run(struct call *c, struct new_order *order)
{
	uint32_t o = 0, district_tax = 0, tax = 0, discount = 0;
	bool has_all = false;
	enum oltp_rc rc = open_stocks(c, order, &has_all);

	if (!rc && !has_all) {
		resp_out_null(c->out);
		return OLTP_OK;
	}
	for (uint32_t i = 0; !rc && i < order->n; i++)
		rc = take_stock(c, order, i);
	rc = rc ?: take_number(c, order, &o, &district_tax);
	rc = rc ?: add_order(c, order, o);
	rc = rc ?: note_customer(c, order, o, &discount);
	rc = rc ?: read_tax(c, order->w, &tax);
	if (rc)
		return rc;
	resp_out_array(c->out, 2);
	resp_out_integer(c->out, o);
	resp_out_integer(c->out, (int64_t)(order->total * (RATE_ONE - discount) / RATE_ONE *
					   (RATE_ONE + tax + district_tax) / RATE_ONE));
	return OLTP_OK;
}

enum oltp_rc tpcc_new_order(struct call *c, uint32_t n_keys)
{
	uint32_t numbers[3 + 3 * TPCC_LINES_MAX], n;
	struct wanted wanted[TPCC_LINES_MAX];
	struct new_order order = { .wanted = wanted, .all_local = true };
	enum oltp_rc rc = tpcc_numbers(c, n_keys, 3 + 3, 3 + 3 * TPCC_LINES_MAX, numbers, &n);

	if (!rc && n % 3)
		rc = answer_error(c, "ERR tpcc: a line is item, warehouse and quantity");
	if (!rc)
		rc = tpcc_check_district(c, numbers[0], numbers[1]);
	if (rc)
		return rc;
	order.w = numbers[0];
	order.d = numbers[1];
	order.customer = numbers[2];
	order.n = (n - 3) / 3;
	for (uint32_t i = 0; i < order.n; i++) {
		wanted[i] = (struct wanted){ numbers[3 + 3 * i], numbers[4 + 3 * i],
					     numbers[5 + 3 * i] };
		order.all_local &= wanted[i].supply_w == order.w;
		if (!wanted[i].quantity || wanted[i].quantity > 10 ||
		    wanted[i].supply_w > TPCC_WAREHOUSES_MAX)
			return answer_error(c, "ERR tpcc: no such quantity or warehouse");
	}
	return run(c, &order);
}
