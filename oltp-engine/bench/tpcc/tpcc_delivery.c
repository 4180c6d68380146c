// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Delivery (section 2.7 of the specification), all ten districts in one transaction. In three
 * turns, so that what one needs of all districts is fetched together.
 */
#include <stddef.h>

#include "tpcc_private.h"

struct parcel {
	uint64_t order_key;
	uint64_t customer_key;
	uint32_t n_lines;
};

static void delivery_draw(struct tpcc_worker *tw, struct tpcc_txn *txn)
{
	txn->carrier = (uint8_t)tpcc_uniform(&tw->random, 1, 10);
}

static int take_key(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	(void)sort_key;
	(void)record;
	*(uint64_t *)ctx = key;
	return 0;
}

/* The oldest new order of each district, if there is one. */
static enum oltp_rc take_new_orders(struct tpcc_worker *tw, const struct tpcc_txn *txn,
				    struct parcel *parcels, uint32_t *ret_n)
{
	struct tpcc *tpcc = tw->tpcc;
	uint32_t n = 0;

	for (uint32_t d = 1; d <= TPCC_DISTRICTS; d++) {
		struct oltp_range range = {
			.from = tpcc_order_key(txn->w, d, 0),
			.to = tpcc_order_key(txn->w, d, UINT32_MAX),
			.limit = 1,
			.exclusive = true,
		};
		uint64_t key = 0;
		enum oltp_rc rc = oltp_txn_scan(tw->worker, tpcc->new_orders, &range, take_key,
						&key);

		if (!rc && key)
			rc = oltp_txn_delete(tw->worker, tpcc->tables[TPCC_NEW_ORDER_ROW], key);
		if (rc)
			return rc;
		if (!key)
			continue;
		tw->hints[n] = tpcc_hint(tw, TPCC_ORDER, key, 0, 48);
		parcels[n++].order_key = key;
	}
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, n);
	*ret_n = n;
	return OLTP_OK;
}

static enum oltp_rc take_orders(struct tpcc_worker *tw, const struct tpcc_txn *txn,
				struct parcel *parcels, uint32_t n)
{
	static const struct oltp_span span = { offsetof(struct tpcc_order, carrier), 1 };
	struct oltp_hint *hint = tw->hints;

	for (uint32_t i = 0; i < n; i++) {
		struct parcel *parcel = &parcels[i];
		struct tpcc_order *order;
		void *changed;
		enum oltp_rc rc = oltp_txn_update(tw->worker, tw->tpcc->tables[TPCC_ORDER],
						  parcel->order_key, &span, 1, &changed);

		if (rc)
			return rc;
		order = changed;
		order->carrier = txn->carrier;
		parcel->n_lines = order->lines;
		parcel->customer_key = parcel->order_key >> 32 << 12 | order->c;
		for (uint32_t line = 1; line <= parcel->n_lines; line++)
			*hint++ = tpcc_hint(tw, TPCC_LINE, tpcc_line_key(parcel->order_key, line),
					    0, sizeof(struct tpcc_line));
		*hint++ = tpcc_hint(tw, TPCC_CUSTOMER, parcel->customer_key, 0, 48);
	}
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, (uint32_t)(hint - tw->hints));
	return OLTP_OK;
}

static enum oltp_rc deliver(struct tpcc_worker *tw, const struct tpcc_txn *txn,
			    const struct parcel *parcel)
{
	static const struct oltp_span line_span = { offsetof(struct tpcc_line, delivery_date),
						    sizeof(int64_t) };
	static const struct oltp_span customer_spans[] = {
		{ offsetof(struct tpcc_customer, balance), sizeof(int64_t) },
		{ offsetof(struct tpcc_customer, deliveries), sizeof(uint32_t) },
	};
	struct oltp_table **tables = tw->tpcc->tables;
	struct tpcc_customer *customer;
	int64_t sum = 0;
	enum oltp_rc rc;
	void *changed;

	for (uint32_t i = 1; i <= parcel->n_lines; i++) {
		struct tpcc_line *line;

		rc = oltp_txn_update(tw->worker, tables[TPCC_LINE],
				     tpcc_line_key(parcel->order_key, i), &line_span, 1, &changed);
		if (rc)
			return rc;
		line = changed;
		line->delivery_date = txn->date;
		sum += line->amount;
	}
	rc = oltp_txn_update(tw->worker, tables[TPCC_CUSTOMER], parcel->customer_key,
			     customer_spans, 2, &changed);
	if (rc)
		return rc;
	customer = changed;
	customer->balance += sum;
	customer->deliveries++;
	tw->delivered++;
	return OLTP_OK;
}

static enum oltp_rc delivery_run(struct tpcc_worker *tw, const struct tpcc_txn *txn)
{
	struct parcel parcels[TPCC_DISTRICTS];
	enum oltp_rc rc;
	uint32_t n;

	rc = take_new_orders(tw, txn, parcels, &n) ?: take_orders(tw, txn, parcels, n);
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = deliver(tw, txn, &parcels[i]);
	return rc;
}

const struct tpcc_kind_ops tpcc_delivery_ops = {
	.name = "delivery",
	.draw = delivery_draw,
	.run = delivery_run,
};
