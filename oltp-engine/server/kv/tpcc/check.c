// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consistency conditions of section 3.3.2 of the specification, for a part of the tables in
 * each call: an array of what is wrong and what the caller has to add up.
 *
 *	warehouse W 0 0 0	violations, W_YTD, sum of D_YTD (1)
 *	district W D 0 0	violations (2, 3), D_NEXT_O_ID, new orders
 *	orders W D FROM N	violations (4 to 7), lines, amount that was delivered
 *	customers W D FROM N	violations (payments), payments, sum of C_BALANCE + C_YTD_PAYMENT:
 *				that of all customers is the amount delivered, C_YTD_PAYMENT, whose
 *				sum is that of all W_YTD, deliveries
 *
 * The caller can check conditions 8, 9, 10 and 12 only as these two sums over all tables: an order
 * does not say where its customer's other orders are, nor a district who has paid there.
 */
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"

#define ROWS_MAX	200u
#define NUMBERS		5u

struct verdict {
	int64_t numbers[NUMBERS];	/* the first one: violations */
};

static void expect(struct verdict *v, bool is_so)
{
	v->numbers[0] += !is_so;
}

static enum oltp_rc has_field(struct call *c, struct tpcc_row *row, uint32_t number, bool *ret_has)
{
	struct resp_arg name;
	struct found found;
	char field[16];
	enum oltp_rc rc;

	name.bytes = field;
	name.n = (uint32_t)snprintf(field, sizeof(field), "n%u", number);
	rc = hash_find(c, &row->hash, &name, false, &found);
	*ret_has = found.row;
	return rc;
}

static enum oltp_rc open_district(struct call *c, uint32_t w, uint32_t d, struct tpcc_row *row,
				  struct tpcc_district *ret)
{
	tpcc_name(row, "tpcc:d:%u:%u", w, d);
	return tpcc_must_open(c, row, false) ?: tpcc_get(c, row, "a", ret, sizeof(*ret));
}

static enum oltp_rc check_warehouse(struct call *c, uint32_t w, struct verdict *v)
{
	struct tpcc_warehouse warehouse;
	struct tpcc_row row;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:w:%u", w);
	rc = tpcc_must_open(c, &row, false) ?:
	     tpcc_get(c, &row, "a", &warehouse, sizeof(warehouse));
	for (uint32_t d = 1; !rc && d <= TPCC_DISTRICTS; d++) {
		struct tpcc_district district;

		rc = open_district(c, w, d, &row, &district);
		if (!rc)
			v->numbers[2] += district.ytd;
	}
	if (rc)
		return rc;
	v->numbers[1] = warehouse.ytd;
	expect(v, v->numbers[1] == v->numbers[2]);
	return OLTP_OK;
}

static enum oltp_rc check_district(struct call *c, uint32_t w, uint32_t d, struct verdict *v)
{
	bool has_first = true, has_last = true, has_next = false;
	struct tpcc_district district;
	struct tpcc_row row, order;
	enum oltp_rc rc = open_district(c, w, d, &row, &district);

	if (rc)
		return rc;
	v->numbers[1] = district.next_o;
	v->numbers[2] = district.next_o - district.next_delivery;
	if (v->numbers[2])
		rc = has_field(c, &row, district.next_delivery, &has_first) ?:
		     has_field(c, &row, district.next_o - 1, &has_last);
	rc = rc ?: has_field(c, &row, district.next_o, &has_next);
	expect(v, has_first && has_last && !has_next);
	/* The two others are a and x. */
	expect(v, (int64_t)row.hash.head.n_fields == 2 + v->numbers[2]);
	for (uint32_t i = 0; !rc && i < 2; i++) {
		tpcc_name(&order, "tpcc:o:%u:%u:%u", w, d, district.next_o - 1 + i);
		rc = tpcc_open(c, &order, false);
		expect(v, (order.hash.head.id != 0) == (i == 0));
	}
	return rc;
}

