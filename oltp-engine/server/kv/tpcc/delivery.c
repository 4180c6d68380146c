// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Delivery (section 2.7 of the specification), all ten districts in one transaction. In turns, so
 * that units that are needed of all districts come together.
 */
#include <stdio.h>

#include "oltp-engine/server/kv/tpcc/tpcc.h"

struct parcel {
	uint32_t d, o, lines, customer;
	int64_t sum;
	struct tpcc_row district, order, who;
	struct tpcc_district district_columns;
	struct tpcc_order order_columns;
};

struct delivery {
	uint32_t w, carrier, n;
	int64_t date;
	struct parcel parcels[TPCC_DISTRICTS];
};

/* The oldest new order of each district, if there is one. */
static enum oltp_rc find_new_orders(struct call *c, struct delivery *delivery)
{
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t d = 1; d <= TPCC_DISTRICTS; d++) {
		struct parcel *parcel = &delivery->parcels[d - 1];

		tpcc_name(&parcel->district, "tpcc:d:%u:%u", delivery->w, d);
		rc = call_need(c, &parcel->district.name) ?: rc;
	}
	for (uint32_t d = 1; !rc && d <= TPCC_DISTRICTS; d++) {
		struct parcel *parcel = &delivery->parcels[delivery->n];

		/* One without new orders leaves its place to the next. */
		tpcc_name(&parcel->district, "tpcc:d:%u:%u", delivery->w, d);
		rc = tpcc_must_open(c, &parcel->district, true) ?:
		     tpcc_get(c, &parcel->district, "a", &parcel->district_columns,
			      sizeof(parcel->district_columns));
		parcel->d = d;
		parcel->o = parcel->district_columns.next_delivery;
		if (!rc && parcel->o < parcel->district_columns.next_o)
			delivery->n++;
	}
	return rc;
}

static enum oltp_rc find_orders(struct call *c, struct delivery *delivery)
{
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t i = 0; i < delivery->n; i++) {
		struct parcel *parcel = &delivery->parcels[i];

		tpcc_name(&parcel->order, "tpcc:o:%u:%u:%u", delivery->w, parcel->d, parcel->o);
		rc = call_need(c, &parcel->order.name) ?: rc;
	}
	for (uint32_t i = 0; !rc && i < delivery->n; i++) {
		struct parcel *parcel = &delivery->parcels[i];

		rc = tpcc_must_open(c, &parcel->order, true) ?:
		     tpcc_get(c, &parcel->order, "a", &parcel->order_columns,
			      sizeof(parcel->order_columns));
	}
	if (rc)
		return rc;
	for (uint32_t i = 0; i < delivery->n; i++) {
		struct parcel *parcel = &delivery->parcels[i];

		tpcc_name(&parcel->who, "tpcc:c:%u:%u:%u", delivery->w, parcel->d,
			  parcel->order_columns.c);
		rc = call_need(c, &parcel->who.name) ?: rc;
	}
	return rc;
}

static enum oltp_rc deliver_lines(struct call *c, const struct delivery *delivery,
				  struct parcel *parcel)
{
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t i = 1; !rc && i <= parcel->order_columns.lines; i++) {
		struct tpcc_line line;
		char field[16];

		snprintf(field, sizeof(field), "%u", i);
		rc = tpcc_get(c, &parcel->order, field, &line, sizeof(line));
		if (rc)
			return rc;
		line.delivery_date = delivery->date;
		parcel->sum += line.amount;
		rc = tpcc_put(c, &parcel->order, field, &line, sizeof(line));
	}
	parcel->order_columns.carrier = (uint8_t)delivery->carrier;
	return rc ?: tpcc_put(c, &parcel->order, "a", &parcel->order_columns,
			      sizeof(parcel->order_columns)) ?:
		     hash_close(c, &parcel->order.hash);
}

static enum oltp_rc deliver(struct call *c, const struct delivery *delivery, struct parcel *parcel)
{
	struct tpcc_customer customer;
	char field[16];
	enum oltp_rc rc;

	snprintf(field, sizeof(field), "n%u", parcel->o);
	parcel->district_columns.next_delivery++;
	rc = tpcc_drop(c, &parcel->district, field) ?:
	     tpcc_put(c, &parcel->district, "a", &parcel->district_columns,
		      sizeof(parcel->district_columns)) ?:
	     hash_close(c, &parcel->district.hash) ?:
	     deliver_lines(c, delivery, parcel) ?:
	     tpcc_must_open(c, &parcel->who, true) ?:
	     tpcc_get(c, &parcel->who, "a", &customer, sizeof(customer));
	if (rc)
		return rc;
	customer.balance += parcel->sum;
	customer.deliveries++;
	return tpcc_put(c, &parcel->who, "a", &customer, sizeof(customer)) ?:
	       hash_close(c, &parcel->who.hash);
}

enum oltp_rc tpcc_delivery(struct call *c, uint32_t n_keys)
{
	struct delivery delivery = { .date = tpcc_now() };
	uint32_t numbers[2], n;
	enum oltp_rc rc = tpcc_numbers(c, n_keys, 2, 2, numbers, &n);

	if (!rc)
		rc = tpcc_check_district(c, numbers[0], 1);
	if (!rc && (!numbers[1] || numbers[1] > TPCC_CARRIERS))
		rc = answer_error(c, "ERR tpcc: no such carrier");
	if (rc)
		return rc;
	delivery.w = numbers[0];
	delivery.carrier = numbers[1];
	rc = find_new_orders(c, &delivery) ?: find_orders(c, &delivery);
	for (uint32_t i = 0; !rc && i < delivery.n; i++)
		rc = deliver(c, &delivery, &delivery.parcels[i]);
	if (!rc)
		resp_out_integer(c->out, delivery.n);
	return rc;
}
