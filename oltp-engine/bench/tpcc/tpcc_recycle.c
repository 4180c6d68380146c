// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Deletes old orders and histories, in runs that would fill the memory otherwise: see tpcc.h. The
 * transaction that adds a new one deletes an old one, so that their number stays the same, and adds
 * its amounts to sums that are kept.
 */
#include <stddef.h>

#include "tpcc_private.h"

static void announce_lines(struct tpcc_worker *tw, uint64_t order_key, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		tw->hints[i] = tpcc_hint(tw, TPCC_LINE, tpcc_line_key(order_key, i + 1), 0,
					 sizeof(struct tpcc_line));
	oltp_txn_prefetch(tw->worker, NULL, tw->hints, n);
}

static enum oltp_rc delete_lines(struct tpcc_worker *tw, uint64_t order_key, uint32_t n,
				 int64_t *ret_delivered)
{
	struct oltp_table *table = tw->tpcc->tables[TPCC_LINE];
	enum oltp_rc rc = OLTP_OK;

	*ret_delivered = 0;
	announce_lines(tw, order_key, n);
	for (uint32_t i = 1; !rc && i <= n; i++) {
		uint64_t key = tpcc_line_key(order_key, i);
		const struct tpcc_line *line;
		void *found;

		rc = oltp_txn_update(tw->worker, table, key, NULL, 0, &found);
		if (rc)
			break;
		line = found;
		if (line->delivery_date)
			*ret_delivered += line->amount;
		rc = oltp_txn_delete(tw->worker, table, key);
	}
	return rc;
}

enum oltp_rc tpcc_order_recycle(struct tpcc_worker *tw, uint16_t w, uint8_t d, uint32_t o)
{
	static const struct oltp_span span = { offsetof(struct tpcc_customer, archived_lines),
					       sizeof(int64_t) };
	struct oltp_table **tables = tw->tpcc->tables;
	uint64_t key = tpcc_order_key(w, d, o);
	const struct tpcc_order *order;
	enum oltp_rc rc;
	int64_t delivered;
	void *changed;

	rc = oltp_txn_update(tw->worker, tables[TPCC_ORDER], key, NULL, 0, &changed);
	if (rc == OLTP_NOT_FOUND)
		return OLTP_OK;
	if (rc)
		return rc;
	order = changed;
	rc = delete_lines(tw, key, order->lines, &delivered);
	if (!rc && !order->carrier)
		rc = oltp_txn_delete(tw->worker, tables[TPCC_NEW_ORDER_ROW], key);
	if (!rc && delivered) {
		rc = oltp_txn_update(tw->worker, tables[TPCC_CUSTOMER],
				     tpcc_customer_key(w, d, order->c), &span, 1, &changed);
		if (!rc)
			((struct tpcc_customer *)changed)->archived_lines += delivered;
	}
	return rc ?: oltp_txn_delete(tw->worker, tables[TPCC_ORDER], key);
}

enum oltp_rc tpcc_history_recycle(struct tpcc_worker *tw, uint64_t history_key,
				  struct tpcc_customer *customer, uint64_t district_key,
				  struct tpcc_district *district)
{
	static const struct oltp_span span = { offsetof(struct tpcc_district, archived_payments),
					       sizeof(int64_t) };
	struct oltp_table **tables = tw->tpcc->tables;
	const struct tpcc_history *history;
	enum oltp_rc rc;
	uint64_t paid_at;
	void *found;

	rc = oltp_txn_update(tw->worker, tables[TPCC_HISTORY], history_key, NULL, 0, &found);
	if (rc == OLTP_NOT_FOUND)
		return OLTP_OK;
	if (rc)
		return rc;
	history = found;
	customer->archived_payments += history->amount;
	paid_at = tpcc_district_key(history->w, history->d);
	if (paid_at != district_key) {
		rc = oltp_txn_update(tw->worker, tables[TPCC_DISTRICT], paid_at, &span, 1, &found);
		if (rc)
			return rc;
		district = found;
	}
	district->archived_payments += history->amount;
	return oltp_txn_delete(tw->worker, tables[TPCC_HISTORY], history_key);
}
