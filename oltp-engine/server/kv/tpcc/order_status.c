// SPDX-License-Identifier: GPL-2.0-or-later
/* Order-Status (section 2.6 of the specification). */
#include <stdio.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"

#define HEAD_NUMBERS	5u
#define LINE_NUMBERS	5u

static enum oltp_rc show_order(struct call *c, struct tpcc_row *row, uint32_t customer,
			       int64_t balance, uint32_t o)
{
	struct tpcc_order order;
	enum oltp_rc rc = tpcc_get(c, row, "a", &order, sizeof(order));

	if (rc)
		return rc;
	resp_out_array(c->out, HEAD_NUMBERS + LINE_NUMBERS * order.lines);
	resp_out_integer(c->out, customer);
	resp_out_integer(c->out, balance);
	resp_out_integer(c->out, o);
	resp_out_integer(c->out, order.entry_date);
	resp_out_integer(c->out, order.carrier);
	for (uint32_t i = 1; !rc && i <= order.lines; i++) {
		struct tpcc_line line;
		char field[16];

		snprintf(field, sizeof(field), "%u", i);
		rc = tpcc_get(c, row, field, &line, sizeof(line));
		if (rc)
			return rc;
		resp_out_integer(c->out, line.item);
		resp_out_integer(c->out, line.supply_w);
		resp_out_integer(c->out, line.quantity);
		resp_out_integer(c->out, line.amount);
		resp_out_integer(c->out, line.delivery_date);
	}
	return OLTP_OK;
}

enum oltp_rc tpcc_order_status(struct call *c, uint32_t n_keys)
{
	uint32_t numbers[4], n, number;
	struct tpcc_customer customer;
	size_t before = c->out->n;
	struct tpcc_row row;
	enum oltp_rc rc;

	rc = tpcc_numbers(c, n_keys, 4, 4, numbers, &n) ?:
	     tpcc_check_district(c, numbers[0], numbers[1]) ?:
	     tpcc_find_customer(c, numbers[0], numbers[1], numbers[2], numbers[3], &number);
	if (rc)
		return rc;
	tpcc_name(&row, "tpcc:c:%u:%u:%u", numbers[0], numbers[1], number);
	rc = tpcc_must_open(c, &row, false) ?:
	     tpcc_get(c, &row, "a", &customer, sizeof(customer));
	if (rc)
		return rc;
	tpcc_name(&row, "tpcc:o:%u:%u:%u", numbers[0], numbers[1], customer.last_o);
	rc = tpcc_must_open(c, &row, false);
	if (rc)
		return rc;
	rc = show_order(c, &row, number, customer.balance, customer.last_o);
	if (rc == KV_ANSWERED) {
		/* Not behind the half of an answer. */
		resp_out_truncate(c->out, before);
		return tpcc_bad_row(c, &row);
	}
	return rc;
}