static enum oltp_rc check_order(struct call *c, uint32_t w, uint32_t d, uint32_t o,
				struct verdict *v)
{
	struct tpcc_row district_row, row;
	struct tpcc_district district;
	struct tpcc_order order;
	bool is_new;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:o:%u:%u:%u", w, d, o);
	rc = open_district(c, w, d, &district_row, &district) ?:
	     has_field(c, &district_row, o, &is_new) ?: tpcc_must_open(c, &row, false) ?:
	     tpcc_get(c, &row, "a", &order, sizeof(order));
	if (rc)
		return rc;
	expect(v, (order.carrier == 0) == is_new && is_new == (o >= district.next_delivery));
	expect(v, row.hash.head.n_fields == 1u + order.lines);
	for (uint32_t i = 1; !rc && i <= order.lines; i++) {
		struct tpcc_line line;
		char field[16];

		snprintf(field, sizeof(field), "%u", i);
		rc = tpcc_get(c, &row, field, &line, sizeof(line));
		if (rc)
			return rc;
		expect(v, (line.delivery_date == 0) == is_new);
		v->numbers[2] += is_new ? 0 : line.amount;
	}
	v->numbers[1] += order.lines;
	return OLTP_OK;
}

static enum oltp_rc check_customer(struct call *c, uint32_t w, uint32_t d, uint32_t number,
				   struct verdict *v)
{
	struct tpcc_customer customer;
	struct tpcc_row row;
	int64_t paid = 0;
	enum oltp_rc rc;

	tpcc_name(&row, "tpcc:c:%u:%u:%u", w, d, number);
	rc = tpcc_must_open(c, &row, false) ?:
	     tpcc_get(c, &row, "a", &customer, sizeof(customer));
	if (rc)
		return rc;
	/* The three others are a, x and t. */
	expect(v, row.hash.head.n_fields == 3u + customer.payments);
	for (uint32_t i = 1; !rc && i <= customer.payments; i++) {
		struct tpcc_history history;
		char field[16];

		snprintf(field, sizeof(field), "h%u", i);
		rc = tpcc_get(c, &row, field, &history, sizeof(history));
		paid += rc ? 0 : history.amount;
	}
	expect(v, paid == customer.ytd_payment);
	v->numbers[1] += customer.payments;
	v->numbers[2] += customer.balance + customer.ytd_payment;
	v->numbers[3] += customer.ytd_payment;
	v->numbers[4] += customer.deliveries;
	return rc;
}

static enum oltp_rc check_rows(struct call *c, const uint32_t *numbers, bool is_orders,
			       struct verdict *v)
{
	enum oltp_rc rc = OLTP_OK;

	if (numbers[3] > ROWS_MAX)
		return answer_error(c, "ERR tpcc: too many rows");
	for (uint32_t i = 0; !rc && i < numbers[3]; i++) {
		uint32_t number = numbers[2] + i;

		rc = is_orders ? check_order(c, numbers[0], numbers[1], number, v) :
				 check_customer(c, numbers[0], numbers[1], number, v);
	}
	return rc;
}

enum oltp_rc tpcc_check(struct call *c, uint32_t n_keys)
{
	const struct resp_arg *part = &c->args[3 + n_keys];
	struct verdict v = { { 0 } };
	uint32_t numbers[4], n;
	enum oltp_rc rc;

	if (c->n < 4 + n_keys)
		return answer_error(c, "ERR tpcc: wrong number of arguments");
	rc = tpcc_numbers(c, n_keys + 1, 4, 4, numbers, &n);
	if (rc)
		return rc;
	if (arg_is(part, "WAREHOUSE"))
		rc = check_warehouse(c, numbers[0], &v);
	else if (arg_is(part, "DISTRICT"))
		rc = check_district(c, numbers[0], numbers[1], &v);
	else if (arg_is(part, "ORDERS") || arg_is(part, "CUSTOMERS"))
		rc = check_rows(c, numbers, arg_is(part, "ORDERS"), &v);
	else
		return answer_error(c, "ERR tpcc: checks warehouse, district, orders or customers");
	if (rc)
		return rc;
	resp_out_array(c->out, NUMBERS);
	for (uint32_t i = 0; i < NUMBERS; i++)
		resp_out_integer(c->out, v.numbers[i]);
	return OLTP_OK;
}
