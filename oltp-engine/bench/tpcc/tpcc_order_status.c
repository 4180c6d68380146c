// SPDX-License-Identifier: GPL-2.0-or-later
/* Order-Status (section 2.6 of the specification). */
#include "tpcc_private.h"

static void order_status_draw(struct tpcc_worker *tw, struct tpcc_txn *txn)
{
	tpcc_who_draw(tw, txn->w, txn->d, &txn->who);
}

static int take_key(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	(void)sort_key;
	(void)record;
	*(uint64_t *)ctx = key;
	return 0;
}

static int show_line(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	const struct tpcc_line *line = record;
	struct tpcc_worker *tw = ctx;

	(void)sort_key;
	(void)key;
	tw->shown += line->item + line->supply_w + line->quantity + line->amount +
		     (uint64_t)line->delivery_date;
	return 0;
}

static enum oltp_rc order_status_run(struct tpcc_worker *tw, const struct tpcc_txn *txn)
{
	struct tpcc *tpcc = tw->tpcc;
	uint64_t customer_key, order_key = 0;
	struct oltp_range range;
	const void *customer;
	enum oltp_rc rc;

	rc = tpcc_who_find(tw, &txn->who, &customer_key) ?:
	     oltp_txn_read(tw->worker, tpcc->tables[TPCC_CUSTOMER], customer_key, &customer);
	if (rc)
		return rc;
	tw->shown += (uint64_t)((const struct tpcc_customer *)customer)->balance;
	range = (struct oltp_range){
		.from = tpcc_customer_order_key(customer_key, 0),
		.to = tpcc_customer_order_key(customer_key, UINT32_MAX),
		.limit = 1,
		.descending = true,
	};
	rc = oltp_txn_scan(tw->worker, tpcc->orders_by_customer, &range, take_key, &order_key);
	/* Without one only if old orders are deleted. */
	if (rc || !order_key)
		return rc;
	range = (struct oltp_range){ .from = tpcc_line_key(order_key, 0),
				     .to = tpcc_line_key(order_key, TPCC_LINES_MAX) };
	return oltp_txn_scan(tw->worker, tpcc->lines, &range, show_line, tw);
}

const struct tpcc_kind_ops tpcc_order_status_ops = {
	.name = "order_status",
	.draw = order_status_draw,
	.run = order_status_run,
};
